"""Bytes and FLOP of a pass, median and best, and what cannot be."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.calc.dtypes import Dtype
from app.machine.peaks.outcome import (
    LONGEST_S,
    SHORTEST_S,
    ProductRate,
    Progress,
    SkipReason,
    Stream,
    StreamRate,
    Timing,
    timing_of,
)

TIMES = st.floats(SHORTEST_S, LONGEST_S)


def test_copies_move_two_arrays_and_triads_three() -> None:
    timing = Timing(100, median_s=2.0, best_s=1.0)
    copy, triad = (StreamRate(stream, 2**30, timing) for stream in Stream)
    assert (copy.moved_bytes, triad.moved_bytes) == (2 * 2**30, 3 * 2**30)
    assert (copy.best_bytes_per_s, copy.median_bytes_per_s) == (2.0 * 2**30, 1.0 * 2**30)
    assert triad.best_bytes_per_s == 3.0 * 2**30


def test_a_product_takes_two_flop_an_element_of_the_cube() -> None:
    rate = ProductRate(Dtype.BF16, 8192, Timing(100, median_s=2e-3, best_s=1e-3))
    assert rate.flops == 2 * 8192 * 8192 * 8192 == 1_099_511_627_776
    assert rate.best_flops_per_s == pytest.approx(1.0995e15, rel=1e-4)
    assert rate.median_flops_per_s == rate.best_flops_per_s / 2


@given(st.lists(TIMES, min_size=1, max_size=9))
def test_median_and_best(times_s: list[float]) -> None:
    timing, in_order = timing_of(times_s), sorted(times_s)
    assert (timing.iterations, timing.best_s) == (len(times_s), in_order[0])
    if len(times_s) % 2:
        assert timing.median_s == in_order[len(times_s) // 2]
    assert in_order[0] <= timing.median_s <= in_order[-1]


@pytest.mark.parametrize(
    "times_s",
    [[], [0.0], [1e-3, 0.0], [-1e-3], [math.nan], [1e-3, math.nan], [math.inf], [1e-3, math.inf], [1e-12], [1e9]],
    ids=repr,
)
def test_times_that_cannot_be(times_s: list[float]) -> None:
    with pytest.raises(ValueError, match="time"):
        timing_of(times_s)


@pytest.mark.parametrize(
    ("iterations", "median_s", "best_s"),
    [(0, 1e-3, 1e-3), (-1, 1e-3, 1e-3), (1, 1e-3, 2e-3), (1, math.nan, 1e-3), (1, 1e-3, math.nan), (1, 5e-324, 5e-324)],
)
def test_timings_that_cannot_be(iterations: int, median_s: float, best_s: float) -> None:
    with pytest.raises(ValueError, match="timing"):
        Timing(iterations, median_s, best_s)


@pytest.mark.parametrize("size", [0, -1, 2**21, 10**30])
def test_sizes_that_cannot_be(size: int) -> None:
    timing = Timing(1, 1e-3, 1e-3)
    with pytest.raises(ValueError, match="matrix"):
        ProductRate(Dtype.BF16, size, timing)
    with pytest.raises(ValueError, match="array"):
        StreamRate(Stream.COPY, -size if size > 0 else size, timing)


@given(st.integers(1, 2**43), st.integers(1, 2**20), TIMES)
def test_rates_are_finite(array_bytes: int, size: int, best_s: float) -> None:
    timing = Timing(1, best_s, best_s)
    for rate in (
        StreamRate(Stream.TRIAD, array_bytes, timing).best_bytes_per_s,
        ProductRate(Dtype.FP8, size, timing).best_flops_per_s,
    ):
        assert math.isfinite(rate)
        assert rate > 0


@pytest.mark.parametrize(
    ("step", "done", "of"),
    [
        ("copy", 1, 1),
        ("copy", -1, 2),
        ("", 0, 1),
        ("<b>", 0, 1),
        ("bf16 4096 1", 0, 1),
        ("copy\n", 0, 1),
        ("copy", 0, 10**9),
    ],
)
def test_steps_that_cannot_be(step: str, done: int, of: int) -> None:
    with pytest.raises(ValueError, match="step"):
        Progress(step, done, of)


def test_every_reason_has_words() -> None:
    assert len({reason.message for reason in SkipReason}) == len(SkipReason)
