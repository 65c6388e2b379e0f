"""Whether what is left over follows the load."""

import math

import pytest

from app.bench.drift import drift_of

LOADS = (1, 4, 16, 64)


def test_worked_line() -> None:
    found = drift_of(LOADS, [-0.3, -0.1, 0.1, 0.3])
    assert found is not None
    assert (found.lowest, found.highest) == (1, 64)
    assert found.at_lowest == pytest.approx(math.exp(-0.3))
    assert found.at_highest == pytest.approx(math.exp(0.3))


@pytest.mark.parametrize(
    ("loads", "residuals"),
    [
        ((), ()),
        ((1, 64), (-0.5, 0.5)),
        ((8, 8, 8, 8), (-0.3, -0.1, 0.1, 0.3)),
        (LOADS, (0.3, -0.3, 0.3, -0.3)),
        (LOADS, (-0.03, -0.01, 0.01, 0.03)),
        (LOADS, (0.0, 0.0, 0.0, 0.0)),
    ],
    ids=["none", "two", "one load", "scatter", "little", "nothing"],
)
def test_what_is_no_drift(loads: tuple[int, ...], residuals: tuple[float, ...]) -> None:
    assert drift_of(loads, residuals) is None
