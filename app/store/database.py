"""Connections to the one SQLite file, and the two ways in: `read`, which cannot write, and `write`, which has the lock
before it reads.
"""

import random
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

from sqlalchemy import Connection, Engine, NullPool, Pool, QueuePool, create_engine, event
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError
from sqlalchemy.orm import Session

from app.store.disk import exclusive, lock_path
from app.store.errors import (
    CorruptStoreError,
    ForeignStoreError,
    NewerStoreError,
    StoreBusyError,
    StoreError,
    StoreUnavailableError,
)

APPLICATION_ID = 0x746B7266  # "tkrf" in the header of every file that is ours

# Every revision in order, kept here because importing alembic takes longer than a start may. A test compares the list
# with migrations/versions. A file's user_version is the number of revisions that it has been through.
REVISIONS = (
    "20261129_create_configurations",
    "20261129_guard_revoked",
    "20261130_create_shared_documents",
    "20261130_create_live_samples",
)
HEAD_REVISION = REVISIONS[-1]
USER_VERSION = len(REVISIONS)

BUSY_TIMEOUT_MS = 5_000
FACTS_OPTION = "store_facts"
WRITES_OPTION = "store_writes"

# One connection for each of the 40 threads in which the web framework runs sync work, most of them short-lived.
_POOLED_CONNECTIONS = 8
_EXTRA_CONNECTIONS = 32

WRITE_ATTEMPTS = 2
_LONGEST_PAUSE_S = 0.05

_BUSY = frozenset({sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED})
_CORRUPT = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB})
_UNAVAILABLE = frozenset({sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_READONLY})


@dataclass(frozen=True, slots=True)
class EngineFacts:
    """What the rest of the store must know of an engine: its file, which file that was, and its queue of writers."""

    path: Path
    device_and_inode: tuple[int, int]
    busy_timeout_ms: int
    # Writers of one process queue here, where the next is woken at once, and one of them at the lock file.
    writer_turn: threading.Lock = field(default_factory=threading.Lock, compare=False, repr=False)


def create_store_engine(path: Path, *, busy_timeout_ms: int = BUSY_TIMEOUT_MS, for_migration: bool = False) -> Engine:
    """The engine of a database that `migrate` has brought to this release; it never makes a file.

    With `for_migration` the release is not compared, foreign keys are not enforced (SQLite can switch them only
    outside a transaction, and rebuilding a table would cascade into its children), and every transaction writes.

    Raises:
        StoreUnavailableError: there is no file, or it cannot be opened.
    """
    path = path.resolve()
    try:
        status = path.stat()
    except OSError as error:
        raise StoreUnavailableError(f"{path} cannot be opened ({error.strerror}); `migrate` makes it.") from error
    facts = EngineFacts(path, (status.st_dev, status.st_ino), busy_timeout_ms)
    pool: type[Pool] = NullPool if for_migration else QueuePool
    sizes = {} if for_migration else {"pool_size": _POOLED_CONNECTIONS, "max_overflow": _EXTRA_CONNECTIONS}

    def prepared() -> sqlite3.Connection:
        connection = connect(path, busy_timeout_ms)
        try:
            demand_wal(path, connection)
            connection.execute(f"PRAGMA foreign_keys = {'OFF' if for_migration else 'ON'}")
            if not for_migration:
                refuse_other_version(path, connection)
        except BaseException:
            connection.close()
            raise
        return connection

    engine = create_engine(
        "sqlite+pysqlite://",
        creator=prepared,
        poolclass=pool,
        execution_options={FACTS_OPTION: facts, WRITES_OPTION: for_migration},
        **sizes,
    )

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        # A deferred transaction that reads and then writes fails at once with SQLITE_BUSY_SNAPSHOT, whatever the
        # timeout. So writers take the lock before they read, and readers are made unable to write at all.
        writes = connection.get_execution_options()[WRITES_OPTION]
        connection.exec_driver_sql(f"PRAGMA query_only = {'OFF' if writes else 'ON'}")
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")

    return engine


def facts_of(engine: Engine) -> EngineFacts:
    """The facts of an engine that `create_store_engine` made."""
    facts: EngineFacts = engine.get_execution_options()[FACTS_OPTION]
    return facts


def connect(path: Path, busy_timeout_ms: int = BUSY_TIMEOUT_MS) -> sqlite3.Connection:
    """A plain connection with the pragmas that hold for every use; transactions are the caller's own words.

    It never makes a file: where one was deleted under a running server, an empty one would hide the loss.

    Raises:
        sqlite3.OperationalError: the file is missing (and `create` is false) or out of reach.
    """
    connection = sqlite3.connect(
        f"{path.resolve().as_uri()}?mode=rw", uri=True, isolation_level=None, check_same_thread=False
    )
    try:
        for pragma in (
            f"busy_timeout = {busy_timeout_ms}",  # first: the others may meet a lock
            "trusted_schema = OFF",
            # FULL rather than NORMAL: each write of ours answers a person with a link, and the link must survive a
            # power cut. In WAL mode it costs one fsync a commit and nothing at all for readers.
            "synchronous = FULL",
            # A wiped row is overwritten with zeros, not only unlinked.
            "secure_delete = ON",
        ):
            connection.execute(f"PRAGMA {pragma}")
    except BaseException:
        connection.close()
        raise
    return connection


def demand_wal(path: Path, connection: sqlite3.Connection) -> None:
    """Nothing, where the database is in WAL mode or could be put into it.

    Raises:
        StoreUnavailableError: SQLite answered with another mode, as it does where shared memory does not work.
    """
    mode = connection.execute("PRAGMA journal_mode = WAL").fetchone()[0]
    if mode != "wal":
        raise StoreUnavailableError(f"{path} cannot use WAL (SQLite answered {mode!r}); is it on a network disk?")


def refuse_other_version(path: Path, connection: sqlite3.Connection) -> None:
    """Nothing, where the file is at this release's user_version.

    Asked by every new connection and every writer, for some microseconds: a file may be migrated under a running
    server, whose old connections would go on writing by the old rules.

    Raises:
        ForeignStoreError: the file belongs to another program.
        NewerStoreError: a later release has migrated it.
        StoreUnavailableError: the file is at an earlier release.
    """
    application_id, user_version = pragma_int(connection, "application_id"), pragma_int(connection, "user_version")
    if application_id not in (0, APPLICATION_ID):
        raise ForeignStoreError(path, f"its application id is {application_id:#010x}")
    if user_version > USER_VERSION:
        raise NewerStoreError(path, found=f"user_version {user_version}", known=f"user_version {USER_VERSION}")
    if user_version < USER_VERSION:
        raise StoreUnavailableError(f"{path} is at an earlier release; `migrate` brings it up to date.")


def pragma_int(connection: sqlite3.Connection, name: str) -> int:
    """The value of a pragma that is a number."""
    return int(connection.execute(f"PRAGMA {name}").fetchone()[0])


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
