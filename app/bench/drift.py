"""Whether what a fit leaves over rises or falls with the load: then no one factor follows it."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

FEWEST = 4
"""Runs from which a slope is told from scatter."""
LEAST_TOLD = math.log(1.2)
"""How far the two ends of the loads must lie apart."""
FIRM = 3.0
"""How many times its own standard error a slope must be."""


@dataclass(frozen=True, slots=True)
class Drift:
    """Measured over fitted at the lowest and at the highest load, by a straight line in logarithms."""

    lowest: int
    at_lowest: float
    highest: int
    at_highest: float


def drift_of(loads: Sequence[int], residuals: Sequence[float]) -> Drift | None:
    """The slope of log residuals over the logarithm of the requests at a time; None where scatter explains it.

    Worked example: residuals -0.3, -0.1, 0.1, 0.3 at 1, 4, 16, 64 lie on a line, from x 0.74 to x 1.35.
    """
    lowest, highest = min(loads, default=1), max(loads, default=1)
    if len(loads) < FEWEST or lowest == highest:
        return None
    x, y = np.log(np.asarray(loads, dtype=float)), np.asarray(residuals, dtype=float)
    x -= x.mean()
    middle, spread = float(y.mean()), float(x @ x)
    slope = float(x @ y) / spread
    error = math.sqrt(float(np.sum((y - middle - slope * x) ** 2)) / (len(y) - 2) / spread)
    ends = (float(x.min()), float(x.max()))
    if abs(slope) * (ends[1] - ends[0]) < LEAST_TOLD or abs(slope) < FIRM * error:
        return None
    low, high = (math.exp(middle + slope * end) for end in ends)
    return Drift(lowest, low, highest, high)
