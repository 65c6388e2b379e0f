import shutil
import sqlite3
import threading
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import Engine

from app.store.backup import backup, copies
from app.store.database import connect, create_store_engine
from app.store.errors import CorruptStoreError, StoreUnavailableError
from app.store.links import Contents, Links, Saved
from app.store.schema import migrate

Make = Callable[..., Contents]


def rows_of(path: Path) -> list[tuple[object, ...]]:
    with closing(connect(path)) as connection:
        return connection.execute("SELECT * FROM configurations ORDER BY id").fetchall()


def test_backup_during_writes_restores_every_link_promised_before_it(
    path: Path, engine: Engine, contents: Make, tmp_path: Path
) -> None:
    configurations, stop = Links(engine, "configuration"), threading.Event()
    promised: list[str] = []

    def save() -> None:
        while not stop.is_set():
            promised.append(configurations.create(contents(notes="n" * 2_000)).slug)

    threads = [threading.Thread(target=save) for _ in range(3)]
    for thread in threads:
        thread.start()
    taken: list[tuple[list[str], Path]] = []
    for _ in range(3):
        while len(promised) < 20 * (len(taken) + 1):
            time.sleep(0.001)
        before = list(promised)
        taken.append((before, backup(path, tmp_path / "copies", keep=10)))
    stop.set()
    for thread in threads:
        thread.join()

    final = {row[0]: row for row in rows_of(path)}
    for number, (before, copy) in enumerate(taken):
        restored = Path(shutil.copy(copy, tmp_path / f"restored-{number}.sqlite3"))
        assert migrate(restored).backup is None
        assert all(final[row[0]] == row for row in rows_of(restored))
        copy_engine = create_store_engine(restored)
        assert all(isinstance(Links(copy_engine, "configuration").get(slug), Saved) for slug in before)
        copy_engine.dispose()


def test_copy_is_one_private_file(path: Path, tmp_path: Path) -> None:
    copy = backup(path, tmp_path / "copies", keep=3)
    assert list((tmp_path / "copies").iterdir()) == [copy]
    assert copy.stat().st_mode & 0o077 == 0
    with closing(sqlite3.connect(copy)) as connection:
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("delete",)


def test_only_the_newest_copies_are_kept_and_no_stranger_is_touched(path: Path, tmp_path: Path) -> None:
    folder = tmp_path / "copies"
    folder.mkdir()
    stranger = folder / "tokenroof-before-the-move.sqlite3"
    stranger.write_bytes(b"mine")
    taken = [backup(path, folder, keep=2) for _ in range(4)]
    assert copies(path, folder) == taken[-2:]
    assert stranger.exists()
    assert backup(path, folder, keep=0) in copies(path, folder)


def test_damaged_source_leaves_the_older_copies_alone(
    path: Path, configurations: Links, contents: Make, engine: Engine, tmp_path: Path
) -> None:
    for _ in range(50):
        configurations.create(contents(notes="n" * 3_000))
    good = backup(path, tmp_path / "copies", keep=1)
    engine.dispose()
    with path.open("r+b") as file:
        file.seek(8 * 4096)
        file.write(b"\xff" * 8 * 4096)
    with pytest.raises(CorruptStoreError):
        backup(path, tmp_path / "copies", keep=1)
    assert list((tmp_path / "copies").iterdir()) == [good]


def test_missing_source_and_unwritable_folder_are_named(path: Path, tmp_path: Path) -> None:
    with pytest.raises(StoreUnavailableError):
        backup(tmp_path / "absent.sqlite3", tmp_path / "copies", keep=1)
    assert list((tmp_path / "copies").iterdir()) == []
    with pytest.raises(StoreUnavailableError, match="No backup could be written"):
        backup(path, path / "not a folder", keep=1)
