"""A user's own calibration: what it moves, what it leaves alone, and that nothing passes a ceiling by it."""

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.calc.deployment import Deployment
from app.calc.evaluate import evaluate
from app.calc.measure import Measures, measure
from app.calc.optimize.candidates import candidates
from app.calc.sweep import decode_sweep
from app.calc.time.break_even import paying
from app.calc.time.chunked_prefill import chunked
from app.calc.time.expected.answer import Expected
from app.calc.time.expected.calibration import TOO_FEW, OwnCalibration, OwnFactor
from app.calc.time.expected.operators import prompt_operators, step_operators
from app.calc.time.expected.reached import Reach
from app.calc.time.expected.timing import efficiency_of
from app.calc.time.goodput import load
from app.calc.time.serving import Estimate
from tests.calc.formulas import computed
from tests.calc.strategies import repeatable
from tests.calc.time.expected.test_answer import asked, rates, times

POOL = {"disaggregation": {"hardware": {"id": "l40s"}, "instances": 2}}
GUESSES = {"speculative": {"draft_tokens": 3, "method": "eagle", "acceptance_rate": 0.7}}
BUSY = {"concurrency": 64, "prompt_tokens": 4000, "output_tokens": 50}
CASES: dict[str, dict[str, Any]] = {
    "crowd": {},
    "one user of a small model": {"model": "qwen2.5-0.5b", "workload": {"concurrency": 1}},
    "over a bus": {"model": "llama-3.1-70b", "hardware": "l40s", "parallelism": {"tensor": 8}, "workload": BUSY},
    "experts": {
        "model": "deepseek-v3",
        "parallelism": {"data": 16, "expert": 16},
        "precision": {"weights": "fp8"},
        "workload": {"concurrency": 512},
    },
    "stages": {"parallelism": {"pipeline": 2}, "workload": {"prompt_tokens": 9000, "prefix_hit_rate": 0.3}},
    "llama.cpp": {"engine": {"id": "llama.cpp"}, "workload": {"concurrency": 1}},
    "prefill pool": {"techniques": POOL},
    "guesses": {"techniques": GUESSES},
    "more than fit": {"workload": {"concurrency": 3000}},
    "a static batch": {"techniques": {"static_batching": True}, "workload": {"answer_shape": "exponential"}},
}
SIDES = ("decode", "prefill")
DECODED = ("tpot_s", "tpot_inclusive_s", "total_latency_s")
RATES = ("output_tokens_per_s", "output_tokens_per_s_per_user", "total_tokens_per_s")

cases = st.sampled_from(list(CASES))
factors = st.floats(0.05, 20) | st.sampled_from([0.05, 1.0, 20.0])


@cache
def case(name: str) -> Deployment:
    return asked(**CASES[name])


@cache
def plain(name: str) -> Measures:
    return measure(case(name))


def own(decode: OwnFactor | float | None = None, prefill: OwnFactor | float | None = None) -> OwnCalibration:
    """A calibration of the factors; a number stands for one of twelve points that has an interval."""
    sides = (OwnFactor(side, 12, 0.8, 1.3) if isinstance(side, float) else side for side in (decode, prefill))
    return OwnCalibration("Mine", *sides)


def calibrated(
    name: str, decode: OwnFactor | float | None = None, prefill: OwnFactor | float | None = None
) -> Measures:
    return measure(replace(case(name), own_calibration=own(decode, prefill)))


def behind(found: Measures) -> Expected:
    assert found.expected is not None
    return found.expected


def mid(estimate: Estimate) -> float:
    assert estimate.mid is not None
    return estimate.mid


def test_a_slower_kernel_by_hand() -> None:
    assert Reach(0.5, 0.9, 1e-6).slower(2.0) == Reach(0.25, 0.45, 2e-6)
    assert Reach(0.5, 0.9, 1e-6).slower(0.6) == Reach(0.5 / 0.6, 1.0, 0.6e-6)


def test_what_is_slower_and_what_stays() -> None:
    asked_ = case("crowd")
    assert asked_.calibration is not None
    before = efficiency_of(asked_, asked_.calibration)
    after = before.slower(2.0)
    for kind in ("matrices", "experts"):
        assert {key: reach.slower(2.0) for key, reach in getattr(before, kind).items()} == getattr(after, kind)
    for kind in ("attention", "state", "light"):
        assert getattr(after, kind) == getattr(before, kind).slower(2.0)
    for name in ("link_latency_s", "exchange_latency_s", "step_s", "sequence_s", "request_s"):
        assert getattr(after, name) == 2 * getattr(before, name)
    assert after.link_share == before.link_share / 2
    for name in ("attention_half_tokens", "prefill_half_tokens", "wait_share", "wait_power", "link_share_power"):
        assert getattr(after, name) == getattr(before, name)


@pytest.mark.parametrize("name", CASES)
def test_a_factor_of_one_changes_no_middle_by_a_bit(name: str) -> None:
    before, after = plain(name), calibrated(name, 1.0, 1.0)
    for one, other in zip((*times(before), *rates(before)), (*times(after), *rates(after)), strict=True):
        assert (one.ceiling, one.mid) == (other.ceiling, other.mid)
    assert behind(before).causes == behind(after).causes
    assert (before.cost, before.memory) == (after.cost, after.memory)


@repeatable
@given(cases, factors, factors, st.sampled_from(SIDES))
def test_a_larger_factor_is_never_faster(name: str, one: float, other: float, side: str) -> None:
    low, high = sorted((one, other))
    faster, slower = calibrated(name, **{side: low}), calibrated(name, **{side: high})
    slack = 1 + 1e-12
    for few, many in zip(times(faster), times(slower), strict=True):
        assert (few.mid is None) == (many.mid is None)
        assert few.mid is None or few.mid <= mid(many) * slack
    for many, few in zip(rates(faster), rates(slower), strict=True):
        assert mid(few) <= mid(many) * slack


@repeatable
@given(cases, factors, factors)
def test_a_time_moves_by_no_more_than_its_factor(name: str, decode: float, prefill: float) -> None:
    before, after = plain(name), calibrated(name, decode, prefill)
    bounds = {"tpot_s": (decode, prefill), "total_latency_s": (decode, prefill), "ttft_s": (decode, prefill)}
    for key, found in bounds.items():
        was, now = getattr(before.serving, key).mid, getattr(after.serving, key).mid
        if was is None:
            assert now is None
            continue
        assert min(1.0, *found) * (1 - 1e-9) <= now / was <= max(1.0, *found) * (1 + 1e-9)


@repeatable
@given(cases, factors, factors)
def test_nothing_beats_its_ceiling_and_the_parts_of_a_tpot_sum_to_it(name: str, decode: float, prefill: float) -> None:
    found, slack = calibrated(name, decode, prefill), 1 + 1e-12
    for time in times(found):
        sides = [side for side in (time.low, time.mid, time.high) if side is not None]
        assert sides == sorted(sides)
        assert all(side >= time.ceiling / slack for side in sides)
    for rate in rates(found):
        sides = [side for side in (rate.low, rate.mid, rate.high) if side is not None]
        assert sides == sorted(sides)
        assert all(side <= rate.ceiling * slack for side in sides)
    causes = behind(found).causes
    parts = (causes.efficiency_s, causes.calls_s, causes.collectives_s, causes.host_s, causes.interference_s)
    assert causes.total_s == pytest.approx(mid(found.serving.tpot_s), rel=1e-9)
    assert min(parts) >= -1e-12 * causes.total_s


@pytest.mark.parametrize("name", CASES)
def test_twice_as_slow_doubles_the_step_and_leaves_prompts_alone(name: str) -> None:
    before, after = behind(plain(name)), behind(calibrated(name, decode=2.0))
    assert after.step.total_s == pytest.approx(2 * float(before.step.total_s), rel=1e-12)
    assert after.prompt == before.prompt
    assert after.alone_s == before.alone_s
    assert after.stay.interference_s == before.stay.interference_s
    assert after.efficiency.request_s == before.efficiency.request_s


@pytest.mark.parametrize("name", CASES)
def test_twice_as_slow_prompts_leave_the_step_alone(name: str) -> None:
    before, after = behind(plain(name)), behind(calibrated(name, prefill=2.0))
    assert after.step == before.step
    assert after.alone_s == pytest.approx(2 * before.alone_s, rel=1e-12)
    assert after.stay.interference_s == pytest.approx(2 * float(before.stay.interference_s), rel=1e-12)
    assert after.efficiency.request_s == pytest.approx(2 * float(before.efficiency.request_s))


def test_one_user_of_a_small_model_sees_the_whole_factor() -> None:
    before, after = (
        plain("one user of a small model").serving,
        calibrated("one user of a small model", 2.0, 2.0).serving,
    )
    for key in ("ttft_s", *DECODED):
        assert mid(getattr(after, key)) == pytest.approx(2 * mid(getattr(before, key)), rel=1e-12)
    for key in RATES:
        assert mid(getattr(after, key)) == pytest.approx(mid(getattr(before, key)) / 2, rel=1e-12)


def test_a_machine_at_its_ceiling_gets_no_faster() -> None:
    found = calibrated("crowd", decode=0.05, prefill=0.05)
    assert behind(found).efficiency.attention.bandwidth == 1.0
    assert all(reach.bandwidth == 1.0 for reach in behind(found).efficiency.matrices.values())
    assert all(reach.rate == 1.0 for reach in behind(found).prompt_efficiency.matrices.values())
    assert mid(found.decode_s) < 1.2 * found.decode.ceiling_s


@pytest.mark.parametrize("name", ["crowd", "guesses", "prefill pool", "more than fit"])
@pytest.mark.parametrize(("low", "high"), [(0.9, 1.2), (1.0, 1.0), (0.01, 100.0)])
def test_an_interval_is_that_of_the_own_points_cut_off_at_the_ceiling(name: str, low: float, high: float) -> None:
    found = calibrated(name, OwnFactor(1.5, 12, low, high), OwnFactor(1.5, 12, low, high))
    for time in times(found):
        if time.mid is None or time.low is None:
            assert time.mid is None
            continue
        assert time.low == pytest.approx(max(time.ceiling, time.mid * low), rel=1e-12)
        assert time.high == pytest.approx(time.mid * high, rel=1e-12)
    for rate in rates(found):
        assert rate.low == pytest.approx(mid(rate) / high, rel=1e-12)
        assert rate.high == pytest.approx(min(rate.ceiling, mid(rate) / low), rel=1e-12)
    assert behind(found).unclaimed is None


def ends(estimate: Estimate) -> tuple[float, float] | None:
    """Both ends as multiples of the middle."""
    if estimate.low is None or estimate.high is None:
        return None
    return estimate.low / mid(estimate), estimate.high / mid(estimate)


def test_the_side_that_is_not_calibrated_keeps_its_interval() -> None:
    usual = plain("crowd")
    decoded, prompted = calibrated("crowd", decode=1.0), calibrated("crowd", prefill=1.0)
    assert decoded.serving.ttft_s == usual.serving.ttft_s
    assert decoded.prefill_s == usual.prefill_s
    assert ends(decoded.serving.tpot_s) == pytest.approx((0.8, 1.3))
    for key in (*DECODED, *RATES):
        assert getattr(prompted.serving, key) == getattr(usual.serving, key)
    assert prompted.decode_s == usual.decode_s
    assert ends(prompted.serving.ttft_s) == pytest.approx((0.8, 1.3))
    assert ends(prompted.prefill_s) == pytest.approx((0.8, 1.3))


def test_too_few_points_claim_no_interval_and_say_so() -> None:
    few = OwnFactor(1.0, 2)
    for decode, prefill, told in (
        (few, few, TOO_FEW),
        (few, None, f"of decode times, {TOO_FEW}"),
        (1.0, few, f"of prompts, {TOO_FEW}"),
    ):
        found = calibrated("crowd", decode, prefill)
        assert behind(found).unclaimed == told
        assert (ends(found.serving.tpot_s) is None) == (decode is few)
        assert (ends(found.serving.output_tokens_per_s) is None) == (decode is few)
        assert (ends(found.serving.ttft_s) is None) == (prefill is few)


def test_own_points_claim_an_interval_where_published_ones_do_not() -> None:
    why = behind(plain("guesses")).unclaimed
    assert why is not None
    both, one = calibrated("guesses", 1.0, 1.0), calibrated("guesses", decode=1.0)
    assert behind(both).unclaimed is None
    assert ends(both.serving.tpot_s) == pytest.approx((0.8, 1.3))
    assert behind(one).unclaimed == f"of prompts, {why}"
    assert (one.serving.ttft_s.low, one.serving.ttft_s.high) == (None, None)
    assert behind(calibrated("guesses", prefill=OwnFactor(1.0, 2))).unclaimed == (
        f"of decode times, {why}; of prompts, {TOO_FEW}"
    )


@repeatable
@given(cases, factors, factors)
def test_every_explanation_computes_to_its_number(name: str, decode: float, prefill: float) -> None:
    found = evaluate(replace(case(name), own_calibration=own(decode, prefill)))
    told = [explanation for explanation in found.explanations if explanation.id.endswith(".mid")]
    assert len(told) >= 8
    for explanation in told:
        values = {term.symbol: term.value for term in explanation.terms}
        assert computed(explanation.formula, values) == pytest.approx(explanation.value, rel=1e-9), explanation.id


@repeatable
@given(cases, factors, factors)
def test_operators_calls_and_host_add_up_to_step_and_prefill(name: str, decode: float, prefill: float) -> None:
    deployment = replace(case(name), own_calibration=own(decode, prefill))
    expected = behind(measure(deployment))
    step = sum(op.time_s + op.calls_s for op in step_operators(deployment, expected)) + float(expected.step.host_s)
    assert step == pytest.approx(float(expected.step.total_s), rel=1e-9)
    prompt = sum(op.time_s + op.calls_s for op in prompt_operators(deployment, expected))
    assert prompt == pytest.approx(float(expected.prompt.alone.total_s), rel=1e-9)


def sources(calibration: OwnCalibration | None, name: str = "crowd") -> dict[str, str]:
    found = evaluate(replace(case(name), own_calibration=calibration))
    return {e.id: e.source for e in found.explanations if e.id.endswith(".mid")}


def test_a_source_names_the_calibration_that_the_figure_follows_from() -> None:
    usual = sources(None)
    decoded = sources(own(decode=OwnFactor(1.1, 1)))
    named = "; on it your calibration «Mine», 1 point"
    untouched = {"serving.ttft_s.mid", "prefill.expected_s.mid"}
    assert decoded == {id_: source if id_ in untouched else source + named for id_, source in usual.items()}
    both = sources(own(OwnFactor(1.1, 1200), OwnFactor(0.9, 8)))
    assert both["decode.expected_s.mid"].endswith("your calibration «Mine», 1,200 points")
    assert both["serving.ttft_s.mid"].endswith("your calibration «Mine», 8 points")
    assert both["serving.tpot_s.mid"].endswith("your calibration «Mine», decode 1,200 points, prefill 8 points")
    pooled = sources(own(decode=OwnFactor(1.1, 1)), "prefill pool")
    assert pooled["serving.ttft_s.mid"].endswith(named), "a place in the pool is waited for while others decode"


def notices(name: str, calibration: OwnCalibration | None) -> dict[str, str]:
    found = evaluate(replace(case(name), own_calibration=calibration)).notices
    return {notice.code: notice.message for notice in found}


def test_the_evaluation_says_whose_calibration_it_is() -> None:
    assert "own_calibration" not in notices("crowd", None)
    told = notices("crowd", own(OwnFactor(1.125, 1200), OwnFactor(0.9, 1)))["own_calibration"]
    assert "«Mine»: decode × 1.12 (1,200 points), prefill × 0.9 (1 point)" in told
    assert "gets no faster" in told
    assert "gets no faster" not in notices("crowd", own(decode=1.0))["own_calibration"]


def test_a_card_that_was_not_measured_is_told_without_intervals_of_others() -> None:
    strange = replace(case("crowd"), accelerator=replace(case("crowd").accelerator, family="unheard-of"))

    def told(calibration: OwnCalibration | None) -> str:
        found = evaluate(replace(strange, own_calibration=calibration)).notices
        return next(notice.message for notice in found if notice.code == "not_measured")

    assert "the intervals are those of" in told(None)
    assert "the intervals are those of" in told(own(decode=1.0))
    assert told(own(1.0, 1.0)).endswith("with your calibration on them.")


def test_without_a_fit_there_is_nothing_to_calibrate() -> None:
    bare = replace(case("crowd"), calibration=None)
    found = evaluate(replace(bare, own_calibration=own(2.0, 2.0)))
    assert found.measures == evaluate(bare).measures
    assert "own_calibration" not in {notice.code for notice in found.notices}


def test_sweeps_loads_and_doors_follow() -> None:
    deployment = case("crowd")
    slow = replace(deployment, own_calibration=own(2.0, 2.0))
    grid = np.array([1.0, 64.0, 1000.0]), np.array([100.0, 30_000.0])
    before, after = decode_sweep(deployment, *grid), decode_sweep(slow, *grid)
    assert before.expected_step_s is not None
    assert before.expected_tpot_s is not None
    assert after.expected_step_s == pytest.approx(2 * before.expected_step_s, rel=1e-12)
    assert after.expected_tpot_s == pytest.approx(2 * before.expected_tpot_s, rel=1e-12)
    assert (after.decode_step_s == before.decode_step_s).all()
    users = np.array([1.0, 40.0])
    assert load(slow, users).ttft_s == pytest.approx(2 * load(deployment, users).ttft_s, rel=1e-12)
    for budget in (None, 512):
        one, other = (chunked(d, measure(d), budget) for d in (deployment, slow))
        assert other.first_s == pytest.approx(2 * one.best_first_s, rel=1e-9)
        assert other.pause_s == pytest.approx(2 * one.best_pause_s, rel=1e-9)
    whole = [
        chunked(d, measure(d), None).best_first_s for d in (deployment, replace(deployment, own_calibration=own(2.0)))
    ]
    assert whole[0] == whole[1], "a prompt that is prefilled alone waits for no decode step"
    quick, slower = (
        paying(replace(case("guesses"), own_calibration=o), np.array([1.0, 64.0])) for o in (None, own(2.0))
    )
    assert quick.expected_guessed_s is not None
    assert slower.expected_guessed_s == pytest.approx(2 * quick.expected_guessed_s, rel=1e-12)


def test_every_lever_keeps_the_calibration() -> None:
    deployment = replace(case("more than fit"), own_calibration=own(1.2))
    found = list(candidates(deployment, measure(deployment), ()))
    assert len(found) > 3
    assert {candidate.deployment.own_calibration for candidate in found} == {deployment.own_calibration}
    assert not any("calibration" in candidate.change for candidate in found)
