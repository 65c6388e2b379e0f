"""How an assumed overhead comes about, and what beats it."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.calc.memory.engines.parts import Interval, Part, WeightSpread, remaining
from app.calc.memory.engines.rules import GIVEN, Law, found
from app.calc.memory.engines.vllm import VllmPolicy, VllmRelease
from app.calc.model.split import Split
from tests.calc.memory.engines.laws import GIB, fixed, laws, only
from tests.calc.strategies import repeatable


def test_a_law_is_a_factor_and_a_fixed_part() -> None:
    law = Law(fixed_gib=0.5, low=0.5, high=2.0, evidence="By hand.", factor=1.5)
    assert law.interval(2 * GIB) == Interval(1.75 * GIB, 3.5 * GIB, 7 * GIB)
    assert law.interval(2 * GIB, scale=0.0) == Interval(0, 0, 0)
    assert law.interval() == Interval(0.25 * GIB, 0.5 * GIB, GIB)


def test_each_gpu_that_takes_part_may_add_to_it() -> None:
    law = Law(fixed_gib=0.5, low=1.0, high=1.0, evidence="By hand.", per_gpu_gib=0.125)
    assert law.interval(gpus=8).mid == 1.5 * GIB


def test_what_is_given_beats_what_is_assumed() -> None:
    law = Law(fixed_gib=1, low=0.5, high=2, evidence="Assumed.")
    measured = found(Part.ACTIVATION, 123.0, law, 5 * GIB)
    assert (measured.bytes, measured.is_given, measured.evidence) == (Interval.exactly(123.0), True, GIVEN)
    assumed = found(Part.ACTIVATION, None, law)
    assert (assumed.bytes.mid, assumed.is_given, assumed.evidence) == (GIB, False, "Assumed.")
    nothing = found(Part.ACTIVATION, 0.0, law)
    assert (nothing.bytes, nothing.is_given) == (Interval.exactly(0.0), True)


def test_graphs_are_there_where_they_are_captured_and_charged_by_the_release() -> None:
    for charges in (True, False):
        policy = VllmPolicy("vLLM", VllmRelease(charges_graphs=charges), laws())
        captured = next(o for o in only(policy).overheads if o.part is Part.GRAPHS)
        assert (captured.bytes.mid, captured.is_charged) == (GIB / 4, charges)
    eager = only(VllmPolicy("vLLM", VllmRelease(), laws()), settings={"is_eager": True})
    assert eager.overhead(Part.GRAPHS) == Interval(0, 0, 0)
    bare = replace(laws(), graphs=None)
    assert Part.GRAPHS not in {o.part for o in only(VllmPolicy("vLLM", VllmRelease(), bare)).overheads}


def test_peers_cost_collectives() -> None:
    policy = VllmPolicy("vLLM", VllmRelease(), laws())
    alone, several = only(policy), only(policy, split=Split(2))
    found_on = [next(o for o in rank.overheads if o.part is Part.NON_FRAMEWORK) for rank in (alone, several)]
    assert [overhead.bytes.mid for overhead in found_on] == [GIB / 2, GIB]


def test_the_widths_of_independent_parts_add_as_squares() -> None:
    left = remaining(100.0, [Interval(9, 10, 13), Interval(18, 20, 24), Interval.exactly(5)])
    assert left == Interval(65 - 5, 65, 65 + 5**0.5)
    assert remaining(100.0, []) == Interval.exactly(100.0)
    assert Interval.exactly(7.0).is_exact
    assert not left.is_exact
    assert left.sides == (60, 65, 65 + 5**0.5)


def test_weights_are_loaded_with_a_spread() -> None:
    assert WeightSpread(0.98, 1.05, "Logs.").interval(100.0) == Interval(98, 100, 105)
    assert WeightSpread(added_gib=0.5).interval(GIB) == Interval.exactly(1.5 * GIB)


sides = st.builds(
    lambda mid, below, above: Interval(mid - below, mid, mid + above),
    st.floats(0, 1e11),
    st.floats(0, 1e10),
    st.floats(0, 1e10),
)


@repeatable
@given(st.floats(0, 1e12), st.lists(sides, max_size=6))
def test_what_remains_contains_its_mid_and_no_less_than_the_worst(total: float, taken: list[Interval]) -> None:
    left = remaining(total, taken)
    assert left.low <= left.mid <= left.high
    worst, best = total - sum(part.high for part in taken), total - sum(part.low for part in taken)
    assert worst - 1 <= left.low
    assert left.high <= best + 1
    assert left.mid == pytest.approx(total - sum(part.mid for part in taken), rel=1e-12, abs=1e-3)


@repeatable
@given(st.floats(0, 10), st.floats(0, 1), st.floats(1, 4), st.floats(0, 3), st.floats(0, 1e12), st.floats(0, 1e12))
def test_more_physics_never_takes_less(
    gib: float, low: float, high: float, factor: float, physics: float, more: float
) -> None:
    law = Law(fixed_gib=gib, low=low, high=high, evidence="By hand.", factor=factor)
    now, then = law.interval(physics), law.interval(physics + more)
    assert now.low <= now.mid <= now.high
    assert now.low <= then.low
    assert now.mid <= then.mid
    assert now.high <= then.high


def test_the_fixed_law_of_these_tests_is_what_it_says() -> None:
    assert fixed(2).interval(1e12) == Interval.exactly(2 * GIB)
