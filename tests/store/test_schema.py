import ctypes
import os
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import Engine

from app.store.database import HEAD_REVISION, REVISIONS, USER_VERSION, connect, create_store_engine
from app.store.disk import exclusive, lock_path
from app.store.errors import (
    CorruptStoreError,
    ForeignStoreError,
    NewerStoreError,
    StoreBusyError,
    StoreUnavailableError,
)
from app.store.links import Contents, Links, Saved
from app.store.schema import Migration, migrate
from tests.store.older import downgrade

ROOT = Path(__file__).parents[2]
FIRST_REVISION = REVISIONS[0]
PR_CAPBSET_DROP, CAP_DAC_OVERRIDE = 24, 1


def python(code: str, *arguments: object, preexec: Callable[[], None] | None = None) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-W", "error", "-c", code, *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        preexec_fn=preexec,
    )


def execute(path: Path, *statements: str) -> None:
    with closing(connect(path)) as connection:
        for statement in statements:
            connection.execute(statement)


def test_new_file_and_folder_are_made_private(tmp_path: Path) -> None:
    path = tmp_path / "var" / "data" / "tokenroof.sqlite3"
    assert migrate(path) == Migration(None, HEAD_REVISION)
    assert path.stat().st_mode & 0o077 == 0
    assert path.parent.stat().st_mode & 0o077 == 0
    engine = create_store_engine(path)
    assert Links(engine, "configuration").get("0" * 26) is None
    engine.dispose()


def test_file_at_head_is_left_as_it_is(path: Path) -> None:
    before = path.read_bytes()
    assert migrate(path) == Migration(HEAD_REVISION, HEAD_REVISION)
    assert path.read_bytes() == before
    assert not (path.parent / "backups").exists()


def test_second_start_is_quick_for_it_does_without_alembic(path: Path) -> None:
    start_s = time.monotonic()
    code = "import sys; from pathlib import Path; from app.store.schema import migrate; migrate(Path(sys.argv[1]));"
    child = python(code + "print('alembic' in sys.modules)", path)
    assert child.communicate() == ("False\n", "")
    assert time.monotonic() - start_s < 3


def test_older_file_is_backed_up_and_migrated(
    path: Path, engine: Engine, configurations: Links, contents: Callable[..., Contents]
) -> None:
    created = configurations.create(contents())
    engine.dispose()
    downgrade(path, FIRST_REVISION)
    done = migrate(path, backups=path.parent / "kept")
    assert (done.before, done.after) == (FIRST_REVISION, HEAD_REVISION)
    assert done.backup is not None
    assert done.backup.parent == path.parent / "kept"
    with closing(connect(done.backup)) as copy:
        assert copy.execute("SELECT version_num FROM alembic_version").fetchall() == [(FIRST_REVISION,)]
        assert copy.execute("SELECT count(*) FROM configurations").fetchone() == (1,)
    assert isinstance(configurations.get(created.slug), Saved)


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE alembic_version SET version_num = '20990101_from_the_future'",
        "INSERT INTO alembic_version VALUES ('20990101_second_head')",
        f"PRAGMA user_version = {USER_VERSION + 1}",
    ],
)
def test_newer_file_is_refused_by_name_and_left_alone(path: Path, statement: str) -> None:
    execute(path, statement)
    before = path.read_bytes()
    with pytest.raises(NewerStoreError, match=HEAD_REVISION) as caught:
        migrate(path)
    assert "20990101" in caught.value.found or str(USER_VERSION + 1) in caught.value.found
    assert path.read_bytes() == before


def test_file_of_another_program_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "other.sqlite3"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE theirs (x)")
    before = path.read_bytes()
    with pytest.raises(ForeignStoreError):
        migrate(path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_empty_file_is_taken_for_a_new_one(tmp_path: Path) -> None:
    path = tmp_path / "tokenroof.sqlite3"
    path.touch()
    assert migrate(path) == Migration(None, HEAD_REVISION)


@pytest.mark.parametrize("damage", ["header", "page", "half"])
def test_corrupt_file_is_named_and_left_alone(
    path: Path, engine: Engine, configurations: Links, contents: Callable[..., Contents], damage: str
) -> None:
    for _ in range(50):
        configurations.create(contents(notes="n" * 3_000))
    engine.dispose()
    with path.open("r+b") as file:
        if damage == "half":
            file.truncate(path.stat().st_size // 2)
        else:
            file.seek(0 if damage == "header" else 8 * 4096)
            file.write(b"\xff" * 4096)
    before = path.read_bytes()
    with pytest.raises(CorruptStoreError):
        migrate(path)
    assert path.read_bytes() == before


def test_row_that_no_rule_lets_in_counts_as_damage(
    path: Path, engine: Engine, configurations: Links, contents: Callable[..., Contents]
) -> None:
    configurations.create(contents())
    engine.dispose()
    execute(path, "PRAGMA ignore_check_constraints = ON", "UPDATE configurations SET scenario = 'not an object'")
    with pytest.raises(CorruptStoreError, match="CHECK constraint failed"):
        migrate(path)


def test_two_starting_processes_migrate_once(path: Path) -> None:
    downgrade(path, FIRST_REVISION)
    code = (
        "import sys, time; from pathlib import Path; from app.store.schema import migrate\n"
        "path, go = map(Path, sys.argv[1:])\n"
        "print('waiting', flush=True)\n"
        "while not go.exists(): time.sleep(0.001)\n"
        "print(migrate(path).before)"
    )
    go = path.with_name("go")
    children = [python(code, path, go) for _ in range(3)]
    for child in children:
        assert child.stdout is not None
        assert child.stdout.readline() == "waiting\n"
    go.touch()
    answers = [child.communicate() for child in children]
    assert sorted(out.strip() for out, _ in answers) == sorted([FIRST_REVISION, HEAD_REVISION, HEAD_REVISION])
    assert [err for _, err in answers] == ["", "", ""]
    assert len(list((path.parent / "backups" / "before-migration").iterdir())) == 1


def test_migration_waits_for_another_no_longer_than_told(path: Path) -> None:
    downgrade(path, FIRST_REVISION)
    with exclusive(lock_path(path), 1), pytest.raises(StoreBusyError):
        migrate(path, lock_timeout_s=0.05)
    assert migrate(path).before == FIRST_REVISION


def test_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StoreUnavailableError, match="cannot be opened or made"):
        migrate(tmp_path / "file" / "data" / "tokenroof.sqlite3")


@pytest.mark.parametrize("with_file", [False, True], ids=["empty folder", "migrated file"])
def test_read_only_folder_is_named(path: Path, tmp_path: Path, with_file: bool) -> None:
    folder = tmp_path / "data"
    folder.mkdir()
    if with_file:
        path.rename(folder / path.name)
        (folder / path.name).chmod(0o400)
    folder.chmod(0o500)
    code = (
        "import os, sys; from pathlib import Path; from app.store.schema import migrate\n"
        "path = Path(sys.argv[1])\n"
        "if os.access(path.parent, os.W_OK): print('all-powerful'); sys.exit()\n"
        "try: migrate(path)\n"
        "except Exception as error: print(type(error).__name__, error)"
    )
    out, err = python(code, folder / path.name, preexec=without_power_over_files).communicate()
    folder.chmod(0o700)
    if out == "all-powerful\n":
        pytest.skip("this user may write into read-only folders and cannot give that up")
    assert err == ""
    assert out.startswith("StoreUnavailableError")
    assert str(folder) in out


def without_power_over_files() -> None:
    # The administrator ignores file modes, by a capability that a child process can be started without.
    ctypes.CDLL(None).prctl(PR_CAPBSET_DROP, CAP_DAC_OVERRIDE, 0, 0, 0)
