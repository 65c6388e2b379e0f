"""Sizes of a sentence in powers of 1,024: what a door says in GB, for a page that is read in GiB."""

import re
from collections.abc import Collection

from app.calc.doors.door import Door
from app.calc.notation import quantity

DIGITS = 3
_SIZE = re.compile(r"(?<![\w.])([\d,.]*\d) ([kMGTP]?)B(?![\w/])")
_STEPS = {"": 1.0, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15}


def in_binary(text: str, sizes: Collection[float]) -> str:
    """The text with KiB, MiB, GiB in the place of its sizes; rates stay decimal.

    Args:
        text: with sizes of three digits.
        sizes: the bytes that it may speak of. A size that is none of them is turned from its three digits.
    """
    known = {quantity(size, "B", DIGITS): size for size in sizes}

    def turned(found: re.Match[str]) -> str:
        read = float(found[1].replace(",", "")) * _STEPS[found[2]]
        return quantity(known.get(found[0], read), "B", DIGITS, binary=True)

    return _SIZE.sub(turned, text)


def sizes_of(door: Door) -> list[float]:
    """Every size in bytes that a door tells: of its figures, its variants and its workings."""
    found = [side for figure in door.figures if figure.unit == "B" for side in (figure.before, figure.after)]
    if door.variants is not None:
        at = [place for place, (_, unit) in enumerate(door.variants.columns) if unit == "B"]
        found += [row.values[place] for row in door.variants.rows for place in at]
    for explanation in door.explanations:
        found += [term.value for term in explanation.terms if term.unit == "B"]
        found += [explanation.value] if explanation.unit == "B" else []
    return [size for size in found if size is not None]
