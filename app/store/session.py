"""The two ways into the database: `read`, which cannot write, and `write`, which has the lock before it reads."""

import random
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import cast

from sqlalchemy import Engine
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError
from sqlalchemy.orm import Session

from app.store.engine import WRITES_OPTION, EngineFacts, facts_of
from app.store.errors import CorruptStoreError, StoreBusyError, StoreError, StoreUnavailableError
from app.store.lock import exclusive, lock_path
from app.store.stamp import refuse_other_version

WRITE_ATTEMPTS = 2
_LONGEST_PAUSE_S = 0.05

_BUSY = frozenset({sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED})
_CORRUPT = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB})
_UNAVAILABLE = frozenset({sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_READONLY})


@contextmanager
def read(engine: Engine) -> Iterator[Session]:
    """A session that sees one unchanging moment of the database and is refused any write by SQLite itself.

    Raises:
        StoreBusyError, CorruptStoreError, StoreUnavailableError: as SQLite answered.
    """
    with _named_errors(writes=False), Session(engine) as session:
        session.connection()
        yield session


@contextmanager
def write(engine: Engine, *, attempts: int = WRITE_ATTEMPTS) -> Iterator[Session]:
    """A session that holds the write lock from its first moment; commits at the end, rolls back on any exception.

    Keep it short: everyone else waits. Waiting takes at most busy_timeout in the queue of writers, and as much again
    for each attempt on the file, which then only a stranger (a shell, a backup tool) can hold.

    Raises:
        StoreBusyError: the lock could not be had; the body did not run.
        CorruptStoreError, StoreUnavailableError: as SQLite answered; nothing was committed.
        NewerStoreError: a later release has migrated the file under this process.
    """
    facts = facts_of(engine)
    with (
        _writers_turn(facts),
        _named_errors(writes=True),
        Session(engine.execution_options(**{WRITES_OPTION: True})) as session,
    ):
        _take_lock(session, attempts)
        refuse_other_version(facts.path, cast(sqlite3.Connection, session.connection().connection.driver_connection))
        yield session
        session.commit()


def name_error(error: sqlite3.Error, what: str = "The database") -> StoreError | None:
    """The store's name for an SQLite failure of `what`, or None for one that is a mistake of the caller."""
    code = _primary_code(error)
    if code in _BUSY:
        return StoreBusyError(f"{what} stayed locked by another process.")
    if code in _CORRUPT:
        return CorruptStoreError(f"{what} is damaged ({error}).")
    if code in _UNAVAILABLE:
        return StoreUnavailableError(f"{what} cannot be used ({error}).")
    return None


@contextmanager
def _writers_turn(facts: EngineFacts) -> Iterator[None]:
    deadline_s = time.monotonic() + facts.busy_timeout_ms / 1000
    if not facts.writer_turn.acquire(timeout=facts.busy_timeout_ms / 1000):
        raise StoreBusyError("The writers ahead in this process took too long.")
    try:
        with exclusive(lock_path(facts.path), max(deadline_s - time.monotonic(), 0)):
            yield
    finally:
        facts.writer_turn.release()


def _take_lock(session: Session, attempts: int) -> None:
    """BEGIN IMMEDIATE has succeeded: from here on no statement of this session can meet a lock."""
    for attempt in range(1, attempts + 1):
        try:
            session.connection()
        except DBAPIError as error:
            named = name_error(error.orig) if isinstance(error.orig, sqlite3.Error) else None
            if attempt == attempts or not isinstance(named, StoreBusyError):
                raise
            session.rollback()
            time.sleep(random.uniform(0, _LONGEST_PAUSE_S))  # noqa: S311 (spreads the writers, hides nothing)
        else:
            return


@contextmanager
def _named_errors(*, writes: bool) -> Iterator[None]:
    try:
        yield
    except (DBAPIError, sqlite3.Error) as error:
        cause = error.orig if isinstance(error, DBAPIError) else error
        named = name_error(cause) if isinstance(cause, sqlite3.Error) else None
        # "Read-only" in a reading session is our own query_only: a mistake in the code, not a fault of the disk.
        if named is None or (not writes and _primary_code(cause) == sqlite3.SQLITE_READONLY):
            raise
        raise named from error
    except PoolTimeoutError as error:
        raise StoreBusyError("Every connection to the database is in use.") from error


def _primary_code(error: BaseException | None) -> int:
    # The low byte of an extended code: BUSY_SNAPSHOT and BUSY_RECOVERY are BUSY too.
    return getattr(error, "sqlite_errorcode", 0) & 0xFF
