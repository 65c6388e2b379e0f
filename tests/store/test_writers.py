"""Several processes on one file: nothing that was promised is lost, whatever happens to the one who promised."""

import os
import random
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from sqlalchemy import Engine

from app.store.database import connect, create_store_engine
from app.store.links import Contents, Links, Saved
from app.store.schema import migrate

ROOT = Path(__file__).parents[2]
WRITER = Path(__file__).with_name("writer_process.py")


class Writer:
    """A child process that saves links, and the slugs that it has acknowledged so far."""

    def __init__(self, path: Path, seconds: float, name: str) -> None:
        self.promised, self.failed = path.with_name(f"{name}.promised"), path.with_name(f"{name}.failed")
        with self.promised.open("wb") as out, self.failed.open("wb") as err:
            self.process = subprocess.Popen(
                [sys.executable, str(WRITER), str(path), str(seconds)],
                stdout=out,
                stderr=err,
                env={**os.environ, "PYTHONPATH": str(ROOT)},
            )

    def slugs(self) -> list[str]:
        # Without the last piece: a killed process may have printed half a line.
        return self.promised.read_text().split("\n")[:-1]

    def wait_for_first(self) -> None:
        deadline_s = time.monotonic() + 20
        while not self.slugs():
            assert time.monotonic() < deadline_s, self.failed.read_text()
            time.sleep(0.005)


def assert_sound(path: Path) -> None:
    with closing(connect(path)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        assert connection.execute("PRAGMA foreign_key_check").fetchall() == []


def test_four_writers_and_a_reader_lose_nothing_and_meet_no_lock(
    path: Path, engine: Engine, contents: Callable[..., Contents]
) -> None:
    writers = [Writer(path, 1.0, f"writer-{number}") for number in range(4)]
    configurations = Links(engine, "configuration")
    mine = configurations.create(contents())
    reads = 0
    for writer in writers:
        writer.wait_for_first()
    while any(writer.process.poll() is None for writer in writers):
        for slug in [mine.slug, *(writer.slugs()[-1] for writer in writers)]:
            assert isinstance(configurations.get(slug), Saved)
            reads += 1
    assert [writer.process.wait() for writer in writers] == [0, 0, 0, 0], [w.failed.read_text() for w in writers]
    promised = [slug for writer in writers for slug in writer.slugs()]
    assert min(len(writer.slugs()) for writer in writers) > 0
    assert reads > 0
    assert len(set(promised)) == len(promised)
    assert all(isinstance(configurations.get(slug), Saved) for slug in promised)
    assert_sound(path)


def test_ten_killed_writers_leave_a_sound_file_with_every_promised_link(path: Path) -> None:
    chance, promised = random.Random(20261129), []
    for turn in range(2):
        writers = [Writer(path, 60, f"turn-{turn}-{number}") for number in range(5)]
        for writer in writers:
            writer.wait_for_first()
            time.sleep(chance.uniform(0, 0.08))
            writer.process.kill()
            writer.process.wait()
        assert [writer.failed.read_text() for writer in writers] == [""] * 5
        promised += [slug for writer in writers for slug in writer.slugs()]
        assert migrate(path).backup is None
        assert_sound(path)
        engine = create_store_engine(path)
        configurations = Links(engine, "configuration")
        assert all(isinstance(configurations.get(slug), Saved) for slug in promised)
        engine.dispose()
    assert len(promised) >= 10
