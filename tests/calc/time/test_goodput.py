"""Goodput: two requests by hand, the closed form, and that it is never more than passes."""

import math
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.calc.broadcast import scalar
from app.calc.deployment import Deployment
from app.calc.evaluate import evaluate
from app.calc.measure import measure
from app.calc.time.goodput import Goodput, GoodputLimit, explain_goodput, goodput, load
from app.scenario.resolve import resolve
from tests.calc.formulas import computed
from tests.calc.strategies import array, repeatable
from tests.calc.time.expected.test_floors import drawn
from tests.factories import deployment, scenario, shipped_catalog

SLACK = 1 + 1e-9
# A search over a grid of loads: two rounds leave it within so much of the best.
GRID = 1 + 2e-3


def asked(ttft_s: float | None = 1.0, tpot_s: float | None = 0.03, **sections: Any) -> Deployment:
    sections["workload"] = {"slo_ttft_s": ttft_s, "slo_tpot_s": tpot_s} | sections.get("workload", {})
    return resolve(scenario(**sections), shipped_catalog()).deployment


def found_for(here: Deployment) -> Goodput:
    found = goodput(here, measure(here))
    assert found is not None
    return found


def with_targets(here: Deployment, ttft_s: float | None, tpot_s: float | None) -> Deployment:
    return replace(here, workload=replace(here.workload, slo_ttft_s=ttft_s, slo_tpot_s=tpot_s))


def test_two_requests_in_the_system_by_hand() -> None:
    here = asked()
    at_two = load(here, array([2.0]))
    expected = measure(replace(here, workload=replace(here.workload, concurrency=2))).expected
    assert expected is not None
    step, n = scalar(expected.step.total_s), here.workload.output_tokens
    marginal, efficiency = scalar(expected.prompt.marginal_s), expected.efficiency
    idle = expected.alone_s + scalar(efficiency.request_s)
    # One other: its prefill is met once, a share of it before the first token, the rest between the 500 others.
    share = min(1.0, scalar(efficiency.wait_share))
    wait, tpot = share * marginal, step + (1 - share) * marginal / n
    stay = idle + n * step + marginal
    assert at_two.ttft_s[0] == pytest.approx(idle + wait, rel=1e-12)
    assert at_two.tpot_s[0] == pytest.approx(tpot, rel=1e-12)
    assert at_two.rate_per_s[0] == pytest.approx(2 / stay, rel=1e-12)
    # A target one mean wait beyond an idle prefill is met by all but one in e.
    tight = load(with_targets(here, idle + wait, None), array([2.0]))
    attained = 1 - math.exp(-1)
    assert tight.attained[0] == pytest.approx(attained, rel=1e-9)
    assert tight.good_per_s[0] == pytest.approx(2 / stay * attained, rel=1e-9)


def test_a_target_between_a_lone_and_a_crowded_first_token_is_met_by_some() -> None:
    here = asked(ttft_s=0.5)
    many = load(here, array([1.0, 200.0]))
    assert many.attained[0] == 1  # nobody to wait for
    assert 0 < many.attained[1] < 1


def test_the_closed_form_of_a_step_that_grows_evenly() -> None:
    """With step(B) = a + b·B a request stays for s + n·a + n·b·B, so that no more than 1 ÷ (n·b) pass a second."""
    here = asked(ttft_s=None, tpot_s=1e6, workload={"concurrency": None, "prompt_tokens": 8000, "output_tokens": 200})
    crowd = array([100.0, 200.0])
    stays = crowd / load(here, crowd).rate_per_s
    slope = float(np.diff(stays)[0] / np.diff(crowd)[0])
    found = found_for(here)
    assert found.limiter is GoodputLimit.ROOM
    assert found.rate_per_s == pytest.approx(found.most_per_s)
    assert found.rate_per_s < 1 / slope
    # Each further request costs at least the others' arithmetic of its prompt and the reading of its cache.
    prompt = measure(here).prefill.compute_s
    assert slope >= prompt + 200 * 8000 * 131_072 / here.accelerator.bandwidth_bytes_per_s


@pytest.mark.parametrize(
    ("ttft_s", "tpot_s", "limiter"),
    [(1e-3, None, GoodputLimit.TTFT), (None, 1e-4, GoodputLimit.TPOT), (1e-3, 0.1, GoodputLimit.TTFT)],
)
def test_nothing_is_good_where_a_lone_request_misses(
    ttft_s: float | None, tpot_s: float | None, limiter: GoodputLimit
) -> None:
    found = found_for(asked(ttft_s, tpot_s))
    assert (found.rate_per_s, found.attained, found.limiter) == (0, 0, limiter)
    assert found.offered_per_s > 0


def test_what_limits_is_named() -> None:
    assert found_for(asked(None, 0.015)).limiter is GoodputLimit.TPOT
    assert found_for(asked(0.05, None)).limiter is GoodputLimit.TTFT
    assert found_for(asked(1e6, 1e6)).limiter is GoodputLimit.ROOM


def test_a_time_per_token_is_met_by_all_up_to_the_knee_and_by_none_beyond() -> None:
    found = found_for(asked(None, 0.015))
    assert found.attained == 1
    knee = load(asked(None, 0.015), array([found.concurrency, found.concurrency * 1.02]))
    assert (knee.good_per_s[0], knee.good_per_s[1]) == (pytest.approx(found.rate_per_s), 0)


@pytest.mark.parametrize(
    "here",
    [
        asked(None, None),
        asked(techniques={"static_batching": True}),
        asked(model="llama-3.1-70b"),  # no room
        with_targets(deployment(), 1.0, 0.1),  # nothing calibrated
    ],
)
def test_none_is_told_where_there_is_no_target_no_room_or_nothing_expected(here: Deployment) -> None:
    assert goodput(here, measure(here)) is None


def test_a_load_of_what_is_not_calibrated_is_refused() -> None:
    with pytest.raises(ValueError, match="calibrated"):
        load(deployment(), array([1.0]))


def test_its_working_computes_to_it() -> None:
    for here in (asked(), asked(0.01, 0.001)):
        found = found_for(here)
        (explained,) = explain_goodput(found)
        values = {term.symbol: term.value for term in explained.terms}
        assert computed(explained.formula, values) == pytest.approx(found.rate_per_s, rel=1e-12)
        assert explained in evaluate(here).explanations


TARGETS = st.none() | st.floats(1e-3, 100)


def check_order(found: Goodput) -> None:
    """Good ≤ offered ≤ most, and the best of all that was looked at."""
    assert 0 <= found.rate_per_s <= found.offered_per_s * SLACK
    assert found.offered_per_s <= found.most_per_s * SLACK
    assert 0 <= found.attained <= 1
    assert found.rate_per_s * SLACK >= found.load.good_per_s.max()
    assert np.isfinite(found.load.good_per_s).all()
    assert (found.load.good_per_s <= found.load.rate_per_s).all()
    assert found.stay_s * found.offered_per_s == pytest.approx(found.concurrency, rel=1e-12)


@repeatable
@given(TARGETS, TARGETS, st.floats(1, 10), st.floats(1, 10))
def test_looser_targets_never_lower_it(ttft: float | None, tpot: float | None, more: float, again: float) -> None:
    if ttft is None and tpot is None:
        return
    here = asked(ttft, tpot, workload={"prompt_tokens": 4000})
    looser = with_targets(here, None if ttft is None else ttft * more, None if tpot is None else tpot * again)
    before, after = found_for(here), found_for(looser)
    check_order(before)
    check_order(after)
    assert after.rate_per_s * GRID >= before.rate_per_s


@pytest.mark.parametrize("targets", [(0.5, None), (None, 0.02), (0.5, 0.02), (3.0, 0.008)])
def test_more_bandwidth_never_lowers_it(targets: tuple[float | None, float | None]) -> None:
    here, rates = asked(*targets), []
    for factor in (0.5, 1, 1.3, 4):
        card = here.accelerator
        faster = replace(card, bandwidth_bytes_per_s=factor * card.bandwidth_bytes_per_s)
        rates.append(found_for(replace(here, accelerator=faster)).rate_per_s)
    assert all(after * GRID >= before for before, after in pairwise(rates)), rates


def test_a_prefill_pool_takes_the_prompts_out_of_the_steps() -> None:
    workload = {"prompt_tokens": 8000, "output_tokens": 200}
    pool = {"hardware": {"id": "h100-sxm-80gb"}, "instances": 8}
    alone = found_for(asked(2.0, 0.02, workload=workload))
    both = found_for(asked(2.0, 0.02, workload=workload, techniques={"disaggregation": pool}))
    assert both.rate_per_s > alone.rate_per_s
    slow = found_for(asked(2.0, 0.02, workload=workload, techniques={"disaggregation": pool | {"link_gb_per_s": 0.5}}))
    # Eight senders of 0.5 GB/s carry 1.05 GB each.
    assert slow.offered_per_s <= 8 * 0.5e9 / (8000 * 131_072) * SLACK


def test_any_catalog_model_on_any_card_is_in_order() -> None:
    told = 0
    for number, here in enumerate(drawn(11, 80)):
        targets = ((1.0, 0.05), (None, 0.2), (10.0, None), (0.01, 0.01))[number % 4]
        found = goodput(with_targets(here, *targets), measure(here))
        if found is not None:
            told += 1
            check_order(found)
    assert told > 30
