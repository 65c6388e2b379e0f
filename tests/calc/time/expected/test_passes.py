"""What a pass takes: hand-worked operators, broadcasting, and floors that nothing beats.

Requests among each other: the worked number, and that no time is lost or made.
"""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.calc.time.expected.passes import (
    Chunks,
    Slope,
    Timed,
    Wires,
    decode_time,
    pipeline_share,
    prefill_time,
    smooth_max,
    stay,
    waiting_share,
)
from app.calc.time.expected.reached import Kind, Reach
from tests.calc.strategies import repeatable

times = st.floats(1e-12, 1e6)


def matrix(flops: float = 4e9, moved: float = 3e9, kind: Kind = Kind.MATRIX) -> Timed:
    """At these shares: 2 ms of FLOP, 1.5 ms of bytes, two calls of 5 µs."""
    return Timed(kind, flops, moved, 0.0, 2, 4e12, Reach(0.5, 0.5, 5e-6))


WIRES = Wires(4e12, 1e11)


def test_a_smooth_maximum_by_hand() -> None:
    assert smooth_max(3.0, 4.0) == pytest.approx(91 ** (1 / 3))
    assert smooth_max(4.0, 3.0) == smooth_max(3.0, 4.0)
    assert smooth_max(0.0, 0.0) == 0.0
    assert smooth_max(1.0, 1.0) == pytest.approx(2 ** (1 / 3))


@repeatable
@given(times, times)
def test_a_smooth_maximum_is_above_both_and_at_most_a_quarter_more(a: float, b: float) -> None:
    found = smooth_max(a, b)
    assert max(a, b) <= found <= 1.26 * max(a, b)
    assert float(np.sum(smooth_max(np.array([a]), np.array([b])))) == pytest.approx(found, rel=1e-12)


def test_a_step_by_hand() -> None:
    found = decode_time([matrix(), matrix(flops=0.0)], WIRES)
    assert found.operators_s == pytest.approx((2e-3**3 + 1.5e-3**3) ** (1 / 3) + 1.5e-3)
    assert found.calls_s == pytest.approx(4 * 5e-6)
    assert found.collectives_s == 0


def test_a_collective_takes_its_volume_and_its_latency() -> None:
    op = Timed(Kind.ALL_REDUCE, 0.0, 0.0, 1e6, 64, 1e12, Reach(1.0, 0.5, 4e-6))
    found = decode_time([op], WIRES)
    assert found.collectives_s == pytest.approx(1e6 / 0.5e11 + 64 * 4e-6)
    assert decode_time([op], Wires(4e12, 0.0)).collectives_s == pytest.approx(64 * 4e-6), "an unknown link costs none"


def test_a_prompt_reads_the_weights_once_a_chunk_and_climbs_to_the_rate() -> None:
    slope = Slope(Chunks(3000.0, 4000.0, 2000.0), 1000.0, 100.0)
    found = prefill_time([matrix(), matrix(kind=Kind.ATTENTION), matrix(kind=Kind.HEAD)], WIRES, slope)
    weights = smooth_max(2 * 1.5e-3, 2e-3 * (1 + 100 / 2000))
    scores = smooth_max(1.5e-3, 2e-3 * (1 + 1000 / 4000))
    head = smooth_max(1.5e-3, 2e-3)
    assert found.alone.operators_s == pytest.approx(weights + scores + head)
    assert found.alone.calls_s == pytest.approx(2 * 3 * 2 * 5e-6), "two chunks, three operators of two calls"
    assert found.marginal_s == pytest.approx(2e-3 + 2e-3 * 1.25 + 2e-3), "arithmetic alone: the weights are read anyway"


def test_chunks_follow_each_other_through_the_stages() -> None:
    assert pipeline_share(Chunks(512.0, 512.0, 512.0), 1) == 1
    assert pipeline_share(Chunks(512.0, 512.0, 512.0), 4) == 1, "a single chunk passes one stage after the other"
    assert pipeline_share(Chunks(4096.0, 4096.0, 512.0), 4) == pytest.approx((11 / 32) ** 0.6)


def test_arrays_give_what_a_loop_gives() -> None:
    flops, moved = np.geomspace(1e6, 1e12, 7)[:, None], np.geomspace(1e5, 1e11, 5)[None, :]
    op = Timed(Kind.MATRIX, flops, moved, 0.0, 3, 4e12, Reach(0.5, 0.7, 5e-6))
    grid = decode_time([op], WIRES).total_s
    assert isinstance(grid, np.ndarray)
    for i, f in enumerate(flops[:, 0]):
        for j, m in enumerate(moved[0]):
            one = Timed(Kind.MATRIX, float(f), float(m), 0.0, 3, 4e12, Reach(0.5, 0.7, 5e-6))
            assert grid[i, j] == pytest.approx(decode_time([one], WIRES).total_s, rel=1e-12)


seconds = st.floats(1e-6, 100.0)


def test_the_worked_number() -> None:
    found = stay(9, 100, 0.010, 0.080, 0.0, 0.050, 0.25, 1.0)
    assert found.ttft_s == pytest.approx(0.18)
    assert found.tpot_s == pytest.approx(0.013)
    assert found.interference_s == pytest.approx(0.003)
    assert found.residency_s == pytest.approx(1.48)


def test_one_request_meets_nobody() -> None:
    found = stay(1, 100, 0.010, 0.080, 0.02, 0.050, 0.25, 0.5)
    assert found.ttft_s == pytest.approx(0.1)
    assert found.tpot_s == 0.010
    assert found.wait_s == 0.0


def test_a_wave_waits_for_all_and_a_crowd_for_less_and_less() -> None:
    assert waiting_share(63, 1.0, 1.0) == 1.0
    assert waiting_share(64, 0.8, 0.5) == pytest.approx(0.1)
    assert waiting_share(0, 0.8, 0.5) == 0.8, "nobody is met, so the part does not matter"


@repeatable
@given(
    st.floats(1, 5000), st.integers(1, 100_000), seconds, seconds, seconds, seconds, st.floats(0, 1), st.floats(0, 1)
)
def test_time_is_conserved(
    batch: float, n: int, step: float, alone: float, request: float, marginal: float, share: float, power: float
) -> None:
    found = stay(batch, n, step, alone, request, marginal, share, power)
    assert found.ttft_s + n * found.tpot_s == pytest.approx(found.residency_s, rel=1e-9)
    assert found.residency_s == pytest.approx(n * step + alone + request + (batch - 1) * marginal, rel=1e-9)
    assert found.tpot_s >= step
    assert found.ttft_s >= alone
