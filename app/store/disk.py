"""What the store needs of the operating system: locks between processes, and a disk on which WAL is safe.

The kernel lets go of a lock when its holder dies. SQLite has a lock of its own, but its waiters sleep up to 0.1 s at a
time, so a busy process starves another (measured with 16 writers in 2 processes: longest wait 2 s, here 0.15 s). And a
commit may run a checkpoint after SQLite's lock is free again: that a checkpoint meets another commit is the way into
the WAL-reset defect of SQLite 3.7.0 to 3.51.2.
"""

import fcntl
import logging
import os
import re
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from app.store.errors import StoreBusyError, StoreUnavailableError

logger = logging.getLogger(__name__)

_POLL_S = 0.0005
MOUNT_TABLE = Path("/proc/mounts")
# Network file systems, and the folders that a virtual machine or a desktop container engine shares from its host.
UNSAFE_FOR_WAL = frozenset(
    {"9p", "afs", "ceph", "cifs", "drvfs", "glusterfs", "lustre", "ncpfs", "nfs", "nfs4", "prl_fs", "smb3", "smbfs"}
    | {"vboxsf", "virtiofs", "vmhgfs"}
)


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


@dataclass(frozen=True, slots=True)
class Mount:
    """One line of the mount table."""

    folder: Path
    kind: str

    @property
    def is_safe_for_wal(self) -> bool:
        """Whether the kind is not known to break WAL. Any FUSE file system counts as unsafe: its locks are a guess."""
        return self.kind not in UNSAFE_FOR_WAL and self.kind.split(".")[0] not in {"fuse", "fuseblk"}


def mount_of(path: Path, mount_lines: Iterable[str]) -> Mount | None:
    """The mount that holds `path`, by the longest matching folder (the later line where two are equal)."""
    target, found = path.resolve(), None
    for line in mount_lines:
        fields = line.split()
        if len(fields) < 3:
            continue
        mount = Mount(Path(_unescaped(fields[1])), fields[2])
        if target.is_relative_to(mount.folder) and (
            found is None or len(mount.folder.parts) >= len(found.folder.parts)
        ):
            found = mount
    return found


def warn_unless_local(path: Path, mount_table: Path = MOUNT_TABLE) -> Mount | None:
    """The mount of `path` where the system tells (Linux), after a log warning if WAL is not safe on it."""
    try:
        lines = mount_table.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return None
    mount = mount_of(path, lines)
    if mount is not None and not mount.is_safe_for_wal:
        logger.warning(
            "%s lies on %s (%s), where SQLite's WAL may corrupt. Keep the data on a local disk or a named volume.",
            path,
            mount.folder,
            mount.kind,
        )
    return mount


def _unescaped(field: str) -> str:
    # The kernel writes space, tab, newline and backslash as three octal digits.
    return re.sub(r"\\([0-7]{3})", lambda match: chr(int(match[1], 8)), field)
