"""The same scenario on other cards: ratios by hand, which are looked at, and the change that leads there and back."""

from dataclasses import replace
from types import MappingProxyType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.calc.accelerator import Accelerator
from app.calc.dtypes import Dtype
from app.calc.measure import measure
from app.calc.memory.engines.parts import Given
from app.calc.model.attention_variants import Alternative
from app.calc.optimize.newer_card import BANDWIDTH, COST, MOST_ROWS, PEAK, SPEC
from app.calc.optimize.optimization import Asked, Level
from app.calc.optimize.sides import THROUGHPUT, TPOT
from tests.calc.optimize.asking import by_hand, changed, check, column, models_and_cards, numbers, of_product
from tests.calc.strategies import repeatable
from tests.factories import deployment, engine, h100_sxm, h200_sxm, scenario_document, workload

H200 = Alternative(h200_sxm(), 256)


def card(name: str, bandwidth: float, memory: float = 80e9) -> Alternative:
    made = replace(h100_sxm(), id=name, name=name, bandwidth_bytes_per_s=bandwidth, memory_marketed_bytes=memory)
    return Alternative(replace(made, memory_reported_bytes=None), 256)


def test_more_bandwidth_and_the_same_arithmetic() -> None:
    """4.8 ÷ 3.35 is 1.43, and so is the ceiling of a token: every operator of a step waits for memory."""
    found = SPEC.compare(by_hand([H200], workload=workload(1000, 500, 1)))
    assert not found.is_used
    assert found.change == {"hardware": {"id": "h200"}}
    before, after = numbers(found, TPOT, Level.CEILING)
    assert before is not None
    assert after is not None
    assert before / after == pytest.approx(4.8 / 3.35) == pytest.approx(1.433, abs=0.001)
    assert numbers(found, BANDWIDTH, Level.CEILING) == (3.35e12, 4.8e12)
    assert numbers(found, PEAK, Level.CEILING) == (989e12, 989e12)
    assert "1.43 times the bandwidth" in found.sentence
    assert "a token comes 1.43 times sooner" in found.sentence


def test_what_is_expected_gains_less_than_bandwidth() -> None:
    found = SPEC.compare(of_product(workload={"prompt_tokens": 1000, "output_tokens": 500, "concurrency": 1}))
    before, after = numbers(found, TPOT, Level.EXPECTED)
    wide, wider = numbers(found, BANDWIDTH, Level.CEILING)
    assert None not in (before, after, wide, wider)
    assert (before or 0) / (after or 1) < (wider or 0) / (wide or 1)
    assert "kernel launches took no less" in found.sentence


def test_the_best_card_is_used_and_closes_to_the_next() -> None:
    asked = by_hand([Alternative(h100_sxm(), 256)], accelerator=h200_sxm())
    found = SPEC.compare(asked)
    assert found.is_used
    assert found.change == {"hardware": {"id": "h100"}}
    assert numbers(found, BANDWIDTH, Level.CEILING) == (3.35e12, 4.8e12)
    assert found.label == "Back to H100 SXM"
    assert found.sentence.startswith("No card known here gives more than this one.")


def test_rows_are_the_cards_by_throughput_and_not_too_many() -> None:
    many = [card(f"c{n}", 1e12 * n) for n in range(1, 20)]
    found = SPEC.compare(by_hand(many))
    rates = column(found, "throughput")
    assert list(rates.values()) == sorted(rates.values(), reverse=True, key=lambda rate: rate or 0)
    assert len(rates) == MOST_ROWS
    assert "c19" in rates
    assert found.variants is not None
    (here,) = [row for row in found.variants.rows if row.is_here]
    assert here.note == "not in the table: 8 with less bandwidth than those of the table"
    assert column(found, "gain")[here.label] == 1


def test_what_is_too_small_or_has_no_rate_is_counted() -> None:
    narrow = replace(h200_sxm(), id="n", name="N", peak_flops_per_s=MappingProxyType({Dtype.FP16: 1e15}))
    found = SPEC.compare(by_hand([H200, card("small", 9e12, 1e10), Alternative(narrow, 256)]))
    assert found.variants is not None
    (note,) = [row.note for row in found.variants.rows if row.is_here]
    assert note == "not in the table: 1 too small, 1 without a published rate of this arithmetic"
    assert set(column(found, "bandwidth")) == {"H100 SXM", "H200 SXM"}


def test_cost_stands_where_a_price_is_known() -> None:
    unpriced = Alternative(replace(h200_sxm(), price_usd_per_hour=None, tdp_w=None), 256)
    found = SPEC.compare(by_hand([unpriced]))
    before, after = numbers(found, COST, Level.EXPECTED)
    assert before is not None
    assert after is None
    assert column(found, "cost")["H200 SXM"] is None


@pytest.mark.parametrize(
    ("cards", "reason"),
    [
        ([], "No other card is known to move to."),
        ([Alternative(h100_sxm(), 256)], "No other card is known to move to."),
        ([card("small", 9e12, 1e9)], "No other card that is known holds it: 1 too small."),
    ],
)
def test_without_another_card_it_is_refused(cards: list[Alternative], reason: str) -> None:
    found = SPEC.compare(by_hand(cards))
    check(found, "newer_card")
    assert found.refused == reason


def test_where_no_card_holds_all_those_that_hold_some_are_told() -> None:
    found = SPEC.compare(by_hand([H200], workload=workload(1000, 500, 5000)))
    assert found.refused is None
    assert found.variants is not None
    assert all("the others wait" in row.note for row in found.variants.rows)


def test_what_was_measured_of_this_card_is_forgotten() -> None:
    given_parts = Given(total_memory=8e10, weights=1.6e10, kv_pool=4e10)
    found = SPEC.compare(by_hand([H200], engine=engine(given=given_parts)))
    assert found.change == {"hardware": {"id": "h200"}, "engine": {"total_memory_bytes": None, "kv_pool_bytes": None}}


@pytest.mark.parametrize("sections", [{}, {"engine": {"kv_pool_bytes": 2e10}}, {"parallelism": {"tensor": 2}}])
def test_the_change_leads_to_the_other_side(sections: dict[str, dict[str, float]]) -> None:
    found = SPEC.compare(of_product(**sections))
    there = changed(scenario_document(**sections), found)
    side = 0 if found.is_used else 1
    assert there.measures.serving.tpot_s.ceiling == numbers(found, TPOT, Level.CEILING)[side]
    assert there.measures.serving.output_tokens_per_s.mid == numbers(found, THROUGHPUT, Level.EXPECTED)[side]


@repeatable
@given(st.floats(1e12, 1e14), st.sampled_from([1, 64, 5000]))
def test_no_card_beats_its_floor_and_more_bandwidth_never_slows(bandwidth: float, users: int) -> None:
    load = workload(1000, 500, users)
    found = SPEC.compare(by_hand([card("a", bandwidth), card("b", 2 * bandwidth)], workload=load))
    check(found, "newer_card")
    tpot = column(found, "tpot_ceiling")
    for name, width in (("a", bandwidth), ("b", 2 * bandwidth)):
        on_it = deployment(workload=load, accelerator=card(name, width).accelerator)
        assert tpot[name] == measure(on_it).decode.ceiling_s
        assert (tpot[name] or 0) >= measure(on_it).decode.bytes / width * (1 - 1e-9)
    assert (tpot["b"] or 0) <= (tpot["a"] or 0)


def test_it_is_told_of_any_model_and_card() -> None:
    for asked in models_and_cards():
        check(SPEC.compare(asked), "newer_card")


def test_a_card_of_ones_own_has_no_others() -> None:
    own = Accelerator("custom", "Mine", 80e9, None, 1e12, {Dtype.BF16: 1e14})
    here = deployment(accelerator=own)
    assert SPEC.compare(Asked(here, measure(here))).refused == "No other card is known to move to."
