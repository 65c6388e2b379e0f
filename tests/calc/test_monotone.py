"""More of anything never makes an answer worse, and twice the speed is half the time."""

import math
from collections.abc import Callable
from dataclasses import replace
from types import MappingProxyType

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from app.calc.accelerator import Accelerator
from app.calc.deployment import Deployment
from app.calc.dtypes import Dtype
from app.calc.measure import Measures, measure
from app.calc.time.rule_of_thumb import RuleOfThumb, rule_of_thumb
from app.calc.verdict import State, state_of
from tests.calc.strategies import deployments, engines, repeatable, workloads
from tests.factories import deployment, workload

SLACK = 1e-9
RANK = {State.DOES_NOT_FIT: 0, State.TIGHT: 1, State.FITS: 2}
factors = st.sampled_from([1.0, 1.0001, 1.5, 2.0, 10.0, 1000.0])
fixed_batch = workloads(concurrency=st.integers(1, 5000))
computed_pool = engines(pools=st.none())


def faster_memory(card: Accelerator, factor: float) -> Accelerator:
    return replace(card, bandwidth_bytes_per_s=card.bandwidth_bytes_per_s * factor)


def faster_arithmetic(card: Accelerator, factor: float) -> Accelerator:
    rates = {dtype: rate * factor for dtype, rate in card.peak_flops_per_s.items()}
    return replace(card, peak_flops_per_s=MappingProxyType(rates))


def more_memory(card: Accelerator, factor: float) -> Accelerator:
    reported = None if card.memory_reported_bytes is None else int(card.memory_reported_bytes * factor)
    return replace(card, memory_marketed_bytes=card.memory_marketed_bytes * factor, memory_reported_bytes=reported)


def times(found: Measures) -> list[float]:
    served = found.serving
    estimates = (served.ttft_s, served.tpot_s, served.total_latency_s)
    phases = [s for phase in (found.prefill, found.decode) for s in (phase.ceiling_s, phase.overlapped_s)]
    return [*phases, *(estimate.ceiling for estimate in estimates), served.residency_s, *costs(found)]


def costs(found: Measures) -> list[float]:
    if found.cost is None:
        return []
    per_token = (found.cost.usd_per_million_output_tokens, found.cost.joules_per_output_token)
    return [one for one in per_token if one is not None]


def rates(found: Measures) -> list[float]:
    served = found.serving
    estimates = (served.output_tokens_per_s, served.output_tokens_per_s_per_user, served.total_tokens_per_s)
    return [estimate.ceiling for estimate in estimates]


def capacities(found: Measures) -> list[float]:
    """A cache that grows no further has no longest context; the number then is that of the request."""
    held = found.memory
    longest = math.inf if held.context_is_endless else held.max_context_tokens
    return [held.kv_pool_tokens, held.max_concurrency, longest]


def rule_times(rule: RuleOfThumb) -> list[float]:
    return [rule.prefill_s, rule.decode_step_s, rule.kv_step_s, rule.total_latency_s]


def rule_rates(rule: RuleOfThumb) -> list[float]:
    return [rule.decode_tokens_per_s, rule.kv_tokens_per_s, rule.kv_capacity_tokens, rule.kv_capacity_users]


def none_higher(after: list[float], before: list[float]) -> None:
    for new, old in zip(after, before, strict=True):
        assert new <= old * (1 + SLACK)


def none_lower(after: list[float], before: list[float]) -> None:
    none_higher(before, after)


@pytest.mark.parametrize("change", [faster_memory, faster_arithmetic])
@repeatable
@given(asked=deployments(workload=fixed_batch), factor=factors)
def test_a_faster_card_never_makes_a_number_worse(
    change: Callable[[Accelerator, float], Accelerator], asked: Deployment, factor: float
) -> None:
    changed = replace(asked, accelerator=change(asked.accelerator, factor))
    before, after = measure(asked), measure(changed)
    none_higher(times(after), times(before))
    none_lower(rates(after), rates(before))
    assert after.memory == before.memory
    batch = before.memory.running_sequences
    before_rule, after_rule = rule_of_thumb(asked, batch), rule_of_thumb(changed, batch)
    none_higher(rule_times(after_rule), rule_times(before_rule))
    none_lower(rule_rates(after_rule), rule_rates(before_rule))


@repeatable
@given(asked=deployments(workload=fixed_batch), factor=factors)
def test_more_memory_never_makes_a_number_worse(asked: Deployment, factor: float) -> None:
    changed = replace(asked, accelerator=more_memory(asked.accelerator, factor))
    before, after = measure(asked), measure(changed)
    none_lower(capacities(after), capacities(before))
    assert times(after) == times(before)
    assert RANK[state_of(changed, after)] >= RANK[state_of(asked, before)]
    batch = before.memory.running_sequences
    none_lower(rule_rates(rule_of_thumb(changed, batch)), rule_rates(rule_of_thumb(asked, batch)))


@repeatable
@given(asked=deployments(workload=fixed_batch), share=st.floats(0.01, 1), more=st.floats(0, 1))
def test_a_larger_share_of_the_card_never_makes_a_number_worse(asked: Deployment, share: float, more: float) -> None:
    def using(utilization: float) -> Deployment:
        return replace(asked, engine=replace(asked.engine, memory_utilization=utilization))

    small, large = using(share), using(share + (1 - share) * more)
    before, after = measure(small), measure(large)
    none_lower(capacities(after), capacities(before))
    assert times(after) == times(before)
    assert RANK[state_of(large, after)] >= RANK[state_of(small, before)]


@repeatable
@given(asked=deployments(workload=workloads(concurrency=st.none()), engine=computed_pool), factor=factors)
def test_with_as_many_users_as_fit_more_memory_never_lowers_throughput(asked: Deployment, factor: float) -> None:
    before = measure(asked)
    after = measure(replace(asked, accelerator=more_memory(asked.accelerator, factor)))
    assert after.memory.running_sequences >= before.memory.running_sequences
    none_lower(
        [after.serving.output_tokens_per_s.ceiling, after.serving.total_tokens_per_s.ceiling],
        [before.serving.output_tokens_per_s.ceiling, before.serving.total_tokens_per_s.ceiling],
    )


@repeatable
@given(asked=deployments(workload=fixed_batch), more=st.integers(1, 5000))
def test_more_users_never_lower_throughput_and_never_quicken_a_step(asked: Deployment, more: int) -> None:
    uncapped = replace(asked, engine=replace(asked.engine, max_num_seqs=None))
    users = uncapped.workload.concurrency or 1
    crowded = replace(uncapped, workload=replace(uncapped.workload, concurrency=users + more))
    before, after = measure(uncapped), measure(crowded)
    none_lower([after.serving.output_tokens_per_s.ceiling], [before.serving.output_tokens_per_s.ceiling])
    none_lower([after.serving.tpot_s.ceiling], [before.serving.tpot_s.ceiling])
    none_higher(capacities(after)[:2], capacities(before)[:2])
    none_lower(capacities(before), capacities(after))


@repeatable
@given(asked=deployments(workload=fixed_batch), more=st.integers(1, 100_000), prompt=st.booleans())
def test_longer_requests_never_quicken_an_answer_and_never_leave_more_room(
    asked: Deployment, more: int, prompt: bool
) -> None:
    # A chunk that fills up starts anew, so that a longer context may read less; room for a whole one is kept anyway.
    assume(not any(getattr(group.mixer, "chunk", None) for group in asked.architecture.layers))
    now = replace(asked.workload, prefix_hit_rate=0.0)
    longer = (
        replace(now, prompt_tokens=now.prompt_tokens + more)
        if prompt
        else replace(now, output_tokens=now.output_tokens + more)
    )
    before, after = measure(replace(asked, workload=now)), measure(replace(asked, workload=longer))
    served = [(one.serving.tpot_s, one.serving.ttft_s, one.serving.total_latency_s) for one in (after, before)]
    none_lower(*[[estimate.ceiling for estimate in estimates] for estimates in served])
    assert after.memory.max_concurrency <= before.memory.max_concurrency


@repeatable
@given(asked=deployments(workload=fixed_batch), narrower=st.sampled_from([Dtype.FP8, Dtype.INT8, Dtype.INT4]))
def test_a_narrower_cache_never_holds_fewer_sequences_and_never_moves_more(asked: Deployment, narrower: Dtype) -> None:
    if narrower.bits > asked.precision.kv_cache.bits:
        return
    before = measure(asked)
    after = measure(replace(asked, precision=replace(asked.precision, kv_cache=narrower)))
    none_lower(capacities(after), capacities(before))
    none_higher([after.decode.bytes, after.prefill.bytes], [before.decode.bytes, before.prefill.bytes])


@repeatable
@given(asked=deployments(workload=fixed_batch))
def test_twice_the_bandwidth_and_twice_the_arithmetic_take_half_the_time(asked: Deployment) -> None:
    card = faster_arithmetic(faster_memory(asked.accelerator, 2), 2)
    before, after = measure(asked), measure(replace(asked, accelerator=card))
    assert [2 * s for s in times(after)] == pytest.approx(times(before), rel=1e-12)
    assert rates(after) == pytest.approx([2 * rate for rate in rates(before)], rel=1e-12)
    assert (after.prefill.bound, after.decode.bound) == (before.prefill.bound, before.decode.bound)
    batch = before.memory.running_sequences
    halved = rule_times(rule_of_thumb(replace(asked, accelerator=card), batch))
    assert [2 * s for s in halved] == pytest.approx(rule_times(rule_of_thumb(asked, batch)), rel=1e-12)


@repeatable
@given(asked=deployments())
def test_the_figures_of_serving_agree_with_each_other(asked: Deployment) -> None:
    found = measure(asked)
    served, work, batch = found.serving, asked.workload, found.memory.running_sequences
    assert served.ttft_s.ceiling == found.prefill.ceiling_s
    assert served.tpot_s.ceiling == found.decode.ceiling_s
    latency = served.ttft_s.ceiling + served.tpot_s.ceiling * work.output_tokens
    assert served.total_latency_s.ceiling == pytest.approx(latency, rel=1e-12)
    assert served.output_tokens_per_s_per_user.ceiling == pytest.approx(1 / served.tpot_s.ceiling, rel=1e-12)
    pace_of_all = batch * served.output_tokens_per_s_per_user.ceiling
    assert served.output_tokens_per_s.ceiling <= pace_of_all * (1 + SLACK)
    share = served.output_tokens_per_s.ceiling / served.total_tokens_per_s.ceiling
    assert share == pytest.approx(work.output_tokens / work.total_tokens, rel=1e-12)
    # No card computes more than its peak: all arithmetic of the batch fits into the time that it stays.
    assert served.residency_s >= served.batch_compute_s
    assert served.residency_s >= served.total_latency_s.ceiling


def test_throughput_of_many_long_prompts_is_held_down_by_their_arithmetic() -> None:
    found = measure(deployment(workload=workload(prompt_tokens=4000, output_tokens=10, concurrency=64)))
    compute_s = 64 * found.prefill.compute_s + 10 * found.decode.compute_s
    assert found.serving.residency_s == compute_s > found.serving.total_latency_s.ceiling
    assert found.serving.output_tokens_per_s.ceiling == pytest.approx(640 / compute_s, rel=1e-12)
