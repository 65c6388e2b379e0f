"""The kernel's small files: read whole, within bounds, and never with an exception."""

import errno
import os
import re
import stat
from pathlib import Path

from app.probes.reading import Absence

FILE_LIMIT_BYTES = 4096
"""A page: the kernel shows no more of a sysfs file."""

# O_NONBLOCK: a named pipe in the place of a file would hold us until somebody writes to it. Windows has neither flag.
_FLAGS = os.O_RDONLY | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NONBLOCK", 0)

# What is not listed is an unknown error. A card that sleeps or is being reset answers EPERM.
_ABSENCE_OF_ERRNO = {
    errno.EACCES: Absence.NO_PERMISSION,
    errno.EPERM: Absence.NO_PERMISSION,
    errno.ENOENT: Absence.NOT_SUPPORTED,
    errno.ENOTDIR: Absence.NOT_SUPPORTED,
    errno.ELOOP: Absence.NOT_SUPPORTED,
    errno.ENODATA: Absence.NOT_SUPPORTED,
    errno.ENODEV: Absence.NOT_SUPPORTED,
    errno.EOPNOTSUPP: Absence.NOT_SUPPORTED,
    errno.EINVAL: Absence.NOT_SUPPORTED,
    errno.EBUSY: Absence.TIMEOUT,
    errno.EAGAIN: Absence.TIMEOUT,
    errno.ETIMEDOUT: Absence.TIMEOUT,
}


def read_bytes(path: Path, limit_bytes: int = FILE_LIMIT_BYTES) -> bytes | Absence:
    """The content of a regular file, or why there is none; a longer file than the limit is `implausible`."""
    try:
        descriptor = os.open(path, _FLAGS)
    except OSError as error:
        return absence_of(error)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            return Absence.NOT_SUPPORTED
        content = b""
        while len(content) <= limit_bytes and (part := os.read(descriptor, limit_bytes + 1 - len(content))):
            content += part
    except OSError as error:
        return absence_of(error)
    finally:
        os.close(descriptor)
    return content if len(content) <= limit_bytes else Absence.IMPLAUSIBLE


def read_text(path: Path, limit_bytes: int = FILE_LIMIT_BYTES) -> str | Absence:
    """The content as text, without the white space around it; what is not UTF-8 becomes U+FFFD."""
    content = read_bytes(path, limit_bytes)
    return content if isinstance(content, Absence) else content.decode("utf-8", errors="replace").strip()


def read_number(path: Path) -> int | Absence:
    """The one whole number that the file holds, or why there is none; anything besides makes it `implausible`."""
    content = read_text(path)
    if isinstance(content, Absence):
        return content
    return int(content) if re.fullmatch(r"-?[0-9]{1,20}", content) else Absence.IMPLAUSIBLE


def absence_of(error: OSError) -> Absence:
    """What a failed call to the operating system means for a reading."""
    return _ABSENCE_OF_ERRNO.get(error.errno or 0, Absence.UNKNOWN_ERROR)
