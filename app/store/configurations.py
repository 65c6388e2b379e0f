"""Saved configurations: made, read, replaced, revoked and purged. Frozen records go out, rows stay in."""

from collections.abc import Callable
from datetime import UTC, datetime

from sqlalchemy import Engine, delete, or_, select
from sqlalchemy.orm import Session

from app.store.errors import ExpiredError, NotFoundError, WrongEditTokenError
from app.store.records import Contents, Created, Gone, Saved, saved_of
from app.store.session import read, write
from app.store.tables import EMPTY_OBJECT, Configuration
from app.store.tokens import digest, new_token, parse_token, same_token

PURGE_BATCH_ROWS = 500


def utc_now() -> datetime:
    """This moment in UTC."""
    return datetime.now(UTC)


class Configurations:
    """The repository of saved links. `now` tells the time with a zone; tests turn it.

    Every method may raise StoreBusyError, StoreUnavailableError or CorruptStoreError; then nothing was changed.
    """

    def __init__(self, engine: Engine, now: Callable[[], datetime] = utc_now) -> None:
        self._engine, self._now = engine, now

    def create(self, contents: Contents) -> Created:
        """The slug and the edit token of a new link, once it is safely on the disk.

        Raises:
            UnstorableError: a value is too long, not JSON, or already expired.
        """
        now, slug, edit_token = self._now(), new_token(), new_token()
        columns = contents.columns(now)
        row = Configuration(
            slug_sha256=digest(slug),
            edit_token_sha256=digest(edit_token),
            created_at=now,
            updated_at=now,
            **columns,
        )
        with write(self._engine) as session:
            session.add(row)
        return Created(slug=slug, edit_token=edit_token, created_at=now, expires_at=columns["expires_at"])

    def get(self, slug: str) -> Saved | Gone | None:
        """What the link shows; Gone after its expiry; None for a wrong, malformed or revoked slug, all alike."""
        key = parse_token(slug)
        if key is None:
            return None
        with read(self._engine) as session:
            row = _find(session, key)
            if row is None:
                return None
            expired_at = _expiry_passed(row, self._now())
            return saved_of(row) if expired_at is None else Gone(expired_at)

    def replace(self, slug: str, edit_token: str, contents: Contents) -> Saved:
        """What the same link shows from now on; nothing of the old contents or of the old expiry remains.

        Raises:
            NotFoundError: no such link; its subclass ExpiredError once the link has expired.
            WrongEditTokenError: the link is someone else's.
            UnstorableError: as in `create`.
        """
        now = self._now()
        columns = contents.columns(now)
        with write(self._engine) as session:
            row = _find_for_edit(session, slug, edit_token)
            expired_at = _expiry_passed(row, now)
            if expired_at is not None:
                raise ExpiredError(expired_at)
            for name, value in columns.items():
                setattr(row, name, value)
            row.updated_at = now
            return saved_of(row)

    def revoke(self, slug: str, edit_token: str) -> None:
        """Nothing is left of the link's contents; to strangers it never was. An expired link may still be revoked.

        Raises:
            NotFoundError: no such link, or it was revoked before.
            WrongEditTokenError: the link is someone else's.
        """
        now = self._now()
        with write(self._engine) as session:
            row = _find_for_edit(session, slug, edit_token)
            row.title = row.notes = ""
            row.scenario = row.headline = EMPTY_OBJECT
            row.updated_at = row.revoked_at = now

    def purge(self, before: datetime) -> int:
        """How many rows were deleted: those that expired or were revoked before this moment.

        The caller keeps a margin, so that an expired link answers "gone" for a while before it is forgotten.
        """
        dead = or_(Configuration.expires_at < before, Configuration.revoked_at < before)
        deleted = 0
        while True:
            # In batches: other writers get their turn between them.
            with write(self._engine) as session:
                ids = session.scalars(select(Configuration.id).where(dead).limit(PURGE_BATCH_ROWS)).all()
                session.execute(delete(Configuration).where(Configuration.id.in_(ids)))
            deleted += len(ids)
            if len(ids) < PURGE_BATCH_ROWS:
                return deleted


def _find(session: Session, key: bytes) -> Configuration | None:
    return session.scalar(
        select(Configuration).where(Configuration.slug_sha256 == key, Configuration.revoked_at.is_(None))
    )


def _find_for_edit(session: Session, slug: str, edit_token: str) -> Configuration:
    key = parse_token(slug)
    row = None if key is None else _find(session, key)
    if row is None:
        raise NotFoundError
    if not same_token(edit_token, row.edit_token_sha256):
        raise WrongEditTokenError
    return row


def _expiry_passed(row: Configuration, now: datetime) -> datetime | None:
    return row.expires_at if row.expires_at is not None and row.expires_at <= now else None
