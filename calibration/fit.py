"""The fit: parameters that explain the measurements best without leaving their priors further than those say."""

import hashlib
from collections import Counter
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import least_squares

from calibration.parameters import Vector
from calibration.rows import Row, regimes
from calibration.stack import Stack

NOISE = 0.25
"""Deviation of a measurement's logarithm from any closed form; the same cell re-run differs by up to 0.3."""
FAMILY_POWER = 0.3
"""A family of n rows weighs n^(1 − 2 × 0.3) of one: rows of one sweep are not independent."""
UNSTATED_WEIGHT = 0.3
"""Weight of rows whose source does not say whether it speculates."""
REGIME_WEIGHT = {"ttft many": 0.35, "ttft one": 0.5, "prefill": 0.8}
"""Arrivals, clients and tokenizers are in these, and no scenario says them."""
ROUNDS = 10
HELD = 0.001
"""A prior of this deviation, or less, is not moved."""


def weights(rows: Sequence[Row], training: NDArray[np.bool_]) -> Vector:
    """Weight of each residual; 0 for rows that are held out."""
    names = [f"{row.measurement.family} {regime}" for row, regime in zip(rows, regimes(rows), strict=True)]
    counts = Counter(name for name, used in zip(names, training, strict=True) if used)
    found = np.array([counts[name] ** -FAMILY_POWER if counts[name] else 0.0 for name in names])
    found *= np.array([REGIME_WEIGHT.get(regime, 1.0) for regime in regimes(rows)])
    found *= np.array([1.0 if row.measurement.is_scored else UNSTATED_WEIGHT for row in rows])
    return np.where(training, found, 0.0) / NOISE


def fit(stack: Stack, rows: Sequence[Row], deviations: Vector, training: NDArray[np.bool_]) -> Vector:
    """The moves of the parameters, from the priors: a start from another fit would leak what was held out.

    Residuals are logarithms of prediction ÷ measurement under Cauchy's loss, which lets outliers be; each move costs
    its own square in units of its prior deviation.
    """
    weight = weights(rows, training)
    used = np.where(weight > 0)[0]
    measured = np.array([row.measurement.value for row in rows])[used]

    free = np.where(deviations > HELD)[0]

    def moved(part: Vector) -> Vector:
        moves = np.zeros(len(deviations))
        moves[free] = part
        return moves

    def residuals(part: Vector) -> Vector:
        scaled = np.log(stack.predict(moved(part))[used] / measured) * weight[used]
        softened = np.sign(scaled) * np.sqrt(np.log1p(scaled**2))
        return np.concatenate([softened, part / deviations[free]])

    solution = least_squares(residuals, np.zeros(len(free)), max_nfev=ROUNDS, diff_step=1e-4, x_scale=deviations[free])
    return moved(solution.x)


def folds(rows: Sequence[Row], count: int) -> NDArray[np.int64]:
    """The fold of each row; a family is in one fold, by a digest of its name."""
    digests = [hashlib.sha256(row.measurement.family.encode()).hexdigest() for row in rows]
    return np.array([int(digest, 16) % count for digest in digests])
