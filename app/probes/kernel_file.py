"""The kernel's small files, read whole, within bounds and never with an exception; and the system's memory in one."""

import errno
import os
import re
import stat
from dataclasses import dataclass
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


MEMINFO = Path("/proc/meminfo")

INTEGRATED_PARTS = frozenset({"gb10", "jetson", "nvgpu", "orin", "tegra", "thor", "xavier"})
"""Words in the names of parts without a memory of their own, as drivers report them ("NVIDIA GB10", "Orin (nvgpu)")."""

_MEMINFO_LIMIT = 65_536
_BYTES_PER_KB = 1024  # The kernel writes kB and means KiB.


@dataclass(frozen=True, slots=True)
class SystemMemory:
    """Memory of the machine in bytes: all of it, and what could be given to a new process without swapping."""

    total_bytes: int
    available_bytes: int


def is_integrated(name: str | None) -> bool:
    """True where a whole word of the name is that of a known part with unified memory."""
    return name is not None and not INTEGRATED_PARTS.isdisjoint(re.findall(r"[a-z0-9]+", name.lower()))


def system_memory(meminfo: Path = MEMINFO) -> SystemMemory | Absence:
    """MemTotal and MemAvailable of the kernel's /proc/meminfo, in bytes.

    Never MemFree, which counts the page cache as used. An absence where the file is missing (no Linux), is not
    readable, or lacks a field (MemAvailable came with Linux 3.14).
    """
    lines = read_text(meminfo, _MEMINFO_LIMIT)
    if isinstance(lines, Absence):
        return lines
    found = dict(re.findall(r"^(MemTotal|MemAvailable):\s{1,40}(\d{1,15}) kB$", lines, flags=re.MULTILINE | re.ASCII))
    if len(found) < 2:
        return Absence.NOT_SUPPORTED
    total_bytes, available_bytes = (int(found[key]) * _BYTES_PER_KB for key in ("MemTotal", "MemAvailable"))
    if not 0 <= available_bytes <= total_bytes or total_bytes == 0:
        return Absence.IMPLAUSIBLE
    return SystemMemory(total_bytes, available_bytes)
