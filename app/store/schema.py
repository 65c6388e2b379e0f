"""The file brought to this release's tables: at once where it is there already, else under a lock, after a backup."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy.exc import DBAPIError

from app.store.backup import backup
from app.store.engine import connect, demand_wal
from app.store.errors import CorruptStoreError, StoreUnavailableError, UnknownRevisionError
from app.store.filesystem import warn_unless_local
from app.store.lock import exclusive, lock_path
from app.store.session import name_error
from app.store.stamp import APPLICATION_ID, HEAD_REVISION, REVISIONS, Stamp, read_stamp, refuse_stranger

if TYPE_CHECKING:
    from alembic.config import Config

__all__ = ["HEAD_REVISION", "Migration", "alembic_config", "downgrade", "migrate"]

BACKUPS_KEPT = 5
LOCK_TIMEOUT_S = 60.0
SCRIPTS = Path(__file__).resolve().parents[2] / "migrations"


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
            copy = None if stamp.revision is None else backup(path, _backup_folder(path, backups), BACKUPS_KEPT)
            _run_alembic(path, "upgrade", "head")
            return Migration(stamp.revision, HEAD_REVISION, copy)


def downgrade(
    path: Path, revision: str, *, backups: Path | None = None, lock_timeout_s: float = LOCK_TIMEOUT_S
) -> Migration:
    """What was done to take the file back to an earlier revision ("base" is none at all), after a copy.

    Raises:
        UnknownRevisionError, and all of `migrate`.
    """
    known = ("base", *REVISIONS)
    if revision not in known:
        raise UnknownRevisionError(revision, known)
    with _named_errors(path), exclusive(lock_path(path), lock_timeout_s):
        stamp = _inspect(path)
        copy = backup(path, _backup_folder(path, backups), BACKUPS_KEPT)
        _run_alembic(path, "downgrade", revision)
        return Migration(stamp.revision, _inspect(path).revision, copy)


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


def _run_alembic(path: Path, direction: str, revision: str) -> None:
    from alembic import command

    (command.upgrade if direction == "upgrade" else command.downgrade)(alembic_config(path), revision)


def _backup_folder(path: Path, backups: Path | None) -> Path:
    return path.parent / "backups" / "before-migration" if backups is None else backups


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
