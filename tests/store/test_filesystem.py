import logging
from pathlib import Path

import pytest

from app.store.disk import Mount, mount_of, warn_unless_local

TABLE = r"""
/dev/vda / ext4 rw,relatime 0 0
proc /proc proc rw 0 0
host /mnt/share\040one virtiofs rw 0 0
nas:/export /mnt/nas nfs4 rw 0 0
/dev/vdb /mnt/nas/local xfs rw 0 0
me@box: /home/me/far fuse.sshfs rw 0 0
tmpfs /run tmpfs rw 0 0
overlay /run overlay rw 0 0
""".splitlines()


@pytest.mark.parametrize(
    ("path", "kind", "safe"),
    [
        ("/var/lib/x.sqlite3", "ext4", True),
        ("/mnt/share one/x.sqlite3", "virtiofs", False),
        ("/mnt/nas/x.sqlite3", "nfs4", False),
        ("/mnt/nas/local/x.sqlite3", "xfs", True),
        ("/mnt/nasty/x.sqlite3", "ext4", True),
        ("/home/me/far/x.sqlite3", "fuse.sshfs", False),
        ("/run/x.sqlite3", "overlay", True),
    ],
)
def test_file_lies_on_the_longest_mount_above_it(path: str, kind: str, safe: bool) -> None:
    mount = mount_of(Path(path), TABLE)
    assert mount is not None
    assert (mount.kind, mount.is_safe_for_wal) == (kind, safe)


def test_remote_disk_is_warned_of(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    table = tmp_path / "mounts"
    table.write_text(f"nas:/x {tmp_path.resolve()} nfs rw 0 0\n")
    with caplog.at_level(logging.WARNING):
        assert warn_unless_local(tmp_path / "x.sqlite3", table) == Mount(tmp_path.resolve(), "nfs")
    assert "nfs" in caplog.text
    assert "local disk" in caplog.text


def test_local_disk_and_unknown_system_are_silent(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    table = tmp_path / "mounts"
    table.write_text("/dev/vda / ext4 rw 0 0\n")
    assert warn_unless_local(tmp_path, table) == Mount(Path("/"), "ext4")
    assert warn_unless_local(tmp_path, tmp_path / "absent") is None
    assert caplog.text == ""
