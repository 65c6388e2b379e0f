"""How wrong predictions are: the errors of a set of measurements, and the same slice by slice.

The error of a row is |predicted ÷ measured − 1|. Only scored rows count: a row whose source does not say whether it
speculates may be faster than any calculator without speculation should say.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from app.validation.compared import Compared, Inside
from app.validation.words import METRICS, regime_words

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
