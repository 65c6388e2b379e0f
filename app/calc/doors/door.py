"""What a door in the memory wall is: one optimization, the same scenario without and with it, and what it does not do.

`before` is always the door closed and `after` the door open, whichever of the two the scenario asks for; `change` leads
to the other one.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from app.calc.alternatives import Alternative
from app.calc.deployment import Deployment
from app.calc.explanation import Explanation
from app.calc.measure import Measures


class DoorId(StrEnum):
    """The ten optimizations, in the order in which they are told."""

    QUANTIZATION = "quantization"
    ATTENTION = "attention"
    PAGING = "paging"
    BATCHING = "batching"
    PREFIX_CACHING = "prefix_caching"
    CHUNKED_PREFILL = "chunked_prefill"
    SPECULATIVE = "speculative"
    DISAGGREGATION = "disaggregation"
    PARALLELISM = "parallelism"
    NEWER_CARD = "newer_card"


class Level(StrEnum):
    """What kind of number a figure is."""

    CEILING = "ceiling"
    EXPECTED = "expected"
    EXACT = "exact"


class Better(StrEnum):
    """Which way is an improvement."""

    LOWER = "lower"
    HIGHER = "higher"
    NEITHER = "neither"


@dataclass(frozen=True, slots=True)
class Figure:
    """One number without and with the optimization, in SI units; None where it is not told of that side.

    An exact one follows from sizes alone (bytes, tokens); a ceiling cannot be beaten; an expected one is an estimate.
    """

    label: str
    before: float | None
    after: float | None
    unit: str
    level: Level
    better: Better

    @property
    def ratio(self) -> float | None:
        """After ÷ before; None where either is missing or there is nothing to divide by."""
        if self.before is None or self.after is None or not self.before:
            return None
        return self.after / self.before


@dataclass(frozen=True, slots=True)
class Row:
    """One variant of several, for a door with more than two sides: its name and its numbers by column."""

    label: str
    values: tuple[float | None, ...]
    is_here: bool = False
    note: str = ""


@dataclass(frozen=True, slots=True)
class Variants:
    """A table of variants; `columns` are a heading and a unit each."""

    columns: tuple[tuple[str, str], ...]
    rows: tuple[Row, ...]


@dataclass(frozen=True, slots=True)
class Door:
    """One optimization on one scenario. `change` is a merge patch (RFC 7396) that opens it, or closes an open one.

    `refused` says why it is not told of this scenario; its figures are then empty.
    """

    id: DoorId
    title: str
    is_open: bool
    label: str
    change: Mapping[str, Any]
    sentence: str
    figures: tuple[Figure, ...] = ()
    explanations: tuple[Explanation, ...] = ()
    variants: Variants | None = None
    limits: tuple[str, ...] = ()
    refused: str | None = None


@dataclass(frozen=True, slots=True)
class Asked:
    """What every door is looked at from: the scenario's deployment, its numbers, and cards it could name instead."""

    deployment: Deployment
    measures: Measures
    alternatives: Sequence[Alternative] = field(default=(), repr=False)
