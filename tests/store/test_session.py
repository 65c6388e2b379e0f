import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from sqlalchemy import Engine, func, select
from sqlalchemy.exc import IntegrityError, OperationalError

from app.store.database import connect, create_store_engine, facts_of, name_error, read, write
from app.store.disk import exclusive, lock_path
from app.store.errors import CorruptStoreError, StoreBusyError, StoreUnavailableError
from app.store.links import Contents, Links
from app.store.tables import Configuration


@contextmanager
def locked(path: Path) -> Iterator[None]:
    with closing(connect(path)) as other:
        other.execute("BEGIN IMMEDIATE")
        yield
        other.execute("ROLLBACK")


@pytest.fixture
def hasty(path: Path) -> Iterator[Engine]:
    engine = create_store_engine(path, busy_timeout_ms=50)
    yield engine
    engine.dispose()


def test_reader_cannot_write_so_no_transaction_turns_from_reading_to_writing(
    engine: Engine, configurations: Links, contents: Callable[..., Contents]
) -> None:
    configurations.create(contents())
    with read(engine) as session:
        session.scalars(select(Configuration)).one().title = "changed"
        with pytest.raises(OperationalError, match="readonly"):
            session.commit()
    with read(engine) as session:
        assert session.scalars(select(Configuration.title)).one() == contents().title


def test_reader_sees_one_moment_and_does_not_stop_a_writer(
    engine: Engine, configurations: Links, contents: Callable[..., Contents]
) -> None:
    count = select(func.count()).select_from(Configuration)
    with read(engine) as session:
        assert session.scalar(count) == 0
        configurations.create(contents())
        assert session.scalar(count) == 0
    with read(engine) as session:
        assert session.scalar(count) == 1


def test_writer_holds_the_lock_before_its_first_statement(engine: Engine, path: Path) -> None:
    with closing(connect(path, busy_timeout_ms=0)) as other:
        with write(engine), pytest.raises(sqlite3.OperationalError, match="locked"):
            other.execute("BEGIN IMMEDIATE")
        other.execute("BEGIN IMMEDIATE")


def test_exception_undoes_the_write_and_frees_the_lock(
    engine: Engine, configurations: Links, contents: Callable[..., Contents]
) -> None:
    created = configurations.create(contents())

    def fail_after_a_write() -> None:
        with write(engine) as session:
            session.delete(session.scalars(select(Configuration)).one())
            session.flush()
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail_after_a_write()
    assert configurations.get(created.slug) is not None
    configurations.create(contents())


def test_lock_of_another_process_ends_in_busy_after_a_capped_wait(hasty: Engine, path: Path) -> None:
    with locked(path):
        start_s = time.monotonic()
        with pytest.raises(StoreBusyError) as caught, write(hasty):
            pytest.fail("the body must not run")
        assert 0.1 <= time.monotonic() - start_s < 2
    assert caught.value.retry_after_s >= 1
    with write(hasty):
        pass  # the engine recovered


def test_second_attempt_gets_the_lock_that_the_first_did_not(hasty: Engine, path: Path) -> None:
    with closing(connect(path)) as other:
        other.execute("BEGIN IMMEDIATE")
        timer = threading.Timer(0.07, other.execute, ["ROLLBACK"])
        timer.start()
        with write(hasty, attempts=100):
            pass
        timer.join()


def test_queue_of_writers_ends_in_busy_too(hasty: Engine, path: Path) -> None:
    for ahead in (facts_of(hasty).writer_turn, exclusive(lock_path(path), 0)):
        with ahead, pytest.raises(StoreBusyError), write(hasty):
            pytest.fail("the body must not run")
    with write(hasty):
        pass


def test_reader_waits_for_no_writer(engine: Engine, hasty: Engine) -> None:
    with write(engine), read(hasty) as session:
        assert session.scalar(select(func.count()).select_from(Configuration)) == 0


def test_broken_rule_of_the_table_keeps_its_own_name(engine: Engine) -> None:
    with pytest.raises(IntegrityError), write(engine) as session:
        session.add(Configuration(slug_sha256=b"short"))


def test_file_deleted_while_no_connection_is_open_is_unavailable(engine: Engine, path: Path) -> None:
    path.unlink()
    with pytest.raises(StoreUnavailableError), read(engine):
        pytest.fail("the body must not run")
    assert not path.exists()


@pytest.mark.parametrize(
    ("code", "name"),
    [
        (sqlite3.SQLITE_BUSY_SNAPSHOT, StoreBusyError),
        (sqlite3.SQLITE_BUSY_RECOVERY, StoreBusyError),
        (sqlite3.SQLITE_CORRUPT_INDEX, CorruptStoreError),
        (sqlite3.SQLITE_NOTADB, CorruptStoreError),
        (sqlite3.SQLITE_FULL, StoreUnavailableError),
        (sqlite3.SQLITE_IOERR_FSYNC, StoreUnavailableError),
        (sqlite3.SQLITE_READONLY_DBMOVED, StoreUnavailableError),
        (sqlite3.SQLITE_ERROR, None),
    ],
)
def test_extended_codes_are_named_by_their_primary(code: int, name: type[Exception] | None) -> None:
    error = sqlite3.OperationalError("…")
    error.sqlite_errorcode = code
    assert name_error(error) is None if name is None else isinstance(name_error(error), name)
