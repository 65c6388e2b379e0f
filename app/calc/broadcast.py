"""One formula for a number and for an array: the few operations that differ between them."""

import math
from typing import TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

Quantity: TypeAlias = float | NDArray[np.float64]
"""A number, or an array of them; everything in `calc` that takes one takes the other, and they broadcast."""


def maximum(a: Quantity, b: Quantity) -> Quantity:
    """The larger of two, element by element. Plain floats stay plain: NumPy scalars cost ten times as much."""
    if isinstance(a, (int, float)) and isinstance(b, (int, float)):
        return max(a, b)
    return cast("Quantity", np.maximum(a, b))


def minimum(a: Quantity, b: Quantity) -> Quantity:
    """The smaller of two, element by element."""
    if isinstance(a, (int, float)) and isinstance(b, (int, float)):
        return min(a, b)
    return cast("Quantity", np.minimum(a, b))


def indicator(condition: bool | NDArray[np.bool_]) -> Quantity:
    """1 where the condition holds, 0 elsewhere."""
    return cast("Quantity", 1.0 * condition)


def floor(a: Quantity) -> Quantity:
    """The largest whole number not above `a`."""
    if isinstance(a, (int, float)):
        return float(math.floor(a))
    return cast("Quantity", np.floor(a))


def scalar(a: Quantity) -> float:
    """`a` as one float; a single evaluation holds no arrays.

    Raises:
        TypeError: `a` is an array of more than one element.
    """
    return float(a)
