"""Prefill on GPUs of its own: every part of a stay sums up, and no side gives more than it can."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.calc.broadcast import scalar
from app.calc.deployment import Deployment
from app.calc.dtypes import Dtype
from app.calc.measure import Measures, measure
from app.calc.memory.cache import cache_shape
from app.calc.model.split import Split
from app.calc.time.expected.operators import spent
from app.calc.time.expected.timing import link_wait_s, sent_bytes
from app.calc.time.prefill_pool import PrefillPool
from app.calc.verdict import Limiter, verdict
from app.scenario.resolve import resolve
from tests.calc.strategies import repeatable
from tests.factories import deployment, h100_sxm, scenario, shipped_catalog, workload

SLACK = 1 + 1e-9
LINKS = (1e6, 1e9, 50e9, 1e18)


def pooled(instances: int = 1, **pool: Any) -> Deployment:
    """Llama-3.1-8B on an H100, prompts on others of them."""
    workload = {"prompt_tokens": 4000, "output_tokens": 200, "concurrency": pool.pop("concurrency", 64)}
    asked = {"hardware": {"id": "h100-sxm-80gb"}, "instances": instances, **pool}
    return resolve(scenario(workload=workload, techniques={"disaggregation": asked}), shipped_catalog()).deployment


def over(asked: Deployment, link: float) -> Deployment:
    assert asked.prefill_pool is not None
    return replace(asked, prefill_pool=replace(asked.prefill_pool, link_bytes_per_s=link))


def check_sums(asked: Deployment, found: Measures) -> None:
    """TTFT = prefill + link + request + wait, and TTFT + n × TPOT = stay."""
    expected, n = found.expected, asked.workload.output_tokens
    assert expected is not None
    stay = expected.stay
    parts = (expected.alone_s, expected.link_wait_s, scalar(expected.efficiency.request_s), scalar(stay.wait_s))
    assert scalar(stay.ttft_s) == pytest.approx(sum(parts), rel=1e-12)
    assert scalar(stay.residency_s) == pytest.approx(scalar(stay.ttft_s) + n * scalar(stay.tpot_s), rel=1e-12)
    assert min(parts) >= 0


def test_the_bytes_that_are_sent_are_the_cache_of_the_whole_prompt() -> None:
    asked = pooled()
    assert sent_bytes(asked) == 4000 * 131_072
    hit = replace(asked, workload=replace(asked.workload, prefix_hit_rate=1.0))
    assert sent_bytes(hit) == 4000 * 131_072  # the other side has never seen what the pool found
    narrow = replace(asked, precision=replace(asked.precision, kv_cache=Dtype.FP8))
    assert sent_bytes(narrow) == 4000 * 65_536


def test_nothing_is_waited_for_without_a_pool_or_without_a_link_to_wait_for() -> None:
    assert link_wait_s(deployment(), 0.01) == 0
    assert link_wait_s(over(pooled(), 1e30), 0.01) == pytest.approx(0, abs=1e-15)
    ceiling = measure(over(pooled(), 1e30)).serving.ttft_s.ceiling
    assert ceiling == pytest.approx(measure(over(pooled(), 1e30)).prefill.ceiling_s, rel=1e-12)


def test_the_ceiling_of_a_first_token_by_hand() -> None:
    found = measure(pooled())
    transfer = 4000 * 131_072 / 50e9  # 10.5 ms, all but a 32nd of the prefill before it
    waits = max(transfer / 32, transfer - found.prefill.ceiling_s * 31 / 32)
    assert found.serving.ttft_s.ceiling == pytest.approx(found.prefill.ceiling_s + waits, rel=1e-12)


def test_what_it_costs_counts_both_sides() -> None:
    alone, both = pooled(instances=2), measure(pooled(instances=2))
    assert (alone.gpus, alone.decode_gpus) == (3, 1)
    assert both.cost is not None
    price = alone.accelerator.price_usd_per_hour
    assert both.cost.usd_per_hour == (None if price is None else pytest.approx(3 * price))


@repeatable
@given(
    st.sampled_from([1, 2, 20]),
    st.sampled_from(LINKS),
    st.sampled_from([None, 1, 64, 2000]),
    st.booleans(),
    st.sampled_from(["h100-sxm-80gb", "rtx-4090", "b200-sxm"]),
)
def test_the_parts_sum_and_no_side_gives_more_than_it_can(
    instances: int, link: float, concurrency: int | None, overlap: bool, card: str
) -> None:
    asked = over(pooled(instances, concurrency=concurrency, overlap=overlap, hardware={"id": card}), link)
    found = measure(asked)
    check_sums(asked, found)
    expected, served, n = found.expected, found.serving, asked.workload.output_tokens
    assert expected is not None
    assert expected.pool is not None
    rate = served.output_tokens_per_s.best_known / n
    decoding = expected.batch / (n * scalar(expected.step.total_s))
    assert rate <= SLACK * min(expected.pool.prefill_per_s, expected.pool.link_per_s, decoding)
    ceiling = served.output_tokens_per_s.ceiling / n
    assert ceiling <= SLACK * instances / found.prefill.compute_s
    assert ceiling <= SLACK * instances * link / sent_bytes(asked)
    assert ceiling <= SLACK * found.memory.running_sequences / (n * found.decode.ceiling_s)
    assert scalar(expected.stay.interference_s) == 0  # prompts never stand in the way of a step


def test_a_faster_link_or_more_instances_never_slow_anything() -> None:
    for concurrency in (1, 64, 2000):
        by_link = [measure(over(pooled(concurrency=concurrency), link)).serving for link in LINKS]
        by_pool = [measure(pooled(n, concurrency=concurrency)).serving for n in (1, 2, 8)]
        for found in (by_link, by_pool):
            for key in ("ttft_s", "total_latency_s"):
                times = [getattr(served, key).best_known for served in found]
                assert times == sorted(times, reverse=True)
            rates = [served.output_tokens_per_s.best_known for served in found]
            assert rates == sorted(rates)


def test_a_pool_of_other_cards_is_timed_on_those() -> None:
    own, other = measure(pooled()), measure(pooled(hardware={"id": "rtx-4090"}))
    assert other.prefill.ceiling_s > own.prefill.ceiling_s
    assert other.decode.ceiling_s == own.decode.ceiling_s


def test_what_was_measured_on_the_decoding_cards_says_nothing_of_the_pool() -> None:
    asked = pooled()
    given_pool = replace(asked, engine=replace(asked.engine, given=replace(asked.engine.given, kv_pool=1e9)))
    found, plain = measure(given_pool), measure(asked)
    assert found.memory.per_gpu.kv_pool_bytes == 1e9
    assert found.prefill_memory is not None
    assert plain.prefill_memory is not None
    assert found.prefill_memory.per_gpu == plain.prefill_memory.per_gpu
    assert measure(deployment()).prefill_memory is None


@pytest.mark.parametrize(
    ("pool", "limiter"),
    [({"instances": 20, "link_gb_per_s": 0.01}, Limiter.INTERCONNECT), ({"link_gb_per_s": 1e6}, Limiter.COMPUTE)],
)
def test_who_keeps_prompts_waiting_is_named(pool: dict[str, Any], limiter: Limiter) -> None:
    """A slow link, or one instance for 200 prompts at a time of answers that are soon done."""
    asked = pooled(concurrency=200, **pool)
    asked = replace(asked, workload=replace(asked.workload, prompt_tokens=2000, output_tokens=20))
    found = measure(asked)
    assert found.expected is not None
    times = spent(asked, found.expected)
    total = times.memory_s + times.compute_s + times.link_s + times.overhead_s
    assert total == pytest.approx(scalar(found.expected.stay.residency_s), rel=1e-9)
    assert verdict(asked, found).limiter is limiter


def test_states_travel_with_the_cache() -> None:
    architecture = shipped_catalog().architectures["nemotron-h-8b"]
    pool = PrefillPool(h100_sxm(), Split(), 1, "link", 50e9)
    asked = deployment(architecture=architecture, prefill_pool=pool, workload=workload(prompt_tokens=1))
    rows = 2 * 4 * 8 * 128 * 2  # of four layers of attention, one token
    assert sent_bytes(asked) == cache_shape(architecture).state_bytes + rows
