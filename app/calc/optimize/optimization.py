"""What a what-if of an optimization is: a scenario without it and with it, as numbers that are found by key.

`before` is always without the optimization and `after` with it, whichever of the two the scenario asks for; `change`
leads to the other one. Labels are for people: everything that looks for a number uses its key.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from app.calc.deployment import Deployment
from app.calc.derivation import Explanation
from app.calc.measure import Measures
from app.calc.model.attention_variants import Alternative
from app.calc.quantity import quantity


class Level(StrEnum):
    """What kind of number a figure is: exact ones follow from sizes alone, a ceiling cannot be beaten."""

    CEILING = "ceiling"
    EXPECTED = "expected"
    EXACT = "exact"


class Better(StrEnum):
    """Which way is an improvement."""

    LOWER = "lower"
    HIGHER = "higher"
    NEITHER = "neither"


class Size(float):
    """Bytes inside a sentence: written in powers of 1,000 or of 1,024 where it is shown."""


Sentence = Sequence[str | Size]


def written(sentence: Sentence, *, binary: bool = False) -> str:
    """The sentence in words, its sizes to three digits; in KiB, MiB, GiB where `binary`."""
    return "".join(quantity(part, "B", 3, binary=binary) if isinstance(part, Size) else part for part in sentence)


def _not_read(_: Any) -> float | None:
    return None


@dataclass(frozen=True, slots=True)
class Quantity:
    """What a figure or a column of variants tells, in SI units; `read` takes it off one side, where one formula can."""

    key: str
    label: str
    unit: str
    level: Level = Level.EXACT
    better: Better = Better.NEITHER
    read: Callable[[Any], float | None] = field(default=_not_read, repr=False)


@dataclass(frozen=True, slots=True)
class Figure:
    """One number without and with the optimization; None where it is not known of that side."""

    of: Quantity
    before: float | None
    after: float | None
    level: Level

    @property
    def ratio(self) -> float | None:
        """After ÷ before; None where either is missing or there is nothing to divide by."""
        if self.before is None or self.after is None or not self.before:
            return None
        return self.after / self.before


def figure_at(figures: Iterable[Figure], key: str, level: Level) -> Figure | None:
    """The figure of that key and level; None where there is none."""
    return next((found for found in figures if found.of.key == key and found.level is level), None)


@dataclass(frozen=True, slots=True)
class Row:
    """One variant: its name and its numbers by column."""

    label: str
    values: tuple[float | None, ...]
    is_here: bool = False
    note: str = ""


@dataclass(frozen=True, slots=True)
class Variants:
    """A table of variants."""

    columns: tuple[Quantity, ...]
    rows: tuple[Row, ...]

    def numbers(self, key: str) -> list[float | None]:
        """One column, a number a row; None everywhere where this scenario has no such column."""
        at = next((place for place, column in enumerate(self.columns) if column.key == key), None)
        return [None if at is None else row.values[at] for row in self.rows]


@dataclass(frozen=True, slots=True)
class Asked:
    """What every optimization is looked at from: the deployment, its numbers, and cards it could name instead."""

    deployment: Deployment
    measures: Measures
    alternatives: Sequence[Alternative] = field(default=(), repr=False)


@dataclass(frozen=True, slots=True)
class Candidate:
    """A single change that may help: `change` is a merge patch (RFC 7396) on the scenario; `label` says it in words.

    `holds`: it is known already that the memory holds what is asked.
    """

    change: Mapping[str, Any]
    label: str
    deployment: Deployment
    holds: bool = False


@dataclass(frozen=True, slots=True)
class Spec:
    """One optimization, as everything that shows it needs to know it.

    `counts` are the keys of figures that it is there for, the first that is known of both sides; `shown` those that the
    lesson names; `candidate` is the lever that proposes it.
    """

    id: str
    title: str
    compare: Callable[[Asked], "Optimization"]
    counts: tuple[str, ...]
    shown: tuple[str, ...]
    limits: tuple[str, ...]
    candidate: Callable[[Deployment], Candidate | None] = lambda deployment: None


@dataclass(frozen=True, slots=True)
class Optimization:
    """One optimization on one scenario. `change` is a merge patch (RFC 7396) that leads to the other side.

    `refused` says why there is nothing to compare; its figures are then empty.
    """

    spec: Spec
    is_used: bool
    label: str
    change: Mapping[str, Any]
    said: Sentence
    figures: tuple[Figure, ...] = ()
    explanations: tuple[Explanation, ...] = ()
    variants: Variants | None = None
    refused: str | None = None

    @property
    def id(self) -> str:
        return self.spec.id

    @property
    def sentence(self) -> str:
        return written(self.said)

    @property
    def limits(self) -> tuple[str, ...]:
        return () if self.refused else self.spec.limits


def refusal(spec: Spec, reason: str, *, is_used: bool = False, label: str = "") -> Optimization:
    """The answer where a scenario leaves nothing to compare."""
    return Optimization(spec, is_used, label or spec.title, {}, (reason,), refused=reason)
