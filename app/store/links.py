"""What people keep behind a secret link: made, read, replaced, revoked and purged. Frozen records go out, rows stay in.

A link has two secrets of 130 bits: the slug, which shows it, and the edit token, which changes it. The file holds their
digests alone. A revoked row is wiped, and to strangers it never was.
"""

import hashlib
import hmac
import json
import re
import secrets
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Literal

from sqlalchemy import Engine, delete, or_, select
from sqlalchemy.orm import Session

from app.store.database import read, write
from app.store.errors import ExpiredError, NotFoundError, WrongEditTokenError
from app.store.tables import (
    DOCUMENT_MAX_CHARS,
    HEADLINE_MAX_CHARS,
    NOTES_MAX_CHARS,
    SCENARIO_MAX_CHARS,
    TITLE_MAX_CHARS,
    VERSION_MAX_CHARS,
    Configuration,
    Link,
    SharedRow,
    fitting,
    fitting_json,
    future,
)

LinkName = Literal["configuration", "snapshot", "calibration"]
PURGE_BATCH_ROWS = 500
# Crockford's base 32 in lower case: no look-alikes, a double click selects the whole token, and no chat program cuts a
# trailing "-" or reads "_" as emphasis. No URL literal (":slug", "..", "new") can be a token.
ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"
TOKEN_CHARS = 26  # 26 × 5 bits = 130 bits
_TOKEN = re.compile(f"[{ALPHABET}]{{{TOKEN_CHARS}}}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Contents:
    """What a link shows. The document is stored as it is: whoever makes it leaves out what nobody else may know.

    That of a configuration is `scenario` (normalised), `notes` and `headline` (the numbers that were on the screen).
    """

    title: str
    document: Mapping[str, Any]
    formula_version: str
    catalog_version: str
    expires_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Saved(Contents):
    """A link that is alive. `updated_at` is `created_at` where the kind is never edited."""

    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Created:
    """The two secrets of a new link, in clear for the only time: the store keeps their digests."""

    slug: str = field(repr=False)
    edit_token: str = field(repr=False)
    created_at: datetime
    expires_at: datetime | None


@dataclass(frozen=True, slots=True)
class Gone:
    """A link that was alive until `expired_at` (UTC)."""

    expired_at: datetime


def utc_now() -> datetime:
    """This moment in UTC."""
    return datetime.now(UTC)


class Links:
    """The links of one kind; those of another are not there for it. `now` tells the time with a zone; tests turn it.

    Every method may raise StoreBusyError, StoreUnavailableError or CorruptStoreError; then nothing was changed.
    """

    def __init__(self, engine: Engine, kind: LinkName, now: Callable[[], datetime] = utc_now) -> None:
        self._engine, self._kind, self._now = engine, kind, now
        self._table: type[Link] = Configuration if kind == "configuration" else SharedRow
        self._fixed = {} if kind == "configuration" else {"kind": kind}

    def create(self, contents: Contents) -> Created:
        """The slug and the edit token of a new link, once it is safely on the disk.

        Raises:
            UnstorableError: a value is too long, not JSON, not Unicode text, or already expired.
        """
        now = self._now()
        slug, edit_token = new_token(), new_token()
        columns = columns_of(self._kind, contents, now)
        row = self._table(
            slug_sha256=digest(slug), edit_token_sha256=digest(edit_token), created_at=now, **self._fixed, **columns
        )
        with write(self._engine) as session:
            session.add(row)
        return Created(slug=slug, edit_token=edit_token, created_at=now, expires_at=columns["expires_at"])

    def get(self, slug: str) -> Saved | Gone | None:
        """What the link shows; Gone after its expiry; None for a wrong, malformed or revoked slug, all alike."""
        key, now = parse_token(slug), self._now()
        if key is None:
            return None
        with read(self._engine) as session:
            row = self._find(session, key)
            if row is None:
                return None
            expired_at = _expiry_passed(row, now)
            return _saved_of(row) if expired_at is None else Gone(expired_at)

    def replace(self, slug: str, edit_token: str, contents: Contents) -> Saved:
        """What the same link shows from now on; nothing of the old contents or of the old expiry remains.

        Raises:
            NotFoundError: no such link; its subclass ExpiredError once the link has expired.
            WrongEditTokenError: the link is someone else's.
            UnstorableError: as in `create`.
        """
        now = self._now()
        columns = columns_of(self._kind, contents, now)
        with self._editing(slug, edit_token) as row:
            expired_at = _expiry_passed(row, now)
            if expired_at is not None:
                raise ExpiredError(expired_at)
            _set(row, columns)
            return _saved_of(row)

    def revoke(self, slug: str, edit_token: str) -> None:
        """Nothing is left of the link's contents; to strangers it never was. An expired link may still be revoked.

        Raises:
            NotFoundError: no such link, or it was revoked before.
            WrongEditTokenError: the link is someone else's.
        """
        with self._editing(slug, edit_token) as row:
            _set(row, {**row.wiped, "revoked_at": self._now()})

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

    @contextmanager
    def _editing(self, slug: str, edit_token: str) -> Iterator[Link]:
        """The row of a link that is not revoked, expired or not; what is changed in it is saved at the end."""
        key = parse_token(slug)
        with write(self._engine) as session:
            row = None if key is None else self._find(session, key)
            if row is None:
                raise NotFoundError
            if not same_token(edit_token, row.edit_token_sha256):
                raise WrongEditTokenError
            yield row

    def _find(self, session: Session, key: bytes) -> Link | None:
        alive = select(self._table).filter_by(slug_sha256=key, **self._fixed).where(self._table.revoked_at.is_(None))
        return session.scalar(alive)


def columns_of(kind: LinkName, contents: Contents, now: datetime) -> dict[str, Any]:
    """The values of the columns of the same names; JSON as text of one spelling.

    Raises:
        UnstorableError: as in `Links.create`; `now` is the moment after which a link must end.
    """
    columns = {
        "title": fitting("title", contents.title, TITLE_MAX_CHARS),
        "formula_version": fitting("formula_version", contents.formula_version, VERSION_MAX_CHARS),
        "catalog_version": fitting("catalog_version", contents.catalog_version, VERSION_MAX_CHARS),
        "expires_at": future("expires_at", contents.expires_at, now),
    }
    document = contents.document
    if kind != "configuration":
        return {**columns, "document": fitting_json("document", document, DOCUMENT_MAX_CHARS)}
    return {
        **columns,
        "scenario": fitting_json("scenario", document["scenario"], SCENARIO_MAX_CHARS),
        "notes": fitting("notes", document["notes"], NOTES_MAX_CHARS),
        "headline": fitting_json("headline", document["headline"], HEADLINE_MAX_CHARS),
        "updated_at": now,
    }


def _set(row: Link, columns: Mapping[str, Any]) -> None:
    for name, value in columns.items():
        setattr(row, name, value)


def _expiry_passed(row: Link, now: datetime) -> datetime | None:
    return row.expires_at if row.expires_at is not None and row.expires_at <= now else None


def _saved_of(row: Link) -> Saved:
    """The record of a living row, with fresh copies of its JSON values."""
    document: dict[str, Any] = {}
    updated_at = row.created_at
    if isinstance(row, Configuration):
        document = {"scenario": json.loads(row.scenario), "notes": row.notes, "headline": json.loads(row.headline)}
        updated_at = row.updated_at
    elif isinstance(row, SharedRow):
        document = json.loads(row.document)
    return Saved(
        title=row.title,
        document=document,
        formula_version=row.formula_version,
        catalog_version=row.catalog_version,
        expires_at=row.expires_at,
        created_at=row.created_at,
        updated_at=updated_at,
    )


def new_token() -> str:
    """A fresh secret of 130 bits from the system's random source, 26 characters that are safe in a URL."""
    return "".join(secrets.choice(ALPHABET) for _ in range(TOKEN_CHARS))


def digest(token: str) -> bytes:
    """The 32 bytes of SHA-256 under which a token is stored.

    A bare hash is enough: nobody can try 2¹³⁰ tokens, so there is nothing for a salt or a slow hash to protect.
    """
    return hashlib.sha256(token.encode("ascii")).digest()


def parse_token(text: str) -> bytes | None:
    """The digest to look up, or None where `text` cannot be a token and the database need not be asked.

    The length is compared first, so a megabyte of text costs nothing.
    """
    if len(text) != TOKEN_CHARS or _TOKEN.fullmatch(text) is None:
        return None
    return digest(text)


def same_token(text: str, stored: bytes) -> bool:
    """Whether `text` is the token with this stored digest, compared in constant time."""
    offered = parse_token(text)
    return offered is not None and hmac.compare_digest(offered, stored)
