"""Which program and which release a database file belongs to, read in microseconds and without alembic."""

import sqlite3
from dataclasses import dataclass
from pathlib import Path

from app.store.errors import ForeignStoreError, NewerStoreError, StoreUnavailableError

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
        application_id=_pragma_int(connection, "application_id"),
        user_version=_pragma_int(connection, "user_version"),
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


def refuse_other_version(path: Path, connection: sqlite3.Connection) -> None:
    """Nothing, where the file is at this release's user_version.

    Asked by every new connection and every writer, for some microseconds: a file may be migrated under a running
    server, whose old connections would go on writing by the old rules.

    Raises:
        ForeignStoreError, NewerStoreError: as in `refuse_stranger`.
        StoreUnavailableError: the file is at an earlier release.
    """
    application_id, user_version = _pragma_int(connection, "application_id"), _pragma_int(connection, "user_version")
    if application_id not in (0, APPLICATION_ID):
        raise ForeignStoreError(path, f"its application id is {application_id:#010x}")
    if user_version > USER_VERSION:
        raise NewerStoreError(path, found=f"user_version {user_version}", known=f"user_version {USER_VERSION}")
    if user_version < USER_VERSION:
        raise StoreUnavailableError(f"{path} is at an earlier release; `migrate` brings it up to date.")


def _pragma_int(connection: sqlite3.Connection, name: str) -> int:
    return int(connection.execute(f"PRAGMA {name}").fetchone()[0])
