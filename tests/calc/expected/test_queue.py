"""Requests among each other: the worked number, and that no time is lost or made."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.calc.expected.queue import stay, waiting_share
from tests.calc.strategies import repeatable

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
