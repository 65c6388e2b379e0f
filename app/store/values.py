"""The rules that a value meets before it is written, so that whoever sent it hears which one it breaks."""

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from app.store.errors import UnstorableError


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
