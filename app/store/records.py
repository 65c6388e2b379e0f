"""What goes into the store and what comes out: frozen records."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from app.store.tables import (
    HEADLINE_MAX_CHARS,
    NOTES_MAX_CHARS,
    SCENARIO_MAX_CHARS,
    TITLE_MAX_CHARS,
    VERSION_MAX_CHARS,
    Configuration,
)
from app.store.values import fitting, fitting_json, future


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkContents:
    """What every secret link carries: a title, the versions that its numbers were made with, and when it ends."""

    title: str
    formula_version: str
    catalog_version: str
    expires_at: datetime | None

    def columns(self, now: datetime) -> dict[str, Any]:
        """The values of the columns of the same names.

        Raises:
            UnstorableError: a value is too long, not Unicode text, or already expired at `now`.
        """
        return {
            "title": fitting("title", self.title, TITLE_MAX_CHARS),
            "formula_version": fitting("formula_version", self.formula_version, VERSION_MAX_CHARS),
            "catalog_version": fitting("catalog_version", self.catalog_version, VERSION_MAX_CHARS),
            "expires_at": future("expires_at", self.expires_at, now),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Contents(LinkContents):
    """What a saved configuration shows: the normalised scenario and the numbers that were on the screen."""

    scenario: Mapping[str, Any]
    notes: str
    headline: Mapping[str, Any]

    def columns(self, now: datetime) -> dict[str, Any]:
        """The values of the columns of the same names; JSON as text of one spelling.

        Raises:
            UnstorableError: a value is too long, not finite, not Unicode text, or already expired at `now`.
        """
        return {
            **LinkContents.columns(self, now),
            "scenario": fitting_json("scenario", self.scenario, SCENARIO_MAX_CHARS),
            "notes": fitting("notes", self.notes, NOTES_MAX_CHARS),
            "headline": fitting_json("headline", self.headline, HEADLINE_MAX_CHARS),
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
