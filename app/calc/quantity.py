"""Units in which people and vendors state figures, in the SI units of the calculators.

How a quantity is written: SI prefixes, enough digits to divide by hand, exact where a count is exact.
"""

import math
from enum import StrEnum

GB = 1e9
"""Bytes of a gigabyte; also bytes a second of a GB/s."""
MIB = 2**20
"""Bytes of a mebibyte, in which drivers report memory."""
TERA = 1e12
"""Operations a second of a TFLOP/s or TOP/s."""
GIB = 2**30
"""Bytes of a gibibyte."""


class Unit(StrEnum):
    """Units of the numbers, as they are written after a figure: SI, and words for what is counted."""

    NONE = ""
    BYTES = "B"
    BYTES_PER_S = "B/s"
    FLOP = "FLOP"
    FLOP_PER_S = "FLOP/s"
    FLOP_PER_BYTE = "FLOP/B"
    SECONDS = "s"
    TOKENS = "tokens"
    TOKENS_PER_S = "tokens/s"
    SEQUENCES = "sequences"
    REQUESTS_PER_S = "requests/s"
    DOLLARS = "$"
    WATTS = "W"
    JOULES = "J"


EXACT_BELOW = 10_000_000
_PREFIXES = ((1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, ""))
_SMALL = ((1.0, ""), (1e-3, "m"), (1e-6, "µ"), (1e-9, "n"))
_PREFIXED = frozenset({Unit.BYTES, Unit.FLOP, Unit.BYTES_PER_S, Unit.FLOP_PER_S, Unit.WATTS})
_BINARY = ((2.0**40, "Ti"), (2.0**30, "Gi"), (2.0**20, "Mi"), (2.0**10, "Ki"), (1.0, ""))


def significant(value: float, digits: int) -> str:
    """`value` in plain notation with `digits` significant digits and thousands separators; no trailing zeros."""
    if value == 0:
        return "0"
    if 1e-4 <= abs(value) < 999:  # the usual case, prefixed: several times faster than the general one below
        text = f"{value:.{digits}g}"
        if "e" not in text:
            return text
    decimals = digits - 1 - math.floor(math.log10(abs(value)))
    text = f"{round(value, decimals):,.{max(0, decimals)}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def quantity(value: float, unit: str, digits: int = 6, *, binary: bool = False) -> str:
    """`value` with its unit, prefixed where the unit takes prefixes: 16.0605 GB, 4.794 ms, 131,072 B.

    Args:
        value: in the unit as named, unprefixed.
        unit: "B", "B/s", "FLOP", "FLOP/s", "W", "s"; a word that stands as it is ("tokens"); "" for a pure number.
        digits: significant digits where the number is not written out.
        binary: write bytes with Ki, Mi, Gi (powers of 1,024). Rates stay decimal, as vendors state them.
    """
    if unit == "s":
        scale, prefix = _scale(abs(value), _SMALL)
        return f"{significant(value / scale, digits)} {prefix}s" if value else "0 s"
    if unit in _PREFIXED and not (
        value == int(value) and abs(value) < EXACT_BELOW and digits >= len(str(abs(int(value))))
    ):
        table = _BINARY if binary and unit == "B" else _PREFIXES
        scale, prefix = _scale(abs(value), table)
        return f"{significant(value / scale, digits)} {prefix}{unit}"
    if value == int(value) and abs(value) < 1e15:
        number = f"{int(value):,}"
    elif abs(value) >= 1e15 or 0 < abs(value) < 1e-4:
        number = f"{value:.{digits - 1}e}"
    else:
        number = significant(value, digits)
    if unit == "$":
        return f"${number}"
    return f"{number} {unit}" if unit else number


def _scale(size: float, table: tuple[tuple[float, str], ...]) -> tuple[float, str]:
    """The first step of the table that `size` reaches, or its last."""
    for step in table:
        if size >= step[0]:
            return step
    return table[-1]
