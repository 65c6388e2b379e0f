"""Documents that people show to others by a secret link: a frozen live reading, a fitted efficiency. Never edited."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from sqlalchemy import Engine

from app.store.links import Links, utc_now
from app.store.records import Created, Gone, LinkContents
from app.store.tables import DOCUMENT_MAX_CHARS, SharedRow
from app.store.values import fitting_json

Kind = Literal["snapshot", "calibration"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedContents(LinkContents):
    """What a link shows. The document is stored as it is: whoever makes it leaves out what nobody else may know."""

    document: Mapping[str, Any]

    def columns(self, now: datetime) -> dict[str, Any]:
        """The values of the columns of the same names.

        Raises:
            UnstorableError: a value is too long, not finite, not Unicode text, or already expired at `now`.
        """
        return {
            **LinkContents.columns(self, now),
            "document": fitting_json("document", self.document, DOCUMENT_MAX_CHARS),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedDocument(SharedContents):
    """A link that is alive."""

    created_at: datetime


class SharedDocuments:
    """The repository of the shared documents of one kind; those of another are not there for it.

    Every method may raise StoreBusyError, StoreUnavailableError or CorruptStoreError; then nothing was changed.
    """

    def __init__(self, engine: Engine, kind: Kind, now: Callable[[], datetime] = utc_now) -> None:
        self._links, self._now = Links(engine, SharedRow, kind=kind), now

    def create(self, contents: SharedContents) -> Created:
        """The slug and the edit token of a new link, once it is safely on the disk.

        Raises:
            UnstorableError: a value is too long, not JSON, or already expired.
        """
        now = self._now()
        return self._links.add(contents.columns(now), now)

    def get(self, slug: str) -> SharedDocument | Gone | None:
        """What the link shows; Gone after its expiry; None for a wrong, malformed or revoked slug, all alike."""
        return self._links.get(slug, self._now(), _document_of)

    def revoke(self, slug: str, edit_token: str) -> None:
        """Nothing is left of the link's contents; to strangers it never was. An expired link may still be revoked.

        Raises:
            NotFoundError: no such link of this kind, or it was revoked before.
            WrongEditTokenError: the link is someone else's.
        """
        self._links.revoke(slug, edit_token, self._now())

    def purge(self, before: datetime) -> int:
        """How many rows of this kind were deleted: those that expired or were revoked before this moment."""
        return self._links.purge(before)


def _document_of(row: SharedRow) -> SharedDocument:
    return SharedDocument(
        title=row.title,
        document=json.loads(row.document),
        formula_version=row.formula_version,
        catalog_version=row.catalog_version,
        expires_at=row.expires_at,
        created_at=row.created_at,
    )
