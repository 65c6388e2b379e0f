"""Sizes, room and time of a plan."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.calc.dtypes import Dtype
from app.calc.quantity import GIB, MIB
from app.machine.peaks.plan import (
    DTYPES,
    MOST_BUFFER_BYTES,
    SIZES,
    Plan,
    plan_of,
    product_bytes,
    room_bytes,
    vector_elements,
)

PLANS = st.builds(
    Plan,
    device=st.integers(0, 255),
    seconds=st.floats(5, 600),
    libraries=st.sampled_from([("torch",), ("cupy",), ("torch", "cupy"), ()]),
    most_held_fraction=st.none() | st.floats(0, 1),
    sizes=st.lists(st.integers(1, 20_000), max_size=3).map(tuple),
    dtypes=st.lists(st.sampled_from(Dtype), max_size=3).map(tuple),
)


@settings(max_examples=40)
@given(PLANS)
def test_a_plan_survives_its_line(plan: Plan) -> None:
    line = plan.line()
    assert line.endswith(b"\n")
    assert line.count(b"\n") == 1
    assert plan_of(line) == plan


def test_the_default_plan_is_that_of_the_notes() -> None:
    plan = Plan()
    assert (plan.sizes, plan.warm_ups, plan.iterations) == ((4096, 8192, 16384), 50, 100)
    assert plan.timeout_s == 90
    assert Dtype.BF16 in plan.dtypes


@pytest.mark.parametrize("seconds", [math.nan, math.inf, -math.inf, -1.0, 0.0, 4.99, 600.1, 1e308])
def test_a_time_that_is_none_is_refused(seconds: float) -> None:
    with pytest.raises(ValueError, match="5 to 600 seconds"):
        Plan(seconds=seconds)


@pytest.mark.parametrize("device", [-1, 256, 10**30])
def test_a_device_that_cannot_be_is_refused(device: int) -> None:
    with pytest.raises(ValueError, match="0 to 255"):
        Plan(device=device)


@pytest.mark.parametrize("line", [b"", b"{}\n", b"[]\n", b"null\n", b'{"sizes": 1}\n', b"\xff\n"])
def test_a_line_that_is_no_plan_is_refused(line: bytes) -> None:
    with pytest.raises((ValueError, TypeError, KeyError)):
        plan_of(line)


def test_worked_numbers_of_the_room() -> None:
    assert room_bytes(80 * GIB) == 8 * GIB
    assert room_bytes(24 * GIB) == 6 * GIB
    assert vector_elements(8 * GIB, 50 * MIB) == GIB // 4
    assert vector_elements(6 * GIB, 512 * MIB) == 2 * GIB // 4  # four times the cache is more than a gigabyte
    assert vector_elements(int(1.5 * GIB), 50 * MIB) == GIB // 8  # not a gigabyte, but ten times the cache
    assert vector_elements(GIB, 96 * MIB) is None  # a third of the room would lie in the cache
    assert vector_elements(GIB, None) is None  # who knows what would lie in an unknown one
    assert product_bytes(Dtype.BF16, 16384) == 10 * 16384**2
    assert product_bytes(Dtype.INT8, 4096) == (1 + 1 + 4 + 4) * 4096**2


@settings(max_examples=40)
@given(st.integers(0, 2**42), st.none() | st.integers(1, 2**34))
def test_vectors_outgrow_the_cache_and_stay_within_the_room(free_bytes: int, cache_bytes: int | None) -> None:
    room = room_bytes(free_bytes)
    assert room <= min(free_bytes // 4 + 1, MOST_BUFFER_BYTES)
    elements = vector_elements(room, cache_bytes)
    if elements is not None:
        assert 3 * 4 * elements <= room
        assert 4 * elements >= 4 * (cache_bytes or 128 * MIB) - 4


def test_every_product_fits_the_room_of_a_large_card() -> None:
    assert all(product_bytes(dtype, size) <= MOST_BUFFER_BYTES for dtype in DTYPES for size in SIZES)
