"""Where predictions are worst: groups of measurements ranked by their error, each told in words."""

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from app.calc.notation import significant
from app.validation.compared import Compared
from app.validation.words import family_words

FEWEST = 5
NO_DIRECTION = 1.05
"""A median nearer to 1 than this factor leans neither way."""
MANIFOLD = 2.0
"""From this factor on, too fast is told in times, not in percent."""


@dataclass(frozen=True, slots=True)
class Group:
    """Scored measurements of an engine on a family of accelerators, or with a model.

    Attributes:
        kind: `family` or `model`, what the engine is paired with.
        asked: the query items that list its rows.
        accelerators: those of the group by name, most measurements first.
        mean_error: of the cross-validated predictions, as a share of what was measured.
        speed: median of predicted ÷ measured speed: below 1 the predictions are too slow.
        too_fast: the share of predictions that are faster than what was measured.
    """

    kind: str
    label: str
    asked: tuple[tuple[str, str], ...]
    accelerators: tuple[str, ...]
    measurements: int
    mean_error: float
    speed: float
    too_fast: float

    @property
    def direction(self) -> str:
        """Which way the predictions lean, in words."""
        if abs(math.log(self.speed)) < math.log(NO_DIRECTION):
            return "predicts too slow about as often as too fast"
        if self.speed < 1:
            return f"typically predicts too slow by {_percent(1 - self.speed)}"
        if self.speed >= MANIFOLD:
            return f"typically predicts {significant(self.speed, 2)} times the measured speed"
        return f"typically predicts too fast by {_percent(self.speed - 1)}"

    @property
    def sentence(self) -> str:
        """The finding, whole."""
        return (
            f"{self.label}: off by {_percent(self.mean_error)} on average over {self.measurements} measurements; "
            f"{self.direction}."
        )


def worst(rows: Iterable[Compared], kind: str, most: int) -> list[Group]:
    """The groups of one kind with the largest mean error, worst first; those of fewer than five rows say too little."""
    groups: dict[tuple[str, str], list[Compared]] = {}
    for row in rows:
        if row.is_scored:
            other = row.family if kind == "family" else row.measurement.model
            groups.setdefault((row.measurement.engine, other), []).append(row)
    found = [_group(kind, other, group) for (_, other), group in groups.items() if len(group) >= FEWEST]
    return sorted(found, key=lambda group: (-group.mean_error, group.label))[:most]


def _group(kind: str, other: str, rows: list[Compared]) -> Group:
    first = rows[0]
    of_family = kind == "family"
    names = [row.accelerator for row in rows]
    speeds = np.array([row.speed for row in rows])
    return Group(
        kind=kind,
        label=f"{first.engine} on {family_words(other)}" if of_family else f"{first.model} under {first.engine}",
        asked=(("engine", first.measurement.engine), (kind, other)),
        accelerators=tuple(sorted(set(names), key=lambda name: (-names.count(name), name))),
        measurements=len(rows),
        mean_error=float(np.mean([abs(row.ratio - 1) for row in rows])),
        speed=float(np.median(speeds)),
        too_fast=float((speeds > 1).mean()),
    )


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"
