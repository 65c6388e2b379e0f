"""Which kind of disk a file lies on: SQLite's WAL needs shared memory and honest locks, so a local one."""

import logging
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

logger = logging.getLogger(__name__)

MOUNT_TABLE = Path("/proc/mounts")

# Network file systems, and the folders that a virtual machine or a desktop container engine shares from its host.
UNSAFE_FOR_WAL = frozenset(
    {
        "9p",
        "afs",
        "ceph",
        "cifs",
        "drvfs",
        "glusterfs",
        "lustre",
        "ncpfs",
        "nfs",
        "nfs4",
        "prl_fs",
        "smb3",
        "smbfs",
        "vboxsf",
        "virtiofs",
        "vmhgfs",
    }
)


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
