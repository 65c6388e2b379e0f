import os
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import Engine, event

from app.store import database as engine_module
from app.store.database import APPLICATION_ID, USER_VERSION, connect, create_store_engine, demand_wal, read, write
from app.store.errors import ForeignStoreError, NewerStoreError, StoreError, StoreUnavailableError


@pytest.mark.parametrize(
    ("pragma", "value"),
    [
        ("journal_mode", "wal"),
        ("busy_timeout", 5000),
        ("foreign_keys", 1),
        ("synchronous", 2),
        ("trusted_schema", 0),
        ("secure_delete", 1),
        ("application_id", APPLICATION_ID),
        ("user_version", USER_VERSION),
    ],
)
def test_every_connection_has_its_pragmas(engine: Engine, pragma: str, value: object) -> None:
    for session_of in (read, write):
        with session_of(engine) as session:
            assert session.connection().exec_driver_sql(f"PRAGMA {pragma}").scalar() == value


def test_writers_begin_immediate_and_readers_may_only_query(engine: Engine) -> None:
    said: list[str] = []

    @event.listens_for(engine, "before_cursor_execute")
    def listen(_connection: object, _cursor: object, statement: str, *_rest: object) -> None:
        said.append(statement)

    with read(engine):
        pass
    assert said == ["PRAGMA query_only = ON", "BEGIN"]
    said.clear()
    with write(engine):
        pass
    assert said == ["PRAGMA query_only = OFF", "BEGIN IMMEDIATE"]


def test_engine_never_makes_a_file(tmp_path: Path) -> None:
    with pytest.raises(StoreUnavailableError, match="`migrate` makes it"):
        create_store_engine(tmp_path / "absent.sqlite3")
    assert list(tmp_path.iterdir()) == []


def test_path_with_signs_of_urls_and_formats_is_a_plain_path(path: Path) -> None:
    strange = path.with_name("50% #1 ?mode=memory&ü.sqlite3")
    path.rename(strange)
    engine = create_store_engine(strange)
    with read(engine) as session:
        assert session.connection().exec_driver_sql("SELECT count(*) FROM configurations").scalar() == 0
    engine.dispose()
    assert strange.stat().st_size > 0


def test_file_that_cannot_use_wal_is_refused(tmp_path: Path) -> None:
    with (
        closing(sqlite3.connect(":memory:")) as connection,
        pytest.raises(StoreUnavailableError, match="SQLite answered 'memory'"),
    ):
        demand_wal(tmp_path, connection)


@pytest.mark.parametrize(
    ("pragma", "error"),
    [
        ("application_id = 7", ForeignStoreError),
        (f"user_version = {USER_VERSION + 1}", NewerStoreError),
        (f"user_version = {USER_VERSION - 1}", StoreUnavailableError),
    ],
)
def test_connection_and_pooled_writer_refuse_another_version(
    engine: Engine, path: Path, pragma: str, error: type[StoreError]
) -> None:
    with write(engine):
        pass  # leaves a connection in the pool, as a running server has
    with closing(connect(path)) as connection:
        connection.execute(f"PRAGMA {pragma}")
    with pytest.raises(error), write(engine):
        pytest.fail("the body must not run")
    engine.dispose()
    with pytest.raises(error), read(engine):
        pytest.fail("the body must not run")


def test_refused_connection_is_closed(path: Path) -> None:
    with closing(connect(path)) as connection:
        connection.execute("PRAGMA application_id = 7")
    engine, before = create_store_engine(path), len(os.listdir("/proc/self/fd"))
    for _ in range(5):
        with pytest.raises(ForeignStoreError), read(engine):
            pytest.fail("the body must not run")
    assert len(os.listdir("/proc/self/fd")) == before


def test_pool_serves_each_thread_of_the_web_framework() -> None:
    assert engine_module._POOLED_CONNECTIONS + engine_module._EXTRA_CONNECTIONS == 40
