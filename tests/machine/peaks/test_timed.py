"""Warm-up, number and batches of timed passes, within the time."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.machine.peaks.outcome import Timing
from app.machine.peaks.plan import Plan
from app.machine.peaks.steps import BATCH, FEWEST, TooSlowError, timed
from tests.machine.peaks.scripted_kernels import Script


def time_it(script: Script, share_s: float, plan: Plan | None = None) -> Timing:
    return timed(script, script.work("it"), plan or Plan(), share_s, script.clock)


def test_fifty_warm_ups_and_a_hundred_timed() -> None:
    script = Script(lambda _: 1e-3)
    timing = time_it(script, share_s=10)
    assert timing == Timing(100, 1e-3, 1e-3)
    assert script.passes == {"it": 150}
    assert max(script.batches) == BATCH


def test_the_time_bounds_both() -> None:
    script = Script(lambda _: 0.1)
    timing = time_it(script, share_s=6)
    # Two seconds of warm-up: the first two passes, then what is left of a third; then the rest of the six seconds.
    assert script.passes == {"it": 60}
    assert timing.iterations == 40
    assert script.now_s == pytest.approx(6)


def test_the_fewest_passes_that_tell_anything_are_made_or_none() -> None:
    script = Script(lambda _: 0.1)
    assert time_it(script, share_s=1.25).iterations >= FEWEST
    script = Script(lambda _: 0.1)
    with pytest.raises(TooSlowError):
        time_it(script, share_s=1.1)
    assert script.passes == {"it": 2}


def test_a_pass_that_takes_forever_is_made_twice_and_no_more() -> None:
    script = Script(lambda _: 1e9)
    with pytest.raises(TooSlowError):
        time_it(script, share_s=10)
    assert script.passes == {"it": 2}


@pytest.mark.parametrize("took_s", [0.0, -1e-3, math.nan], ids=repr)
def test_a_clock_that_cannot_be_believed(took_s: float) -> None:
    with pytest.raises(ValueError, match=r"tim|NaN|nan"):
        time_it(Script(lambda _: took_s), share_s=10)


@given(st.floats(1e-6, 3), st.floats(0.01, 60), st.integers(2, 80), st.integers(5, 200))
def test_never_much_longer_than_the_share(pace_s: float, share_s: float, warm_ups: int, iterations: int) -> None:
    script = Script(lambda _: pace_s)
    try:
        timing = time_it(script, share_s, Plan(warm_ups=warm_ups, iterations=iterations))
    except TooSlowError:
        assert script.passes["it"] == 2
        return
    assert FEWEST <= timing.iterations <= iterations
    assert script.passes["it"] <= warm_ups + iterations
    # The fewest passes are made even where the first ones used up more than was thought.
    assert script.now_s <= share_s + FEWEST * pace_s + 1e-6
