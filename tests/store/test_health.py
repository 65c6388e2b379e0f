import shutil
from contextlib import closing
from pathlib import Path

from sqlalchemy import Engine, func, select

from app.store.database import connect, create_store_engine, read, write
from app.store.schema import Readiness, ready
from app.store.tables import Configuration


def test_sound_store_is_ready_and_nothing_was_left_in_it(engine: Engine) -> None:
    assert ready(engine) == Readiness(True)
    with read(engine) as session:
        assert session.scalar(select(func.count()).select_from(Configuration)) == 0


def test_file_deleted_under_a_live_process_is_not_ready(engine: Engine, path: Path) -> None:
    with write(engine):
        pass  # the open connection would go on working
    path.unlink()
    answer = ready(engine)
    assert not answer.ready
    assert "is gone" in str(answer.reason)
    assert not path.exists()


def test_file_replaced_under_a_live_process_is_not_ready(engine: Engine, path: Path) -> None:
    with write(engine):
        pass
    shutil.copy(path, path.with_suffix(".new"))
    path.with_suffix(".new").replace(path)
    assert "was replaced" in str(ready(engine).reason)


def test_locked_store_is_not_ready(path: Path) -> None:
    engine = create_store_engine(path, busy_timeout_ms=20)
    with closing(connect(path)) as other:
        other.execute("BEGIN IMMEDIATE")
        assert "locked" in str(ready(engine).reason)
        other.execute("ROLLBACK")
    assert ready(engine).ready
    engine.dispose()


def test_full_disk_is_not_ready(engine: Engine) -> None:
    assert "bytes left" in str(ready(engine, free_bytes_wanted=10**18).reason)


def test_damaged_file_is_not_ready(engine: Engine, path: Path) -> None:
    with path.open("r+b") as file:
        file.write(b"no longer a database")
    assert "damaged" in str(ready(engine).reason)
