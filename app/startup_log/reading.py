"""What was read of a log: figures, a partial scenario, and what could and could not be told.

Nothing of the log's own text is in it: numbers, units, words of our own, catalog ids and a release, and no more.
"""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any


class LogError(Exception):
    """The text is no log that is read here; the message is a sentence for the person who pasted it."""


class Unit(StrEnum):
    """What a figure counts."""

    BYTES = "bytes"
    TOKENS = "tokens"
    BLOCKS = "blocks"
    SEQUENCES = "sequences"
    REQUESTS = "requests"
    SHARE = "share"
    ORDINAL = ""


@dataclass(frozen=True, slots=True)
class Figure:
    """One number of the log. `value` is in `unit`; `printed` is the number as it stands there, with its unit.

    `rank` says which worker or device printed it, such as "TP0" or "CUDA1"; None where the line does not say.
    """

    id: str
    label: str
    value: float
    unit: Unit
    rank: str | None
    printed: str


@dataclass(frozen=True, slots=True)
class Told:
    """One field of the scenario that the log fills."""

    path: str
    label: str
    value: str | float | bool


@dataclass(frozen=True, slots=True)
class Missing:
    """One field of the scenario that the log says nothing of."""

    path: str
    label: str


@dataclass(frozen=True, slots=True)
class LogReading:
    """All that one start-up log tells.

    `document` is a partial scenario (bytes as floats); `accelerator_candidates` are the catalog's cards with about the
    memory that the engine saw, where no line names the card. `notes` say what in the log contradicts itself, and which
    of several values was taken.
    """

    engine: str
    engine_name: str
    release: str | None
    figures: tuple[Figure, ...]
    document: dict[str, Any] = field(default_factory=dict)
    told: tuple[Told, ...] = ()
    missing: tuple[Missing, ...] = ()
    accelerator_candidates: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
