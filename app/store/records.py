"""What goes into the store and what comes out: frozen records, and the rules a value meets before it is written."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from app.store.errors import UnstorableError
from app.store.tables import (
    HEADLINE_MAX_CHARS,
    NOTES_MAX_CHARS,
    SCENARIO_MAX_CHARS,
    TITLE_MAX_CHARS,
    VERSION_MAX_CHARS,
    Configuration,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Contents:
    """What a link shows: the normalised scenario, the numbers that were on the screen, and by which versions."""

    scenario: Mapping[str, Any]
    title: str
    notes: str
    headline: Mapping[str, Any]
    formula_version: str
    catalog_version: str
    expires_at: datetime | None

    def columns(self, now: datetime) -> dict[str, Any]:
        """The values of the columns of the same names; JSON as text of one spelling (sorted keys, no spaces).

        Raises:
            UnstorableError: a value is too long, not finite, not Unicode text, or already expired at `now`.
        """
        if self.expires_at is not None and (self.expires_at.tzinfo is None or self.expires_at <= now):
            raise UnstorableError("expires_at must have a time zone and lie in the future.")
        return {
            "scenario": _fitting("scenario", _json_text("scenario", self.scenario), SCENARIO_MAX_CHARS),
            "title": _fitting("title", self.title, TITLE_MAX_CHARS),
            "notes": _fitting("notes", self.notes, NOTES_MAX_CHARS),
            "headline": _fitting("headline", _json_text("headline", self.headline), HEADLINE_MAX_CHARS),
            "formula_version": _fitting("formula_version", self.formula_version, VERSION_MAX_CHARS),
            "catalog_version": _fitting("catalog_version", self.catalog_version, VERSION_MAX_CHARS),
            "expires_at": None if self.expires_at is None else self.expires_at.astimezone(UTC),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Created:
    """The two secrets of a new link, in clear for the only time: the store keeps their digests."""

    slug: str = field(repr=False)
    edit_token: str = field(repr=False)
    created_at: datetime
    expires_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Saved(Contents):
    """A link that is alive."""

    created_at: datetime
    updated_at: datetime

    def with_texts(self, title: str, notes: str, expires_at: datetime | None) -> Contents:
        """The same scenario and numbers under other words, to be stored again."""
        return Contents(
            scenario=self.scenario,
            title=title,
            notes=notes,
            headline=self.headline,
            formula_version=self.formula_version,
            catalog_version=self.catalog_version,
            expires_at=expires_at,
        )


@dataclass(frozen=True, slots=True)
class Gone:
    """A link that was alive until `expired_at` (UTC)."""

    expired_at: datetime


def saved_of(row: Configuration) -> Saved:
    """The record of a living row, with fresh copies of its JSON values."""
    return Saved(
        scenario=json.loads(row.scenario),
        title=row.title,
        notes=row.notes,
        headline=json.loads(row.headline),
        formula_version=row.formula_version,
        catalog_version=row.catalog_version,
        expires_at=row.expires_at,
        created_at=row.created_at,
        updated_at=row.updated_at,
    )


def _json_text(name: str, value: Mapping[str, Any]) -> str:
    try:
        return json.dumps(value, allow_nan=False, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    except (TypeError, ValueError) as error:  # NaN and infinity are not JSON, and no calculator should have let them by
        raise UnstorableError(f"{name} is not JSON: {error}.") from error


def _fitting(name: str, text: str, limit_chars: int) -> str:
    if len(text) > limit_chars:
        raise UnstorableError(f"{name} has {len(text)} characters, {limit_chars} are allowed.")
    # SQLite's own functions stop at a NUL, so the limits of the table would not hold behind one.
    if "\0" in text:
        raise UnstorableError(f"{name} contains a NUL character.")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise UnstorableError(f"{name} contains half of a surrogate pair.") from error
    return text
