"""One GPU of each stage: parts that sum to the card, intervals, and what more of anything does to the cache."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from app.calc.deployment import Deployment, Engine
from app.calc.dtypes import Dtype
from app.calc.measure import measure
from app.calc.memory.capacity import memory
from app.calc.memory.engines.parts import Given, Part
from app.calc.memory.rank import rank_memories
from app.calc.model.architecture import LayerGroup
from app.calc.model.layers.dense import DenseFeedForward
from app.calc.model.parameters import count_parameters, weight_bytes
from app.calc.model.split import Split
from app.calc.verdict import State, state_of
from tests.calc.divided import POLICIES, divided, givens
from tests.calc.memory.engines.laws import GIB
from tests.calc.strategies import repeatable
from tests.factories import BF16, deployment, h200_sxm, interleaved, shipped_catalog, workload

CATALOG = shipped_catalog()


@repeatable
@given(divided(given=st.just(Given()) | givens))
def test_the_parts_of_every_engine_sum_to_the_card(asked: Deployment) -> None:
    held = memory(asked)
    part, rank = held.per_gpu, held.tightest
    parts = (part.weights_bytes, part.kv_pool_bytes, part.activation_bytes, part.overhead_bytes, part.free_bytes)
    assert sum(parts) == pytest.approx(part.capacity_bytes, rel=1e-9, abs=1)
    assert part.capacity_bytes >= asked.accelerator.memory_bytes(asked.memory_basis)
    assert part.kv_pool_bytes >= 0
    assert part.activation_bytes == rank.overhead(Part.ACTIVATION).mid
    assert part.overhead_bytes == pytest.approx(
        sum(rank.overhead(kind).mid for kind in Part if kind is not Part.ACTIVATION), rel=1e-12
    )
    assert rank.seen_bytes <= part.capacity_bytes
    shared_out = rank.held_back_bytes + rank.weights.mid + rank.pool.mid
    if rank.is_pool_given:
        assert rank.budget_bytes == pytest.approx(min(shared_out, part.capacity_bytes), rel=1e-9)
    else:
        assert shared_out == pytest.approx(rank.budget_bytes, rel=1e-9, abs=1)


@repeatable
@given(divided(given=st.just(Given()) | givens))
def test_every_interval_contains_its_middle_and_counts_are_monotone_in_it(asked: Deployment) -> None:
    held = memory(asked)
    for rank in held.ranks:
        for sides in (rank.weights, rank.pool, *(overhead.bytes for overhead in rank.overheads)):
            assert sides.low <= sides.mid <= sides.high
    low, high = held.kv_pool_tokens_interval
    assert low <= held.kv_pool_tokens <= high
    least, most = held.max_concurrency_interval
    assert least <= held.max_concurrency <= most
    assert held.tightest in held.ranks
    assert held.rank_concurrency == min(
        min(rank.plan.fitting(max(0.0, rank.pool.mid), asked.workload.total_tokens) for rank in held.ranks),
        asked.engine.max_num_seqs or 10**9,
    )


@repeatable
@given(divided())
def test_it_fits_exactly_when_the_pools_hold_the_sequences_asked_for(asked: Deployment) -> None:
    asked = replace(asked, engine=replace(asked.engine, max_num_seqs=None))
    found = measure(asked)
    held = found.memory
    fits = state_of(asked, found) is not State.DOES_NOT_FIT
    if held.tightest.pool.mid < 0:
        assert not fits
    elif asked.workload.concurrency is not None:
        assert fits is (held.rank_concurrency >= held.rank_sequences)
    else:
        assert fits is (held.rank_concurrency >= 1)


def better(asked: Deployment, **engine: Any) -> Deployment:
    return replace(asked, engine=replace(asked.engine, **engine))


def never_fewer(less: Deployment, more: Deployment) -> None:
    now, then = memory(less), memory(more)
    assert now.kv_pool_tokens <= then.kv_pool_tokens
    assert now.max_concurrency <= then.max_concurrency
    if less.workload.concurrency is not None:
        assert now.max_context_tokens <= then.max_context_tokens or then.context_is_endless


@repeatable
@given(divided())
def test_more_utilization_never_holds_fewer(asked: Deployment) -> None:
    never_fewer(better(asked, memory_utilization=0.7), better(asked, memory_utilization=0.75))


@repeatable
@given(divided(), st.floats(0, 1e11))
def test_more_memory_never_holds_fewer(asked: Deployment, more: float) -> None:
    card = asked.accelerator
    reported = None if card.memory_reported_bytes is None else card.memory_reported_bytes + int(more)
    seen = None if card.memory_seen_bytes is None else card.memory_seen_bytes + int(more)
    larger = replace(
        card,
        memory_marketed_bytes=card.memory_marketed_bytes + int(more),
        memory_reported_bytes=reported,
        memory_seen_bytes=seen,
    )
    never_fewer(asked, replace(asked, accelerator=larger))


@repeatable
@given(divided())
def test_what_takes_less_leaves_no_less(asked: Deployment) -> None:
    large, small = Given(weights=2e10, activation=3e9, non_framework=2e9), Given(weights=1e10)
    small = replace(small, activation=1e9, non_framework=1e9)
    never_fewer(better(asked, given=large), better(asked, given=small))


@repeatable
@given(divided())
def test_a_narrower_cache_never_holds_fewer(asked: Deployment) -> None:
    """Where the model keeps no states: beside them a block is as large as a state, and may lose more of a token."""
    assume(not any(group.mixer is not None and group.mixer.state() for group in asked.architecture.layers))
    wide, narrow = (
        replace(asked, precision=replace(asked.precision, kv_cache=dtype), workload=workload(1000, 500, 3))
        for dtype in (Dtype.BF16, Dtype.FP8)
    )
    assert memory(wide).max_concurrency <= memory(narrow).max_concurrency
    assert memory(wide).max_context_tokens <= memory(narrow).max_context_tokens


@repeatable
@given(divided(), st.integers(1, 20))
def test_fewer_layers_never_hold_fewer(asked: Deployment, fewer: int) -> None:
    model = CATALOG.architectures["llama-3.1-70b"]
    (group,) = model.layers
    plan = CATALOG.plans["llama-3.1-70b"]
    deep, shallow = (
        replace(
            asked,
            architecture=replace(model, layers=(replace(group, count=count),), order=(0,) * count),
            precision=replace(asked.precision, weights=plan),
            split=Split(8),
            draft=None,
        )
        for count in (40, 40 - fewer)
    )
    never_fewer(deep, shallow)


@repeatable
@given(divided(), st.sampled_from([1, 2, 4]))
def test_more_context_ranks_never_hold_fewer(asked: Deployment, ranks: int) -> None:
    model = "kimi-k2"
    few, many = (
        replace(
            asked,
            split=Split(8, decode_context=n),
            architecture=CATALOG.architectures[model],
            precision=replace(asked.precision, weights=CATALOG.plans[model]),
            accelerator=CATALOG.devices["b200-sxm"],
            draft=None,
        )
        for n in (ranks, 2 * ranks)
    )
    never_fewer(few, many)


def test_the_driver_keeps_what_the_engine_does_not_see() -> None:
    card = CATALOG.devices["h100-sxm-80gb"]
    (rank,) = rank_memories(deployment(accelerator=card, engine=Engine("vllm", 0.9, POLICIES["vllm"])))
    assert rank.capacity_bytes == 81_559 * 2**20
    assert rank.seen_bytes == 79.18 * GIB
    driver = rank.overheads[0]
    assert (driver.part, driver.is_charged, driver.is_given) == (Part.DRIVER, False, False)
    assert driver.bytes.mid == 81_559 * 2**20 - 79.18 * GIB


def test_memory_that_was_measured_may_be_more_than_the_card_has() -> None:
    given = Given(total_memory=90e9)
    (rank,) = rank_memories(deployment(engine=Engine("vllm", 0.9, POLICIES["vllm"], given=given)))
    assert rank.capacity_bytes == rank.seen_bytes == 90e9


def test_each_stage_is_divided_for_itself_and_the_tightest_decides() -> None:
    model = CATALOG.architectures["deepseek-v3"]
    plan = CATALOG.plans["deepseek-v3"]
    asked = deployment(
        architecture=model, precision=replace(BF16, weights=plan), accelerator=h200_sxm(), split=Split(8, 2)
    )
    held = memory(asked)
    first, last = held.ranks
    assert (first.layers, last.layers) == (31, 30)
    assert [rank.stage for rank in held.ranks] == [0, 1]
    for rank in held.ranks:
        assert rank.weights.mid == weight_bytes(count_parameters(rank.rank.architecture), plan)
        assert rank.plan.unit_bytes == rank.layers * 1152
    assert held.per_gpu.weights_bytes == held.tightest.weights.mid
    assert held.rank_concurrency == min(rank.plan.fitting(rank.pool.mid, 1500) for rank in held.ranks)


def test_replicas_and_data_ranks_multiply_the_users_and_not_the_pool() -> None:
    one, many = memory(deployment()), memory(deployment(replicas=3, split=Split(data=2)))
    assert many.kv_pool_tokens == one.kv_pool_tokens
    assert many.max_concurrency == 6 * one.max_concurrency == 6 * 309
    assert (many.running_sequences, many.replica_sequences, many.rank_sequences) == (64, 22, 11)


def test_a_cap_is_of_each_rank() -> None:
    engine = Engine("ideal", 0.9, max_num_seqs=4)
    held = memory(deployment(engine=engine, replicas=2, split=Split(data=3), workload=workload(concurrency=100)))
    assert (held.max_concurrency, held.running_sequences) == (24, 24)
    assert (held.replica_sequences, held.rank_sequences) == (12, 4)


@pytest.mark.parametrize("name", sorted(POLICIES))
def test_a_measured_pool_beats_every_engines_own(name: str) -> None:
    engine = Engine(name, 0.3, POLICIES[name], given=Given(kv_pool=4e10))
    held = memory(deployment(engine=engine))
    assert held.tightest.is_pool_given
    assert held.per_gpu.kv_pool_bytes == 4e10
    assert held.kv_pool_tokens_interval == (held.kv_pool_tokens, held.kv_pool_tokens)
    assert held.budget_bytes >= held.per_gpu.weights_bytes + 4e10


def test_a_pool_is_no_larger_than_the_card() -> None:
    engine = Engine("vllm", 0.9, POLICIES["vllm"], given=Given(kv_pool=5e11))
    (rank,) = rank_memories(deployment(engine=engine))
    assert rank.pool.mid == rank.capacity_bytes - rank.weights.mid
    assert (rank.held_back_bytes, rank.budget_bytes) == (0, rank.capacity_bytes)


def test_the_token_line_is_that_of_the_stage_with_the_fewest() -> None:
    """Five windowed layers and a full one on two stages: the second holds two windows and the full one."""
    model = replace(interleaved(window=512), order=(0, 0, 0, 0, 0, 1))
    engine = Engine("vllm", 0.9, POLICIES["vllm"], max_num_seqs=7, given=Given(kv_pool=1e9))
    held = memory(deployment(architecture=model, engine=engine, split=Split(1, 2)))
    lines = [rank.plan.pool_tokens(1e9, 8192) for rank in held.ranks]
    assert held.kv_pool_tokens == min(lines) < max(lines)
    printed = {line.id: line.value for line in held.log_lines}
    assert printed["tokens"] == held.kv_pool_tokens
    assert held.printing is held.ranks[lines.index(min(lines))]


def test_a_stage_that_keeps_nothing_has_no_say_in_the_token_line() -> None:
    bare = LayerGroup(2, None, (DenseFeedForward(1024),))
    model = replace(interleaved(), layers=(*interleaved().layers, bare), order=(0, 0, 0, 1, 2, 2))
    model = replace(model, layers=(replace(model.layers[0], count=3), *model.layers[1:]))
    for name in ("vllm", "sglang", "ideal"):
        held = memory(deployment(architecture=model, engine=Engine(name, 0.9, POLICIES[name]), split=Split(1, 3)))
        assert held.ranks[2].plan.sequence_bytes(1000) == 0
        assert held.printing is not held.ranks[2]
        assert held.kv_pool_tokens > 0
