"""From raw driver answers to readings: what cannot be true is an absence, and texts are safe to show."""

import unicodedata
from typing import TypeVar

from app.probes.card import PERCENT
from app.probes.reading import Absence, Reading

TEXT_LIMIT = 80
"""Characters kept of a name; the longest name sold today has 55."""

_ROUNDED_HUNDRED = 101

N = TypeVar("N", int, float)


def whole(raw: object, unit: str, *, ceiling: int, zero_is_absent: bool = True) -> Reading[int]:
    """A count between zero and `ceiling` in `unit`; an `Absence` given as `raw` passes through.

    Zero is what drivers answer where they have nothing (Jetson does for nearly everything), so it is an absence unless
    it can be meant. A figure over the ceiling or below zero is a sentinel (2^32 − 1, −1) or garbage: `implausible`.
    """
    if isinstance(raw, Absence):
        return Reading.missing(raw, unit)
    if not isinstance(raw, int) or not 0 <= raw <= ceiling:
        return Reading.missing(Absence.IMPLAUSIBLE, unit)
    if raw == 0 and zero_is_absent:
        return Reading.missing(Absence.ZERO_READING, unit)
    return Reading(int(raw), unit)


def share_percent(raw: object) -> Reading[float]:
    """A share in %; an `Absence` given as `raw` passes through.

    Counters that are read one after the other can add up to a little over 100: as much as 101 is taken for 100. What
    is below zero, beyond that, or no number is `implausible`.
    """
    if isinstance(raw, Absence):
        return Reading.missing(raw, PERCENT)
    if not isinstance(raw, int | float) or not 0 <= raw <= _ROUNDED_HUNDRED:
        return Reading.missing(Absence.IMPLAUSIBLE, PERCENT)
    return Reading(min(float(raw), 100.0), PERCENT)


def at_most(reading: Reading[N], limit: Reading[N]) -> Reading[N]:
    """The reading, or `implausible` where it exceeds the limit: a part cannot be larger than its whole."""
    if reading.value is not None and limit.value is not None and reading.value > limit.value:
        return Reading.missing(Absence.IMPLAUSIBLE, reading.unit)
    return reading


def text(raw: object) -> Reading[str]:
    """One line of at most `TEXT_LIMIT` visible characters; an `Absence` given as `raw` passes through.

    Takes str or bytes (bindings differ; undecodable bytes become U+FFFD). Control, format (so bidi), surrogate, private
    and unassigned characters and line separators become spaces, runs of spaces one. Nothing left: `implausible`.
    """
    if isinstance(raw, Absence):
        return Reading.missing(raw)
    if isinstance(raw, bytes):
        raw = raw.decode("utf-8", errors="replace")
    if not isinstance(raw, str):
        return Reading.missing(Absence.IMPLAUSIBLE)
    # Bounded before it is normalised: one character can become eighteen.
    normal = unicodedata.normalize("NFC", raw[: 4 * TEXT_LIMIT])
    visible = "".join(" " if unicodedata.category(c)[0] in "CZ" else c for c in normal)
    cleaned = " ".join(visible.split())[:TEXT_LIMIT].rstrip()
    return Reading(cleaned) if cleaned else Reading.missing(Absence.IMPLAUSIBLE)
