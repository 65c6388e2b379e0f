"""The tables as typed classes, and the rules of their values. Migrations make the tables; a test compares the two.

A rule stands twice: as a CHECK of the file, and as a function that refuses the value by name before it is written.
"""

import json
from collections.abc import Collection, Mapping
from datetime import UTC, datetime
from typing import Any, ClassVar

from sqlalchemy import (
    CheckConstraint,
    Constraint,
    Dialect,
    Index,
    LargeBinary,
    MetaData,
    Text,
    UniqueConstraint,
)
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column
from sqlalchemy.types import TypeDecorator

from app.store.errors import UnstorableError

TITLE_MAX_CHARS = 120
NOTES_MAX_CHARS = 4_000
SCENARIO_MAX_CHARS = 1_048_576  # four times the largest request body: a normalised scenario writes out every default
HEADLINE_MAX_CHARS = 65_536
VERSION_MAX_CHARS = 64
DOCUMENT_MAX_CHARS = 262_144
SOURCE_MAX_CHARS = 24  # shorter than a UUID in any spelling, and than most addresses
FIGURES_MAX_CHARS = 4_096
EMPTY_OBJECT = "{}"
KINDS = ("snapshot", "calibration")
ONLY_ID = 1
_UTC_PATTERN = (
    "[0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9]T[0-9][0-9]:[0-9][0-9]:[0-9][0-9].[0-9][0-9][0-9][0-9][0-9][0-9]Z"
)


class UtcText(TypeDecorator[datetime]):
    """A moment as text of fixed width, `2026-11-29T17:38:00.000000Z`: sorts as it happened, reads without a tool."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> str | None:
        """The text to store.

        Raises:
            ValueError: the moment has no time zone, so nobody can tell when it is.
        """
        if value is None:
            return None
        if value.tzinfo is None:
            raise ValueError("a stored moment needs a time zone")
        return value.astimezone(UTC).replace(tzinfo=None).isoformat(timespec="microseconds") + "Z"

    def process_result_value(self, value: str | None, dialect: Dialect) -> datetime | None:
        return None if value is None else datetime.fromisoformat(value)


def is_digest(column: str) -> CheckConstraint:
    """A rule: 32 bytes."""
    return CheckConstraint(f"typeof({column}) = 'blob' AND length({column}) = 32", name=f"{column}_is_digest")


def is_at_most(column: str, limit_chars: int) -> CheckConstraint:
    """A rule: a text that is not too long."""
    return CheckConstraint(f"length({column}) <= {limit_chars}", name=f"{column}_length")


def is_object(column: str) -> CheckConstraint:
    """A rule: a text that looks like a JSON object."""
    # Not json_valid: many SQLite releases refuse it inside a table while trusted_schema is off.
    return CheckConstraint(f"{column} GLOB '{{*}}'", name=f"{column}_is_object")


def is_utc(column: str) -> CheckConstraint:
    """A rule: a moment as `UtcText` writes it, or none."""
    return CheckConstraint(f"{column} GLOB '{_UTC_PATTERN}'", name=f"{column}_is_utc")


def is_one_of(column: str, words: Collection[str]) -> CheckConstraint:
    """A rule: one of these words."""
    listed = ", ".join(f"'{word}'" for word in words)
    return CheckConstraint(f"{column} IN ({listed})", name=f"{column}_is_known")


def is_wiped(wiped: Mapping[str, str]) -> CheckConstraint:
    """A rule: a revoked row has these values. What its owner took back must not lie on in the file."""
    blank = " AND ".join(f"{column} = '{value}'" for column, value in wiped.items())
    return CheckConstraint(f"revoked_at IS NULL OR ({blank})", name="revoked_is_wiped")


class Base(DeclarativeBase):
    """Holds the metadata; every constraint has a name, without which SQLite could not drop it later."""

    metadata = MetaData(
        naming_convention={
            "pk": "pk_%(table_name)s",
            "uq": "uq_%(table_name)s_%(column_0_name)s",
            "ck": "ck_%(table_name)s_%(constraint_name)s",
            "ix": "ix_%(table_name)s_%(column_0_name)s",
            "fk": "fk_%(table_name)s_%(column_0_name)s",
        }
    )


class Link(Base):
    """What the row of every secret link has. `id` never leaves the store: links are found by digest.

    `wiped` says what is left of the contents of a revoked row.
    """

    __abstract__ = True
    wiped: ClassVar[Mapping[str, str]]

    # The contents stand between the title and the versions: sort_order 0.
    id: Mapped[int] = mapped_column(primary_key=True, sort_order=-4)
    slug_sha256: Mapped[bytes] = mapped_column(LargeBinary, sort_order=-3)
    edit_token_sha256: Mapped[bytes] = mapped_column(LargeBinary, sort_order=-2)
    title: Mapped[str] = mapped_column(Text, sort_order=-1)
    formula_version: Mapped[str] = mapped_column(Text, sort_order=1)
    catalog_version: Mapped[str] = mapped_column(Text, sort_order=2)
    created_at: Mapped[datetime] = mapped_column(UtcText, sort_order=3)
    expires_at: Mapped[datetime | None] = mapped_column(UtcText, sort_order=5)
    revoked_at: Mapped[datetime | None] = mapped_column(UtcText, sort_order=6)


def _link_rules(wiped: Mapping[str, str]) -> tuple[Constraint | Index, ...]:
    """The rules of the columns that every link has."""
    return (
        UniqueConstraint("slug_sha256"),
        is_digest("slug_sha256"),
        is_digest("edit_token_sha256"),
        is_at_most("title", TITLE_MAX_CHARS),
        is_at_most("formula_version", VERSION_MAX_CHARS),
        is_at_most("catalog_version", VERSION_MAX_CHARS),
        is_utc("created_at"),
        is_utc("expires_at"),
        is_utc("revoked_at"),
        is_wiped(wiped),
        # Both serve the purge alone; look-ups go by the unique digest.
        Index(None, "expires_at"),
        Index(None, "revoked_at"),
    )


class Configuration(Link):
    """One saved scenario with the numbers that were shown."""

    __tablename__ = "configurations"
    wiped: ClassVar[Mapping[str, str]] = {"title": "", "notes": "", "scenario": EMPTY_OBJECT, "headline": EMPTY_OBJECT}

    notes: Mapped[str] = mapped_column(Text)
    scenario: Mapped[str] = mapped_column(Text)
    headline: Mapped[str] = mapped_column(Text)
    updated_at: Mapped[datetime] = mapped_column(UtcText, sort_order=4)

    __table_args__ = (
        *_link_rules(wiped),
        is_at_most("notes", NOTES_MAX_CHARS),
        is_at_most("scenario", SCENARIO_MAX_CHARS),
        is_at_most("headline", HEADLINE_MAX_CHARS),
        is_object("scenario"),
        is_object("headline"),
        is_utc("updated_at"),
    )


class SharedRow(Link):
    """One document that somebody shows to others: a frozen live reading, or a fitted efficiency."""

    __tablename__ = "shared_documents"
    wiped: ClassVar[Mapping[str, str]] = {"title": "", "document": EMPTY_OBJECT}

    kind: Mapped[str] = mapped_column(Text)
    document: Mapped[str] = mapped_column(Text)

    __table_args__ = (
        *_link_rules(wiped),
        is_one_of("kind", KINDS),
        is_at_most("document", DOCUMENT_MAX_CHARS),
        is_object("document"),
    )


class LiveSample(Base):
    """What one source said at one instant while the live readings were recorded: numbers by name, nothing else.

    `source` is a short word such as "nvidia/0" or "server-1": by its signs and its length no UUID, no IP address and
    no name with a dot fits.
    """

    __tablename__ = "live_samples"

    id: Mapped[int] = mapped_column(primary_key=True)
    taken_at: Mapped[datetime] = mapped_column(UtcText)
    source: Mapped[str] = mapped_column(Text)
    figures: Mapped[str] = mapped_column(Text)

    __table_args__ = (
        # A source says one thing at an instant. Its index also answers what charts ask, without the rows.
        UniqueConstraint("taken_at", "source"),
        is_utc("taken_at"),
        CheckConstraint(
            f"length(source) <= {SOURCE_MAX_CHARS} AND source GLOB '[a-z]*' AND source NOT GLOB '*[^a-z0-9/-]*'",
            name="source_is_plain",
        ),
        is_at_most("figures", FIGURES_MAX_CHARS),
        is_object("figures"),
    )


class RecorderRow(Base):
    """From when until when recording was asked for, in one row for all processes; no moments, or no row: it was not."""

    __tablename__ = "recorder"

    id: Mapped[int] = mapped_column(primary_key=True)
    since: Mapped[datetime | None] = mapped_column(UtcText)
    until: Mapped[datetime | None] = mapped_column(UtcText)

    __table_args__ = (
        CheckConstraint(f"id = {ONLY_ID}", name="id_is_only"),
        is_utc("since"),
        is_utc("until"),
        CheckConstraint("(since IS NULL) = (until IS NULL)", name="both_or_neither"),
    )


def fitting_json(name: str, value: Mapping[str, Any], limit_chars: int) -> str:
    """The JSON text of one spelling (sorted keys, no spaces).

    Raises:
        UnstorableError: the value is not JSON, not finite, or too long.
    """
    try:
        text = json.dumps(value, allow_nan=False, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    except (TypeError, ValueError, RecursionError) as error:  # NaN is not JSON, and no calculator should let it by
        raise UnstorableError(f"{name} is not JSON: {error}.") from error
    return fitting(name, text, limit_chars)


def fitting(name: str, text: str, limit_chars: int) -> str:
    """The text itself.

    Raises:
        UnstorableError: it is too long, or no text that SQLite and UTF-8 can hold.
    """
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


def future(name: str, moment: datetime | None, now: datetime) -> datetime | None:
    """The moment in UTC; None stays None.

    Raises:
        UnstorableError: it has no time zone, or does not lie after `now`.
    """
    if moment is None:
        return None
    if moment.tzinfo is None or moment <= now:
        raise UnstorableError(f"{name} must have a time zone and lie in the future.")
    return moment.astimezone(UTC)
