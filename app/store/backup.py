"""Copies of a living database, each whole, checked, and in one file."""

import os
import sqlite3
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

from app.store.database import connect, name_error
from app.store.errors import CorruptStoreError, StoreUnavailableError

_PARTIAL = ".partial"


def backup(path: Path, folder: Path, keep: int) -> Path:
    """The new copy, `<stem>-<UTC time><suffix>` in `folder`, after which at most `keep` (at least 1) copies remain.

    Writers go on meanwhile: the copy shows the moment at which it began. To restore, stop the server, remove the
    database with its -wal and -shm files, and put a copy in its place. What a link's owner revokes stays in older
    copies until they are rotated out.

    Raises:
        StoreUnavailableError: the source cannot be read or the folder cannot be written.
        CorruptStoreError: the copy did not pass integrity_check; it was removed and older copies were kept.
    """
    moment = datetime.now(UTC).strftime("%Y%m%dT%H%M%S.%fZ")
    target = folder / f"{path.stem}-{moment}{path.suffix}"
    partial = target.with_name(f"{target.name}.{os.getpid()}{_PARTIAL}")
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        os.close(os.open(partial, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        try:
            _copy(path, partial)
            _sync(partial)
            partial.replace(target)
        finally:
            partial.unlink(missing_ok=True)
        _sync(folder)
        _rotate(path, folder, max(keep, 1))
    except OSError as error:
        raise StoreUnavailableError(f"No backup could be written to {folder} ({error.strerror}).") from error
    except sqlite3.Error as error:
        raise name_error(error, str(path)) or StoreUnavailableError(f"{path} could not be copied ({error}).") from error
    return target


def copies(path: Path, folder: Path) -> list[Path]:
    """The finished copies of this database, oldest first."""
    return sorted(folder.glob(f"{path.stem}-????????T??????.??????Z{path.suffix}"))


def _copy(source_path: Path, target_path: Path) -> None:
    with closing(connect(source_path)) as source, closing(connect(target_path)) as target:
        # One step for all pages: in WAL mode it blocks nobody, and unlike small steps it never has to start again.
        source.backup(target, pages=-1)
        # The copy is in WAL mode as its source; so that it is one file, it leaves it (and the store turns it back on).
        target.execute("PRAGMA journal_mode = DELETE")
        problems = [text for (text,) in target.execute("PRAGMA integrity_check(5)")]
    if problems != ["ok"]:
        raise CorruptStoreError(f"The copy of {source_path} is damaged: {'; '.join(problems)}.")


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _rotate(path: Path, folder: Path, keep: int) -> None:
    for old in copies(path, folder)[:-keep]:
        old.unlink(missing_ok=True)
