"""What points scattered about a fit say: how far off they are, and where a new one will lie."""

import math
from collections.abc import Sequence

import numpy as np

EIGHT_IN_TEN = 1.2815515655446004
"""Quantile 0.9 of the normal distribution: eight of ten lie within it on both sides."""
FEWEST = 3
"""Points from which an interval is told."""
LEAST_SPREAD = 0.02
"""Points of one run agree by chance; no repetition of a benchmark is nearer than about 2 %."""


def student_quantile(freedom: int) -> float:
    """Quantile 0.9 of Student's t with so many degrees of freedom, at least 2.

    From that of the normal distribution by the expansion of Cornish and Fisher (Abramowitz & Stegun 26.7.5), whose
    error is below 0.2 % from 2 on. Worked number: 1.886 for 2, 1.372 for 10.
    """
    z = EIGHT_IN_TEN
    terms = (
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
        (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / 92_160,
    )
    return z + sum(term / math.pow(freedom, power) for power, term in enumerate(terms, start=1))


def spread_of(residuals: Sequence[float]) -> float:
    """Root mean square of log residuals about the fit, one degree of freedom spent on it; of two or more."""
    return max(LEAST_SPREAD, math.sqrt(math.fsum(each * each for each in residuals) / (len(residuals) - 1)))


def interval_of(residuals: Sequence[float]) -> tuple[float, float] | None:
    """Between which multiples of the fit eight new points of ten will lie; None of fewer than three.

    t·s·sqrt(1 + 1/n) in log space: the scatter of a point, and that of the middle it is seen from.
    """
    n = len(residuals)
    if n < FEWEST:
        return None
    reach = student_quantile(n - 1) * spread_of(residuals) * math.sqrt(1 + 1 / n)
    return math.exp(-reach), math.exp(reach)


def typical(errors: Sequence[float]) -> float | None:
    """The median size of log errors; None of none."""
    return float(np.median(np.abs(errors))) if len(errors) else None
