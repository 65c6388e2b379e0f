"""Whether what is left over follows the load."""

import math
import random

import pytest

from app.features.benchmarks.regression import LEAST_SPREAD, drift_of, interval_of, spread_of, student_quantile, typical

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


@pytest.mark.parametrize(
    ("freedom", "quantile"),
    # Any table of Student's t, one-sided 90 %.
    [(2, 1.8856), (3, 1.6377), (4, 1.5332), (5, 1.4759), (10, 1.3722), (30, 1.3104), (120, 1.2886), (10**6, 1.28155)],
)
def test_the_quantile_is_that_of_the_tables(freedom: int, quantile: float) -> None:
    assert student_quantile(freedom) == pytest.approx(quantile, rel=2e-3)


def test_an_interval_needs_three_points() -> None:
    assert interval_of([]) is None
    assert interval_of([0.1, -0.1]) is None
    assert interval_of([0.1, 0.0, -0.1]) is not None


def test_worked_interval() -> None:
    low, high = interval_of([0.1, 0.0, -0.1]) or (0.0, 0.0)
    # s = sqrt(0.02 / 2) = 0.1; t(2) = 1.886; sqrt(4/3) = 1.1547
    assert math.log(high) == pytest.approx(1.886 * 0.1 * 1.1547, rel=2e-3)
    assert low == pytest.approx(1 / high)


def test_points_that_agree_by_chance_claim_no_more_than_benchmarks_repeat() -> None:
    assert spread_of([0.0, 0.0, 0.0]) == LEAST_SPREAD


@pytest.mark.parametrize("n", [3, 6, 12])
def test_eight_new_points_of_ten_lie_within(n: int) -> None:
    drawn = random.Random(n)
    hits = trials = 0
    for _ in range(1500):
        seen = [drawn.gauss(0, 0.2) for _ in range(n)]
        middle = sum(seen) / n
        low, high = interval_of([one - middle for one in seen]) or (0.0, 0.0)
        hits += low <= math.exp(drawn.gauss(0, 0.2) - middle) <= high
        trials += 1
    assert hits / trials == pytest.approx(0.8, abs=0.035)


def test_a_typical_error_has_no_direction() -> None:
    assert typical([]) is None
    assert typical([-0.3, 0.1, 0.2]) == pytest.approx(0.2)
