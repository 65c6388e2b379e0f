"""The file as a whole: brought to this release's tables at the start, under a lock and after a backup; and whether
it works at this moment, asked of the disk.
"""

import secrets
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy import Engine, select
from sqlalchemy.exc import DBAPIError

from app.store.backup import backup
from app.store.database import (
    APPLICATION_ID,
    HEAD_REVISION,
    REVISIONS,
    USER_VERSION,
    connect,
    demand_wal,
    facts_of,
    name_error,
    pragma_int,
    write,
)
from app.store.disk import exclusive, lock_path, warn_unless_local
from app.store.errors import CorruptStoreError, ForeignStoreError, NewerStoreError, StoreError, StoreUnavailableError
from app.store.tables import EMPTY_OBJECT, Configuration

if TYPE_CHECKING:
    from alembic.config import Config

BACKUPS_KEPT = 5
LOCK_TIMEOUT_S = 60.0
SCRIPTS = Path(__file__).resolve().parents[2] / "migrations"
# A rolled-back write stays in memory, so it cannot notice a full disk. Room for the log to grow to its usual 4 MiB.
FREE_BYTES_WANTED = 8 * 1024**2


@dataclass(frozen=True, slots=True)
class Stamp:
    """What the file says of itself."""

    application_id: int
    user_version: int
    revision: str | None
    journal_mode: str
    tables: int

    @property
    def is_new(self) -> bool:
        """Whether nobody has put anything into the file yet."""
        return self.application_id == 0 and self.tables == 0 and self.user_version == 0

    @property
    def is_head(self) -> bool:
        """Whether the file is just what this release expects, with nothing left to do."""
        return self == Stamp(APPLICATION_ID, USER_VERSION, HEAD_REVISION, "wal", self.tables)


def read_stamp(connection: sqlite3.Connection) -> Stamp:
    """The stamp of an open database.

    Raises:
        sqlite3.DatabaseError: the file is no database, or its first pages are damaged.
    """
    tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]
    revision = None
    if "alembic_version" in tables:
        revision = ",".join(sorted(name for (name,) in connection.execute("SELECT version_num FROM alembic_version")))
    return Stamp(
        application_id=pragma_int(connection, "application_id"),
        user_version=pragma_int(connection, "user_version"),
        revision=revision or None,
        journal_mode=str(connection.execute("PRAGMA journal_mode").fetchone()[0]),
        tables=len(tables),
    )


def refuse_stranger(path: Path, stamp: Stamp) -> None:
    """Nothing, where this release may migrate the file.

    Raises:
        ForeignStoreError: the file belongs to another program.
        NewerStoreError: a later release has migrated it.
    """
    if stamp.is_new:
        return
    if stamp.application_id != APPLICATION_ID:
        raise ForeignStoreError(path, f"its application id is {stamp.application_id:#010x}")
    known_revision = stamp.revision is None or stamp.revision in REVISIONS
    if not known_revision or stamp.user_version > USER_VERSION:
        raise NewerStoreError(
            path,
            found=f"revision {stamp.revision} (user_version {stamp.user_version})",
            known=f"revision {HEAD_REVISION} (user_version {USER_VERSION})",
        )


@dataclass(frozen=True, slots=True)
class Migration:
    """What was done to the file: from which revision to which (None is an empty file), and the copy taken before."""

    before: str | None
    after: str | None
    backup: Path | None = None


def migrate(path: Path, *, backups: Path | None = None, lock_timeout_s: float = LOCK_TIMEOUT_S) -> Migration:
    """What was done so that the file exists, is sound, and is at HEAD_REVISION; equal revisions if nothing was.

    Copies go to `backups`, by default backups/before-migration beside the file, so that they never push out a copy that
    somebody else took. Several processes may call at once.

    Raises:
        CorruptStoreError: the file is damaged; it was left as it is.
        ForeignStoreError, NewerStoreError: the file is not for this program or this release to touch.
        StoreUnavailableError: the folder cannot be written. StoreBusyError: another process would not finish.
    """
    with _named_errors(path):
        if path.exists() and _inspect(path).is_head:
            warn_unless_local(path)
            return Migration(HEAD_REVISION, HEAD_REVISION)
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        warn_unless_local(path)
        with exclusive(lock_path(path), lock_timeout_s):
            # Asked again: while we waited, another process may have done it all.
            stamp = _initialise(path)
            if stamp.is_head:
                return Migration(HEAD_REVISION, HEAD_REVISION)
            copies = backups or path.parent / "backups" / "before-migration"
            copy = None if stamp.revision is None else backup(path, copies, BACKUPS_KEPT)
            _upgrade(path)
            return Migration(stamp.revision, HEAD_REVISION, copy)


def alembic_config(path: Path) -> "Config":
    """What alembic must know to work on this file, the same whatever the current folder is."""
    # Imported on use alone: alembic takes longer than the whole start of a server whose file is up to date.
    from alembic.config import Config

    config = Config(attributes={"path": path})
    config.set_main_option("script_location", str(SCRIPTS).replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    return config


def _inspect(path: Path) -> Stamp:
    """The stamp of a sound file that this release may touch."""
    with closing(connect(path)) as connection:
        stamp = read_stamp(connection)
        refuse_stranger(path, stamp)
        # Reads the whole file, so the time grows with it; a damaged page is met here and not by a visitor.
        problems = [text for (text,) in connection.execute("PRAGMA quick_check(5)")]
    if problems != ["ok"]:
        raise CorruptStoreError(f"{path} is damaged: {'; '.join(problems)}.")
    return stamp


def _initialise(path: Path) -> Stamp:
    """The stamp of the file, made if need be, signed as ours and in WAL mode."""
    if not path.exists():
        path.touch(mode=0o600)  # the log files take their mode from it
    stamp = _inspect(path)
    with closing(connect(path)) as connection:
        # The lock matters here too: SQLite does not wait for other connections while it switches to WAL.
        demand_wal(path, connection)
        if stamp.is_new:
            connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        return read_stamp(connection)


def _upgrade(path: Path) -> None:
    from alembic import command

    command.upgrade(alembic_config(path), "head")


@contextmanager
def _named_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise StoreUnavailableError(f"{path} cannot be opened or made ({error.strerror}).") from error
    except (sqlite3.Error, DBAPIError) as error:
        cause = error.orig if isinstance(error, DBAPIError) else error
        named = name_error(cause, str(path)) if isinstance(cause, sqlite3.Error) else None
        raise named or StoreUnavailableError(f"{path} cannot be migrated ({cause}).") from error


@dataclass(frozen=True, slots=True)
class Readiness:
    """Whether the store can take a link, and if not, why in words for the operator."""

    ready: bool
    reason: str | None = None


def ready(engine: Engine, *, free_bytes_wanted: int = FREE_BYTES_WANTED) -> Readiness:
    """The store's readiness after a real write and read that leave nothing behind."""
    try:
        _demand_same_file(engine)
        _demand_room(engine, free_bytes_wanted)
        _write_read_and_forget(engine)
    except StoreError as error:
        return Readiness(False, str(error))
    return Readiness(True)


class _ForgetError(Exception):
    """Leaves a writing session without a commit."""


def _demand_same_file(engine: Engine) -> None:
    # Open connections go on working in a file that was deleted or replaced, and all that they take is lost.
    facts = facts_of(engine)
    try:
        status = facts.path.stat()
    except OSError as error:
        raise StoreUnavailableError(f"{facts.path} is gone ({error.strerror}).") from error
    if (status.st_dev, status.st_ino) != facts.device_and_inode:
        raise StoreUnavailableError(f"{facts.path} was replaced under the running server; restart it.")


def _demand_room(engine: Engine, free_bytes_wanted: int) -> None:
    folder = facts_of(engine).path.parent
    free_bytes = shutil.disk_usage(folder).free
    if free_bytes < free_bytes_wanted:
        raise StoreUnavailableError(f"{folder} has {free_bytes} bytes left, {free_bytes_wanted} are wanted.")


def _write_read_and_forget(engine: Engine) -> None:
    secret, now = secrets.token_bytes(32), datetime.now(UTC)
    try:
        with write(engine, attempts=1) as session:
            session.add(
                Configuration(
                    slug_sha256=secret,
                    edit_token_sha256=secret,
                    title="",
                    notes="",
                    scenario=EMPTY_OBJECT,
                    headline=EMPTY_OBJECT,
                    formula_version="",
                    catalog_version="",
                    created_at=now,
                    updated_at=now,
                )
            )
            session.flush()
            session.expire_all()
            if session.scalar(select(Configuration.scenario).where(Configuration.slug_sha256 == secret)) is None:
                raise StoreUnavailableError("A row that was just written cannot be read.")
            raise _ForgetError
    except _ForgetError:
        return
