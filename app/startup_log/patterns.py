"""The lines that carry a figure: a literal to look for, and what stands behind it.

A pattern is tried only where its literal stands, from there on, and every repetition in it is bounded: the time that a
text takes grows with its length and no faster, whatever is in it.
"""

import re
from bisect import bisect_right
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from app.startup_log.printed import MEMORY, NUMBER, read_memory, read_number
from app.startup_log.ranks import Ranks
from app.startup_log.reading import Unit

MOST_TRIES = 8192
DEVICE = "@device"
_LARGEST = 1e15
_SHORTHANDS = {
    "<mem>": f"({MEMORY})",
    "<num>": f"({NUMBER})",
    "<gib>": f"({NUMBER})",
    "<mib>": f"({NUMBER})",
    "<sp>": "[ \t]{0,40}",
}

# llama.cpp's names of what holds a buffer. RPC devices carry an address in theirs, which is left behind.
_DEVICES = ("CUDA", "ROCm", "Vulkan", "SYCL", "MUSA", "CANN", "Metal", "MTL", "OpenCL", "HIP")
_DEVICE_NAME = re.compile(rf"({'|'.join(_DEVICES)})([0-9]{{0,3}})(?:_Mapped|_Private|_Split)?")


@dataclass(frozen=True, slots=True)
class Quantity:
    """What a figure is called and what it counts."""

    label: str
    unit: Unit


@dataclass(frozen=True, slots=True)
class LinePattern:
    """`ids` names the figure of each group of `behind`, which is matched right after `literal`.

    `unit` is that of memory printed without one.
    """

    literal: str
    behind: re.Pattern[str]
    ids: tuple[str, ...]
    unit: str = "GiB"


@dataclass(frozen=True, slots=True)
class Hit:
    """One figure where it stands in the text."""

    offset: int
    id: str
    value: float
    printed: str
    rank: str | None


def line(literal: str, behind: str, *ids: str) -> LinePattern:
    """A pattern; in `behind`, <mem> is memory with its unit, <num>, <gib> and <mib> a number alone, <sp> blanks."""
    unit = "MiB" if "<mib>" in behind else "GiB"
    for shorthand, expression in _SHORTHANDS.items():
        behind = behind.replace(shorthand, expression)
    return LinePattern(literal, re.compile(behind), ids, unit)


def find_hits(
    text: str, patterns: Iterable[LinePattern], quantities: Mapping[str, Quantity], ranks: Ranks
) -> tuple[Hit, ...]:
    """Every figure of `text` that is a number in bounds, in order."""
    starts = [0, *(m.end() for m in re.finditer("\n", text))]
    hits: list[Hit] = []
    for pattern in patterns:
        offset, tries = text.find(pattern.literal), 0
        while offset >= 0 and tries < MOST_TRIES:
            behind = offset + len(pattern.literal)
            tries += 1
            if matched := pattern.behind.match(text, behind):
                start = starts[bisect_right(starts, offset) - 1]
                hits += _figures(matched, pattern, quantities, offset, ranks.at(start, offset))
            offset = text.find(pattern.literal, behind)
    return tuple(sorted(hits, key=lambda hit: hit.offset))


def _figures(
    matched: re.Match[str], pattern: LinePattern, quantities: Mapping[str, Quantity], offset: int, rank: str | None
) -> Iterable[Hit]:
    groups = dict(zip(pattern.ids, matched.groups(), strict=True))
    if DEVICE in groups:
        rank = device_name(groups.pop(DEVICE) or "")
        if rank is None:
            return
    for id_, text in groups.items():
        if text is None:
            continue
        unit = quantities[id_].unit
        read = read_memory(text, pattern.unit) if unit is Unit.BYTES else read_number(text)
        if read is not None and abs(read[0]) <= _LARGEST:
            printed = read[1] if unit is Unit.BYTES else f"{read[1]} {_word(unit)}".rstrip()
            yield Hit(offset, id_, read[0], printed, rank)


def _word(unit: Unit) -> str:
    return "" if unit is Unit.SHARE else unit.value


def device_name(name: str) -> str | None:
    """The device as it is shown, such as "CUDA0"; None where the buffer lies in the host's memory."""
    matched = _DEVICE_NAME.fullmatch(name)
    if matched:
        return matched[1] + matched[2]
    return "RPC" if name.startswith("RPC") else None  # without the address in it
