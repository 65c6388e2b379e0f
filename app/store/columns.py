"""What columns are made of: moments as text, and the rules by which a table itself refuses a bad value."""

from collections.abc import Collection, Mapping
from datetime import UTC, datetime

from sqlalchemy import CheckConstraint, Dialect, Text
from sqlalchemy.types import TypeDecorator

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
