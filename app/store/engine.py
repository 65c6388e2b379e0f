"""Connections to the one SQLite file: every pragma in one place, and who says BEGIN."""

import sqlite3
import threading
from dataclasses import dataclass, field
from pathlib import Path

from sqlalchemy import Connection, Engine, NullPool, Pool, QueuePool, create_engine, event

from app.store.errors import StoreUnavailableError
from app.store.stamp import refuse_other_version

BUSY_TIMEOUT_MS = 5_000
FACTS_OPTION = "store_facts"
WRITES_OPTION = "store_writes"

# One connection for each of the 40 threads in which the web framework runs sync work, most of them short-lived.
_POOLED_CONNECTIONS = 8
_EXTRA_CONNECTIONS = 32


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
