"""How long answers are: the longest of a batch and the running one, by hand and against drawn lengths."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.calc.time.lengths import Lengths, Shape
from tests.calc.strategies import repeatable

FIXED, UNIFORM, ENDLESS = (Lengths(shape, 128.0) for shape in Shape)
CUT = Lengths(Shape.EXPONENTIAL, 128.0, 512)
BATCHES = (1, 2, 32, 500)
DRAWN = 20_000


def drawn(lengths: Lengths, batch: int) -> np.ndarray:
    """`DRAWN` answers in batches, by inverting the distribution; the same at every run."""
    u = np.random.default_rng(7).random((DRAWN // batch, batch))
    if lengths.shape is Shape.UNIFORM:
        return 2 * lengths.mean * u
    found = -lengths.scale * np.log1p(-u)
    return found if lengths.longest is None else np.minimum(found, lengths.longest)


def test_the_longest_of_32_by_hand() -> None:
    assert FIXED.longest_of(32) == 128
    assert UNIFORM.longest_of(32) == pytest.approx(256 * 32 / 33)  # 248.2
    harmonic = sum(1 / i for i in range(1, 33))
    assert ENDLESS.longest_of(32) == pytest.approx(128 * harmonic)  # 519.5
    assert ENDLESS.longest_of(32) == pytest.approx(519.5, abs=0.05)


def test_a_running_answer_by_hand() -> None:
    running = [Lengths(shape, 300.0).mid_answer for shape in Shape]
    assert running == pytest.approx([150, 200, 300])


def test_a_cut_keeps_the_mean() -> None:
    theta = CUT.scale
    assert theta * (1 - math.exp(-512 / theta)) == pytest.approx(128, rel=1e-9)
    assert theta == pytest.approx(130.6, abs=0.05)
    assert CUT.longest_of(1) == pytest.approx(128, rel=1e-9)
    assert CUT.most == 512


def test_a_cut_at_the_mean_makes_all_alike() -> None:
    alike = Lengths(Shape.EXPONENTIAL, 128.0, 128)
    assert math.isinf(alike.scale)
    assert [alike.longest_of(batch) for batch in BATCHES] == [128] * 4
    assert alike.mid_answer == 64


@pytest.mark.parametrize("batch", BATCHES)
@pytest.mark.parametrize("lengths", [UNIFORM, ENDLESS, CUT])
def test_the_longest_of_a_batch_is_that_of_drawn_ones(lengths: Lengths, batch: int) -> None:
    longest = drawn(lengths, batch).max(axis=1)
    error = longest.std() / math.sqrt(len(longest))
    assert longest.mean() == pytest.approx(lengths.longest_of(batch), abs=5 * error + 0.01)


@pytest.mark.parametrize("lengths", [UNIFORM, ENDLESS, CUT])
def test_a_running_answer_is_that_of_drawn_ones(lengths: Lengths) -> None:
    """Seen at any moment, an answer is met as often as it is long, anywhere along it: E[L²] ÷ 2·E[L]."""
    found = drawn(lengths, 1)
    assert found.mean() == pytest.approx(lengths.mean, rel=0.03)
    assert (found**2).mean() / (2 * found.mean()) == pytest.approx(lengths.mid_answer, rel=0.03)


LENGTHS = st.builds(
    lambda shape, mean, cut: Lengths(shape, float(mean), int(mean * cut) if cut and shape == "exponential" else None),
    st.sampled_from(Shape),
    st.integers(1, 10**8),
    st.none() | st.floats(1, 50),
)


@repeatable
@given(LENGTHS, st.integers(1, 10**6), st.integers(1, 1000))
def test_the_longest_lies_between_mean_and_most_and_grows_with_the_batch(
    lengths: Lengths, batch: int, more: int
) -> None:
    one, larger = lengths.longest_of(batch), lengths.longest_of(batch + more)
    assert lengths.mean * (1 - 1e-9) <= one <= lengths.most * (1 + 1e-12)
    assert one <= larger * (1 + 1e-9)
    assert lengths.longest_of(1) == pytest.approx(lengths.mean, rel=1e-6)
    assert math.isfinite(larger)


@repeatable
@given(LENGTHS)
def test_a_running_answer_has_at_least_half_the_mean_and_less_than_the_most(lengths: Lengths) -> None:
    assert lengths.mean / 2 * (1 - 1e-6) <= lengths.mid_answer <= lengths.most
    assert lengths.mid_answer <= lengths.mean * (1 + 1e-6)  # none of the shapes is more spread than the exponential


def test_many_are_reckoned_as_a_few_are() -> None:
    """The logarithm that stands in for a long sum meets it."""
    below, above = ENDLESS.longest_of(4096), ENDLESS.longest_of(4097)
    assert 0 < above - below < 128 / 4000
