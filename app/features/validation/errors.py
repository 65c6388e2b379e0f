"""How wrong predictions are: the errors of a set of measurements, and the same slice by slice.

The error of a row is |predicted ÷ measured − 1|. Only scored rows count: a row whose source does not say whether it
speculates may be faster than any calculator without speculation should say.

Where predictions are worst: groups of measurements ranked by their error, each told in words.

All measurements of a catalog beside their predictions, worked out once for as long as the application runs.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from threading import Lock
from types import MappingProxyType

import numpy as np

from app.calc.quantity import significant
from app.catalog.calibration import load_cross_validated
from app.catalog.catalog import Catalog
from app.features.validation.compared import METRICS, Compared, Inside, compared, family_words, regime_words

NEAR = 0.2
TWICE = 2.0
ALL = "all"


@dataclass(frozen=True, slots=True)
class Errors:
    """Errors of `measurements` rows as shares of what was measured; how many of them are near."""

    measurements: int
    median: float
    mean: float
    ninth_decile: float
    within_20_percent: float
    within_factor_2: float


@dataclass(frozen=True, slots=True)
class Coverage:
    """The share of measurements inside the interval of eight in ten, of those that have one."""

    measurements: int
    inside: float


@dataclass(frozen=True, slots=True)
class Slice:
    """The errors of the scored measurements that share a value. None where there is nothing to judge by."""

    key: str
    label: str
    measurements: int
    cross_validated: Errors | None
    in_sample: Errors | None
    unseen: Errors | None
    coverage: Coverage | None


Naming = Callable[[Compared], tuple[str, str]]
SLICES: Mapping[str, tuple[str, Naming]] = MappingProxyType(
    {
        "regime": ("quantity and load", lambda row: (row.regime, regime_words(row.regime))),
        "metric": ("metric", lambda row: (row.measurement.metric.value, METRICS[row.measurement.metric])),
        "engine": ("engine", lambda row: (row.measurement.engine, row.engine)),
        "accelerator": ("accelerator", lambda row: (row.measurement.accelerator, row.accelerator)),
        "model": ("model", lambda row: (row.measurement.model, row.model)),
    }
)
"""What error tables can be sliced by: the words for it, and key and label of a row."""


def errors_of(pairs: Iterable[tuple[float, float]]) -> Errors | None:
    """The errors of pairs of predicted and measured; None of no pairs."""
    found = np.array(list(pairs), dtype=float)
    if not found.size:
        return None
    ratio = found[:, 0] / found[:, 1]
    error, factor = np.abs(ratio - 1), np.maximum(ratio, 1 / ratio)
    return Errors(
        measurements=len(ratio),
        median=float(np.median(error)),
        mean=float(error.mean()),
        ninth_decile=float(np.quantile(error, 0.9)),
        within_20_percent=float((error < NEAR).mean()),
        within_factor_2=float((factor < TWICE).mean()),
    )


def slice_of(rows: Iterable[Compared], key: str = ALL, label: str = ALL) -> Slice:
    """The errors of the scored ones of `rows`, by each of the three predictions."""
    scored = [row for row in rows if row.is_scored]
    told = [row for row in scored if row.inside is not Inside.UNCLAIMED]
    inside = sum(row.inside is Inside.YES for row in told)
    return Slice(
        key=key,
        label=label,
        measurements=len(scored),
        cross_validated=errors_of((row.held_out, row.measured) for row in scored),
        in_sample=errors_of((row.in_sample, row.measured) for row in scored if row.in_sample is not None),
        unseen=errors_of((row.unseen, row.measured) for row in scored),
        coverage=Coverage(len(told), inside / len(told)) if told else None,
    )


def slices(rows: Iterable[Compared], by: str) -> list[Slice]:
    """The scored rows sliced by one of `SLICES`, the slice of most measurements first."""
    _, naming = SLICES[by]
    groups: dict[tuple[str, str], list[Compared]] = {}
    for row in rows:
        if row.is_scored:
            groups.setdefault(naming(row), []).append(row)
    return sorted(
        (slice_of(group, key, label) for (key, label), group in groups.items()),
        key=lambda found: (-found.measurements, found.label),
    )


def left_out_counts(reasons: Sequence[str]) -> list[tuple[str, int]]:
    """How many measurements each reason keeps out, most first; one that has several is counted at each."""
    counts: dict[str, int] = {}
    for text in reasons:
        for reason in text.split("; ") if text else ():
            counts[reason] = counts.get(reason, 0) + 1
    return sorted(counts.items(), key=lambda item: (-item[1], item[0]))


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


class ValidationSheet:
    """The compared measurements, worst first, and those that are left out.

    Nothing is computed before it is asked for: the first that asks waits a second, and so belongs on a thread.
    """

    def __init__(self, catalog: Catalog) -> None:
        self.catalog = catalog
        self._lock, self._rows = Lock(), tuple[Compared, ...]()

    @property
    def rows(self) -> Sequence[Compared]:
        """Every measurement that a scenario can say, the one that is furthest off first."""
        with self._lock:
            if not self._rows:
                blind = load_cross_validated()
                found = (compared(row, blind, self.catalog) for row in self.catalog.measurements if row.is_compared)
                self._rows = tuple(sorted(found, key=lambda row: (-row.factor, row.measurement.id)))
            return self._rows

    @cached_property
    def left_out(self) -> Sequence[str]:
        """Why, of each measurement that no scenario can say."""
        return [row.left_out for row in self.catalog.measurements if not row.is_compared]

    @property
    def calibration_version(self) -> str | None:
        """Which calibration the predictions are of; None where there is none, and only ceilings are told."""
        return self.catalog.calibration.version if self.catalog.calibration else None
