"""What all secret links have in common: found by the digest of a slug, changed by an edit token, wiped, purged."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any, Generic, TypeVar

from sqlalchemy import Engine, delete, or_, select
from sqlalchemy.orm import Session

from app.store.errors import NotFoundError, WrongEditTokenError
from app.store.records import Created, Gone
from app.store.session import read, write
from app.store.tables import Link
from app.store.tokens import digest, new_token, parse_token, same_token

PURGE_BATCH_ROWS = 500

Row = TypeVar("Row", bound=Link)
Shown = TypeVar("Shown")


def utc_now() -> datetime:
    """This moment in UTC."""
    return datetime.now(UTC)


class Links(Generic[Row]):
    """The links of one table, or those of its rows that have the values `fixed`; the others are not there for it.

    Every method may raise StoreBusyError, StoreUnavailableError or CorruptStoreError; then nothing was changed.
    """

    def __init__(self, engine: Engine, table: type[Row], **fixed: str) -> None:
        self._engine, self._table, self._fixed = engine, table, fixed

    def add(self, columns: Mapping[str, Any], now: datetime) -> Created:
        """The slug and the edit token of a new link to these contents, once it is safely on the disk."""
        slug, edit_token = new_token(), new_token()
        row = self._table(
            slug_sha256=digest(slug),
            edit_token_sha256=digest(edit_token),
            created_at=now,
            **self._fixed,
            **columns,
        )
        with write(self._engine) as session:
            session.add(row)
        return Created(slug=slug, edit_token=edit_token, created_at=now, expires_at=columns["expires_at"])

    def get(self, slug: str, now: datetime, record_of: Callable[[Row], Shown]) -> Shown | Gone | None:
        """The record of a living row; Gone after its expiry; None for a wrong, malformed or revoked slug, all alike."""
        key = parse_token(slug)
        if key is None:
            return None
        with read(self._engine) as session:
            row = self._find(session, key)
            if row is None:
                return None
            expired_at = expiry_passed(row, now)
            return record_of(row) if expired_at is None else Gone(expired_at)

    @contextmanager
    def editing(self, slug: str, edit_token: str) -> Iterator[Row]:
        """The row of a link that is not revoked, expired or not; what is changed in it is saved at the end.

        Raises:
            NotFoundError: no such link.
            WrongEditTokenError: the link is someone else's.
        """
        key = parse_token(slug)
        with write(self._engine) as session:
            row = None if key is None else self._find(session, key)
            if row is None:
                raise NotFoundError
            if not same_token(edit_token, row.edit_token_sha256):
                raise WrongEditTokenError
            yield row

    def revoke(self, slug: str, edit_token: str, now: datetime) -> None:
        """Nothing is left of the link's contents; to strangers it never was. An expired link may still be revoked.

        Raises:
            NotFoundError: no such link, or it was revoked before.
            WrongEditTokenError: the link is someone else's.
        """
        with self.editing(slug, edit_token) as row:
            for name, value in row.wiped.items():
                setattr(row, name, value)
            row.revoked_at = now

    def purge(self, before: datetime) -> int:
        """How many rows were deleted: those that expired or were revoked before this moment.

        The caller keeps a margin, so that an expired link answers "gone" for a while before it is forgotten.
        """
        table = self._table
        dead = (
            select(table.id).filter_by(**self._fixed).where(or_(table.expires_at < before, table.revoked_at < before))
        )
        deleted = 0
        while True:
            # In batches: other writers get their turn between them.
            with write(self._engine) as session:
                ids = session.scalars(dead.limit(PURGE_BATCH_ROWS)).all()
                session.execute(delete(table).where(table.id.in_(ids)))
            deleted += len(ids)
            if len(ids) < PURGE_BATCH_ROWS:
                return deleted

    def _find(self, session: Session, key: bytes) -> Row | None:
        alive = select(self._table).filter_by(slug_sha256=key, **self._fixed).where(self._table.revoked_at.is_(None))
        return session.scalar(alive)


def expiry_passed(row: Link, now: datetime) -> datetime | None:
    """When the row expired; None while it is alive."""
    return row.expires_at if row.expires_at is not None and row.expires_at <= now else None
