"""What amdsmi's answers hold: dictionaries of numbers, the text "N/A", and numbers that mean "no such figure"."""

from app.probes.reading import Absence

_NO_FIGURE = frozenset({0xFFFF, 2**32 - 1, 2**64 - 1})
"""The largest number of 16, 32 and 64 bits. The binding turns some into "N/A" and overlooks others: it compares with
the width of its own field, where the driver's field was narrower."""

_NO_WIDE_FIGURE = _NO_FIGURE - {0xFFFF}

_MICROWATTS_FROM = 100_000
"""From here on a power is in µW: no card draws as many watts, and none as few microwatts."""


def figure(answer: object, *keys: str, wide: bool = False) -> object:
    """What the answer holds under the keys, one within the other, or an `Absence`.

    "N/A", a sentinel and a key that this binding does not have are `not_supported`. In a `wide` field (a counter, a
    size) 65,535 is a number like any other.
    """
    for key in keys:
        if isinstance(answer, Absence):
            return answer
        if not isinstance(answer, dict):
            return Absence.IMPLAUSIBLE
        answer = answer.get(key, Absence.NOT_SUPPORTED)
    if answer == "N/A" or (isinstance(answer, int) and answer in (_NO_WIDE_FIGURE if wide else _NO_FIGURE)):
        return Absence.NOT_SUPPORTED
    return answer


def milliwatts(raw: object) -> object:
    """A power in mW: some releases give W where others give µW, in a field of the same name."""
    if not isinstance(raw, int):
        return raw
    return raw * 1000 if raw < _MICROWATTS_FROM else raw // 1000
