"""Locks between processes that the kernel lets go of when their holder dies: the queue of those who change the file.

SQLite has a lock of its own, but its waiters sleep up to 0.1 s at a time, so a busy process starves another (measured
with 16 writers in 2 processes: longest wait 2 s, here 0.15 s). And a commit may run a checkpoint after SQLite's lock is
free again: that a checkpoint meets another commit is the way into the WAL-reset defect of SQLite 3.7.0 to 3.51.2.
"""

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from app.store.errors import StoreBusyError, StoreUnavailableError

_POLL_S = 0.0005


def lock_path(database: Path) -> Path:
    """The lock file of a database; migrations and writers queue at the same one."""
    return database.with_name(f"{database.name}.lock")


def recorder_lock_path(database: Path) -> Path:
    """The lock file of the one process that records into a database."""
    return database.with_name(f"{database.name}.recorder.lock")


@contextmanager
def exclusive(path: Path, timeout_s: float) -> Iterator[None]:
    """Only one process at a time is inside, for the same `path`. The lock file stays: deleting it would race.

    Raises:
        StoreBusyError: another process stayed inside for `timeout_s` seconds.
        StoreUnavailableError: the lock file cannot be made.
    """
    descriptor = _opened(path)
    try:
        _wait(descriptor, path, time.monotonic() + timeout_s)
        yield
    finally:
        os.close(descriptor)


class Seat:
    """A lock that its holder keeps for as long as it likes, and that nobody waits for. Free again when it dies."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._descriptor: int | None = None

    def take(self) -> bool:
        """Whether the seat is this object's, now or since before; False while another has it.

        Raises:
            StoreUnavailableError: the lock file cannot be made.
        """
        if self._descriptor is None:
            descriptor = _opened(self._path)
            if _locked(descriptor):
                self._descriptor = descriptor
            else:
                os.close(descriptor)
        return self._descriptor is not None

    def leave(self) -> None:
        """Lets another have it; nothing, where it is not taken."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


def _opened(path: Path) -> int:
    try:
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise StoreUnavailableError(f"{path} cannot be written ({error.strerror}).") from error


def _locked(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _wait(descriptor: int, path: Path, deadline_s: float) -> None:
    while not _locked(descriptor):
        if time.monotonic() >= deadline_s:
            raise StoreBusyError(f"Another process holds {path}.")
        time.sleep(_POLL_S)
