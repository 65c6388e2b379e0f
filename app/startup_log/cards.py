"""From a card's name in a log, or the memory that the engine saw of it, to the catalog's accelerators."""

import re
from collections.abc import Iterator

from app.catalog.catalog import Catalog
from app.known_card import known_accelerator

_MOST_NAMES = 64
_NAME = r"([A-Za-z0-9][A-Za-z0-9 +._/-]{1,59})"
_LINES = (
    # the name of a tuning file for mixtures of experts
    ("device_name=", re.compile(r"([A-Za-z0-9][A-Za-z0-9_+.-]{1,59}?)(?:,|\.json|\]|\s|$)")),
    ("  Device ", re.compile(r"[0-9]{1,3}: " + _NAME + ",")),
    (" Device ", re.compile(r"[0-9]{1,3}: " + _NAME + ",")),
    ("using device ", re.compile(r"[A-Za-z]{1,10}[0-9]{0,3} \(" + _NAME + r"\)")),
    ("GPU name:", re.compile(r"[ ]{0,9}" + _NAME)),
    ("GPU ", re.compile(r"[0-9]{1,3}: " + _NAME + r"(?: \(UUID|$)", re.MULTILINE)),
    ("ggml_vulkan: ", re.compile(r"[0-9]{1,3} = " + _NAME + r" \(")),
    ("Your ", re.compile(_NAME + r" GPU has compute capability")),
)
# What the engine sees of a card is up to 3.5 % less than the driver reports, and never more.
_OF_REPORTED = (0.965, 1.002)
# Where only the label is known: a GB of it may be a GiB, and some of it may be withheld.
_OF_MARKETED = (0.9, 1.08)
# Contexts and collectives take their share before anything is loaded.
_TAKEN_AT_START = 0.03


def find_card(text: str, total_bytes: float | None, catalog: Catalog) -> str | None:
    """The catalog id of the card that the lines name; None where they name none, two, or one it does not have."""
    found = set()
    for name in dict.fromkeys(_names(text)):
        matched = known_accelerator(name, total_bytes, catalog) or known_accelerator(name, None, catalog)
        if matched:
            found.add(matched)
    return found.pop() if len(found) == 1 else None


def cards_by_memory(
    total_bytes: float, catalog: Catalog, free: bool = False, passed_over: frozenset[str] = frozenset()
) -> tuple[str, ...]:
    """Cards of which an engine would see about this much, those that come nearest first.

    `free` says that it is what was free before loading; vendors in `passed_over` are left out.
    """
    near = []
    for record in catalog.accelerators.values():
        if record.vendor.casefold() in passed_over:
            continue
        device = catalog.devices[record.id]
        reported = device.memory_reported_bytes
        known = reported or device.memory_marketed_bytes
        share = total_bytes / known
        least, most = _OF_REPORTED if reported else _OF_MARKETED
        if free:
            least -= _TAKEN_AT_START
        if least <= share <= most:
            near.append((reported is None, abs(1 - share), record.id))
    return tuple(id_ for _, _, id_ in sorted(near))


def _names(text: str) -> Iterator[str]:
    for literal, behind in _LINES:
        offset, found = text.find(literal), 0
        while offset >= 0 and found < _MOST_NAMES:
            found += 1
            start = offset + len(literal)
            if matched := behind.match(text, start):
                yield matched[1].replace("_", " ").strip()
            offset = text.find(literal, start)
