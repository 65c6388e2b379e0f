"""Saved configurations: made, read, replaced, revoked and purged. Frozen records go out, rows stay in."""

from collections.abc import Callable
from datetime import datetime

from sqlalchemy import Engine

from app.store.errors import ExpiredError
from app.store.links import Links, expiry_passed, utc_now
from app.store.records import Contents, Created, Gone, Saved, saved_of
from app.store.tables import Configuration


class Configurations:
    """The repository of saved links. `now` tells the time with a zone; tests turn it.

    Every method may raise StoreBusyError, StoreUnavailableError or CorruptStoreError; then nothing was changed.
    """

    def __init__(self, engine: Engine, now: Callable[[], datetime] = utc_now) -> None:
        self._links, self._now = Links(engine, Configuration), now

    def create(self, contents: Contents) -> Created:
        """The slug and the edit token of a new link, once it is safely on the disk.

        Raises:
            UnstorableError: a value is too long, not JSON, or already expired.
        """
        now = self._now()
        return self._links.add({**contents.columns(now), "updated_at": now}, now)

    def get(self, slug: str) -> Saved | Gone | None:
        """What the link shows; Gone after its expiry; None for a wrong, malformed or revoked slug, all alike."""
        return self._links.get(slug, self._now(), saved_of)

    def replace(self, slug: str, edit_token: str, contents: Contents) -> Saved:
        """What the same link shows from now on; nothing of the old contents or of the old expiry remains.

        Raises:
            NotFoundError: no such link; its subclass ExpiredError once the link has expired.
            WrongEditTokenError: the link is someone else's.
            UnstorableError: as in `create`.
        """
        now = self._now()
        columns = contents.columns(now)
        with self._links.editing(slug, edit_token) as row:
            expired_at = expiry_passed(row, now)
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
        self._links.revoke(slug, edit_token, self._now())

    def purge(self, before: datetime) -> int:
        """How many rows were deleted: those that expired or were revoked before this moment."""
        return self._links.purge(before)
