"""The tables as typed classes. Migrations make them in the file; a test compares the two."""

from datetime import UTC, datetime

from sqlalchemy import CheckConstraint, Dialect, Index, LargeBinary, MetaData, Text, UniqueConstraint
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column
from sqlalchemy.types import TypeDecorator

TITLE_MAX_CHARS = 120
NOTES_MAX_CHARS = 4_000
SCENARIO_MAX_CHARS = 1_048_576  # four times the largest request body: a normalised scenario writes out every default
HEADLINE_MAX_CHARS = 65_536
VERSION_MAX_CHARS = 64
EMPTY_OBJECT = "{}"

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
        """The moment in UTC."""
        return None if value is None else datetime.fromisoformat(value)


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


def _is_digest(column: str) -> CheckConstraint:
    return CheckConstraint(f"typeof({column}) = 'blob' AND length({column}) = 32", name=f"{column}_is_digest")


def _is_at_most(column: str, limit_chars: int) -> CheckConstraint:
    return CheckConstraint(f"length({column}) <= {limit_chars}", name=f"{column}_length")


def _is_object(column: str) -> CheckConstraint:
    # Not json_valid: many SQLite releases refuse it inside a table while trusted_schema is off.
    return CheckConstraint(f"{column} GLOB '{{*}}'", name=f"{column}_is_object")


def _is_utc(column: str) -> CheckConstraint:
    return CheckConstraint(f"{column} GLOB '{_UTC_PATTERN}'", name=f"{column}_is_utc")


class Configuration(Base):
    """One saved scenario with the numbers that were shown. `id` never leaves the store: links are found by digest."""

    __tablename__ = "configurations"

    id: Mapped[int] = mapped_column(primary_key=True)
    slug_sha256: Mapped[bytes] = mapped_column(LargeBinary)
    edit_token_sha256: Mapped[bytes] = mapped_column(LargeBinary)
    title: Mapped[str] = mapped_column(Text)
    notes: Mapped[str] = mapped_column(Text)
    scenario: Mapped[str] = mapped_column(Text)
    headline: Mapped[str] = mapped_column(Text)
    formula_version: Mapped[str] = mapped_column(Text)
    catalog_version: Mapped[str] = mapped_column(Text)
    created_at: Mapped[datetime] = mapped_column(UtcText)
    updated_at: Mapped[datetime] = mapped_column(UtcText)
    expires_at: Mapped[datetime | None] = mapped_column(UtcText)
    revoked_at: Mapped[datetime | None] = mapped_column(UtcText)

    __table_args__ = (
        UniqueConstraint("slug_sha256"),
        _is_digest("slug_sha256"),
        _is_digest("edit_token_sha256"),
        _is_at_most("title", TITLE_MAX_CHARS),
        _is_at_most("notes", NOTES_MAX_CHARS),
        _is_at_most("scenario", SCENARIO_MAX_CHARS),
        _is_at_most("headline", HEADLINE_MAX_CHARS),
        _is_at_most("formula_version", VERSION_MAX_CHARS),
        _is_at_most("catalog_version", VERSION_MAX_CHARS),
        _is_object("scenario"),
        _is_object("headline"),
        _is_utc("created_at"),
        _is_utc("updated_at"),
        _is_utc("expires_at"),
        _is_utc("revoked_at"),
        # What its owner took back must not lie on in the file.
        CheckConstraint(
            "revoked_at IS NULL OR (title = '' AND notes = '' AND scenario = '{}' AND headline = '{}')",
            name="revoked_is_wiped",
        ),
        # Both serve `purge` alone; look-ups go by the unique digest.
        Index(None, "expires_at"),
        Index(None, "revoked_at"),
    )
