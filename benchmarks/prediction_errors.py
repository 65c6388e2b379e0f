"""How far predictions are from what was measured."""

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import exp, log

from app.catalog.measurements import Measurement
from benchmarks.timing import percentile

CLOSE = 0.2


@dataclass(frozen=True, slots=True)
class Errors:
    """Absolute errors as shares of the measurement. `factor` is how many times too high or too low, at the median:
    what a share hides where a prediction is far too low.
    """

    cells: int
    median: float
    mean: float
    p90: float
    close: float
    factor: float
    bias: float


def errors(rows: Sequence[Measurement], predicted: Mapping[str, float]) -> Errors:
    """Of `rows`, two at least, each of which is predicted."""
    ratios = [predicted[row.id] / row.value for row in rows]
    off = [abs(ratio - 1) for ratio in ratios]
    return Errors(
        cells=len(off),
        median=statistics.median(off),
        mean=statistics.mean(off),
        p90=percentile(off, 0.9),
        close=sum(error <= CLOSE for error in off) / len(off),
        factor=exp(statistics.median(abs(log(ratio)) for ratio in ratios)),
        bias=statistics.median(ratios),
    )
