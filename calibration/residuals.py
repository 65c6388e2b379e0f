"""How wrong predictions are: error tables, and the intervals that hold eight measurements of ten."""

from collections import Counter
from collections.abc import Sequence

import numpy as np

from app.catalog.measurements import Metric
from calibration.parameters import Vector
from calibration.rows import Row, regimes

COVERED = 0.8
FEWEST = 20
RATES = (Metric.PER_USER, Metric.PREFILL, Metric.DECODE)
"""Rates whose intervals are kept as those of a time."""


def intervals(rows: Sequence[Row], predicted: Vector) -> dict[str, tuple[float, float, int]]:
    """Low, high and n by regime: quantiles of measured ÷ predicted, rows weighted so that a family does not decide.

    A metric alone has the interval of its rows under load, for loads that were not measured.
    """
    names, found = regimes(rows), {}
    measured = np.array([row.measurement.value for row in rows])
    ratio = np.array(
        [
            p / m if row.measurement.metric in RATES else m / p
            for row, p, m in zip(rows, predicted, measured, strict=True)
        ]
    )
    scored = np.array([row.measurement.is_scored for row in rows])
    for regime in sorted(set(names)):
        chosen = scored & (names == regime)
        if chosen.sum() < FEWEST:
            continue
        families = [row.measurement.family for row, used in zip(rows, chosen, strict=True) if used]
        counts = Counter(families)
        weight = np.array([counts[family] ** -0.5 for family in families])
        low, high = _quantiles(ratio[chosen], weight, ((1 - COVERED) / 2, (1 + COVERED) / 2))
        found[regime] = (min(1.0, low), max(1.0, high), int(chosen.sum()))
    for metric in ("tpot", "ttft", "throughput"):
        if f"{metric} many" in found:
            found[metric] = found[f"{metric} many"]
    return found


def _quantiles(values: Vector, weight: Vector, shares: tuple[float, float]) -> tuple[float, float]:
    order = np.argsort(values)
    covered = (np.cumsum(weight[order]) - weight[order] / 2) / weight.sum()
    low, high = np.interp(shares, covered, values[order])
    return float(low), float(high)


def errors(rows: Sequence[Row], predicted: Vector) -> dict[str, tuple[int, float, float, float, float, float]]:
    """By regime: rows, median and mean absolute error, its ninth decile, share within 20 %, share within a factor 2."""
    names, found = regimes(rows), {}
    measured = np.array([row.measurement.value for row in rows])
    scored = np.array([row.measurement.is_scored for row in rows])
    error = np.abs(predicted / measured - 1)
    factor = np.maximum(predicted / measured, measured / predicted)
    for regime in sorted(set(names)):
        chosen = scored & (names == regime)
        if chosen.any():
            e, f = error[chosen], factor[chosen]
            found[regime] = (
                int(chosen.sum()),
                float(np.median(e)),
                float(e.mean()),
                float(np.quantile(e, 0.9)),
                float((e < 0.2).mean()),
                float((f < 2).mean()),
            )
    return found
