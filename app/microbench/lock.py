"""One measurement at a time on a machine, whichever server or command line asks."""

import fcntl
import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from app.microbench.faults import Fault, MeasureError

# In a folder that all users share somebody may have put a link or a pipe there, which would wait for a writer.
_FLAGS = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
_ATTEMPTS = 4
_PAUSE_S = 0.005


def machine_lock() -> Path:
    """The lock file of the machine: in the folder for temporary files, which all users share."""
    return Path(tempfile.gettempdir()) / "tokenroof-measure.lock"


@contextmanager
def held(path: Path) -> Iterator[int]:
    """The lock, for the length of the `with`; its descriptor may be left to a child, and then lasts as long as that.

    The file stays, for deleting it would race.

    Raises:
        MeasureError: RUNNING, somebody else holds it; NOT_STARTED, there can be no such file.
    """
    try:
        descriptor = _opened(path)
    except OSError as error:
        raise MeasureError(Fault.NOT_STARTED) from error
    try:
        _take(descriptor)
        yield descriptor
    finally:
        os.close(descriptor)


def is_held(path: Path) -> bool:
    """Whether anybody measures on this machine now."""
    try:
        descriptor = os.open(path, _FLAGS)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(descriptor)
    return False


def _opened(path: Path) -> int:
    # For reading, which is enough to lock: the file may be another user's. The kernel refuses to open such a file in a
    # shared folder with O_CREAT, so that is the second attempt.
    try:
        return os.open(path, _FLAGS)
    except FileNotFoundError:
        return os.open(path, _FLAGS | os.O_CREAT, 0o644)


def _take(descriptor: int) -> None:
    """At once, or not at all; who only looks (`is_held`) is gone in less than a pause."""
    for attempt in range(1, _ATTEMPTS + 1):
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            if attempt == _ATTEMPTS:
                raise MeasureError(Fault.RUNNING) from None
            time.sleep(_PAUSE_S)
        else:
            return
