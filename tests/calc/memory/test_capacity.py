"""What a card holds: parts that sum to it, whole sequences, and the verdict that follows from the bytes."""

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.calc.accelerator import MemoryBasis
from app.calc.deployment import Deployment, Engine
from app.calc.dtypes import Dtype, WeightFormat
from app.calc.measure import measure
from app.calc.memory.cache import cache_shape, kv_bytes_per_sequence
from app.calc.memory.capacity import memory
from app.calc.memory.engines.parts import MOST_CONCURRENT, Given
from app.calc.model.parameters import count_parameters, weight_bytes
from app.calc.verdict import Limiter, State, limiter_of, required_bytes, state_of, verdict
from tests.calc.strategies import deployments, engines, repeatable
from tests.factories import BF16, deployment, engine, h100_sxm, interleaved, precision, workload

REPORTED = 81_559 * 2**20
unmeasured = engines(pools=st.none())


def test_the_reference_card_by_hand() -> None:
    held = memory(deployment())
    budget = REPORTED * 0.9
    assert held.per_gpu.capacity_bytes == REPORTED
    assert held.budget_bytes == budget
    assert held.per_gpu.weights_bytes == 16_060_522_496
    assert held.per_gpu.kv_pool_bytes == budget - 16_060_522_496 == pytest.approx(60.91e9, rel=1e-4)
    assert held.kv_bytes_per_sequence == 1500 * 131_072
    assert held.kv_bytes_per_token == 131_072
    assert held.kv_pool_tokens == 464_692  # ⌊60,908,206,489.6 ÷ 131,072⌋
    assert held.max_concurrency == 309  # ⌊464,692 ÷ 1,500⌋
    assert held.max_context_tokens == 7260  # ⌊464,692 ÷ 64⌋
    assert held.running_sequences == 64
    assert held.needed_bytes == 16_060_522_496 + 64 * 1500 * 131_072


def test_the_marketed_memory_is_the_number_on_the_box() -> None:
    held = memory(deployment(memory_basis=MemoryBasis.MARKETED))
    assert held.per_gpu.capacity_bytes == 80e9
    unknown = replace(h100_sxm(), memory_reported_bytes=None)
    assert memory(deployment(accelerator=unknown)).per_gpu.capacity_bytes == 80e9


def test_a_measured_pool_beats_the_computed_one() -> None:
    held = memory(deployment(engine=engine(given=Given(kv_pool=50e9))))
    assert held.per_gpu.kv_pool_bytes == 50e9
    assert held.max_concurrency == math.floor(50e9 / (1500 * 131_072)) == 254
    assert held.budget_bytes == pytest.approx(16_060_522_496 + 50e9, rel=1e-12)  # it has room for weights and pool
    assert held.per_gpu.free_bytes == REPORTED - 16_060_522_496 - 50e9


def test_a_cap_on_sequences_binds_where_the_pool_would_hold_more() -> None:
    capped = memory(deployment(engine=engine(max_num_seqs=16)))
    assert (capped.max_concurrency, capped.running_sequences) == (16, 16)
    roomy = memory(deployment(engine=engine(max_num_seqs=1000)))
    assert (roomy.max_concurrency, roomy.running_sequences) == (309, 64)


def test_no_concurrency_means_as_many_as_fit_and_at_least_one() -> None:
    assert memory(deployment(workload=workload(concurrency=None))).running_sequences == 309
    large = deployment(workload=workload(prompt_tokens=10**6, concurrency=None))
    assert (memory(large).max_concurrency, memory(large).running_sequences) == (0, 1)


def test_where_every_layer_has_a_window_the_model_sets_the_longest_context() -> None:
    held = memory(deployment(architecture=interleaved(full_layers=0)))
    assert held.context_is_endless
    assert held.max_context_tokens == 8192
    endless = replace(interleaved(full_layers=0), max_position=None)
    assert memory(deployment(architecture=endless)).max_context_tokens == 1500


def test_a_pool_is_never_below_zero_and_sequences_are_whole() -> None:
    one = 1500 * 131_072
    for pool, sequences in ((3 * one + 1, 3), (3 * one, 3), (3 * one - 1, 2), (1, 0)):
        assert memory(deployment(engine=engine(given=Given(kv_pool=pool)))).max_concurrency == sequences
    held = memory(deployment(engine=engine(0.1)))  # 8.55 GB for 16.06 GB of weights
    assert (held.per_gpu.kv_pool_bytes, held.kv_pool_tokens, held.max_concurrency) == (0, 0, 0)
    assert held.tightest.pool.mid == REPORTED * 0.1 - 16_060_522_496


@repeatable
@given(deployments())
def test_the_parts_sum_to_the_card(asked: Deployment) -> None:
    part = memory(asked).per_gpu
    parts = (part.weights_bytes, part.kv_pool_bytes, part.activation_bytes, part.overhead_bytes, part.free_bytes)
    assert sum(parts) == pytest.approx(part.capacity_bytes, rel=1e-9, abs=1)
    assert part.capacity_bytes == asked.accelerator.memory_bytes(asked.memory_basis)
    counted = weight_bytes(count_parameters(asked.architecture), asked.precision.weights)
    pool = asked.engine.given.kv_pool
    # Weights that are only counted yield to a pool that was measured and that the card can hold.
    yields = pool is not None and pool <= part.capacity_bytes and counted > part.capacity_bytes - pool
    assert part.weights_bytes == (part.capacity_bytes - pool if yields and pool is not None else counted)
    assert part.kv_pool_bytes >= 0


@repeatable
@given(deployments())
def test_the_pool_holds_the_most_sequences_and_not_one_more(asked: Deployment) -> None:
    held = memory(asked)
    pool, one, most = held.per_gpu.kv_pool_bytes, held.kv_bytes_per_sequence, held.max_concurrency
    assert most * one <= pool * (1 + 1e-12)
    cap = min(asked.engine.max_num_seqs or MOST_CONCURRENT, MOST_CONCURRENT)
    if most < cap:
        assert pool < (most + 1) * one * (1 + 1e-12)
    else:
        assert most == cap


@repeatable
@given(deployments())
def test_the_pool_holds_its_tokens_and_not_one_more(asked: Deployment) -> None:
    held = memory(asked)
    assert held.kv_pool_tokens * held.kv_bytes_per_token <= held.per_gpu.kv_pool_bytes * (1 + 1e-12)
    assert held.per_gpu.kv_pool_bytes < (held.kv_pool_tokens + 1) * held.kv_bytes_per_token * (1 + 1e-12)


@repeatable
@given(deployments())
def test_all_running_sequences_together_reach_the_longest_context_and_not_one_token_more(asked: Deployment) -> None:
    held = memory(asked)
    if held.context_is_endless:
        return
    kv_cache, n = asked.precision.kv_cache, held.max_context_tokens
    share = held.per_gpu.kv_pool_bytes / held.running_sequences
    if share < cache_shape(asked.architecture).state_bytes:
        assert n == 0  # not even the states fit
        return
    assert kv_bytes_per_sequence(asked.architecture, n, kv_cache) <= share * (1 + 1e-12)
    assert kv_bytes_per_sequence(asked.architecture, n + 1, kv_cache) > share * (1 - 1e-12)


@repeatable
@given(deployments())
def test_the_state_follows_from_the_bytes(asked: Deployment) -> None:
    found = measure(asked)
    held, state = found.memory, state_of(asked, found)
    sequences = 1 if asked.workload.concurrency is None else held.running_sequences
    needed = held.per_gpu.weights_bytes + sequences * held.kv_bytes_per_sequence
    assert required_bytes(asked, found) == needed
    if state is State.DOES_NOT_FIT:
        assert needed > held.budget_bytes
    elif state is State.TIGHT:
        assert 0.9 * held.budget_bytes * (1 - 1e-12) <= needed <= held.budget_bytes
    else:
        assert needed <= 0.9 * held.budget_bytes * (1 + 1e-12)
    assert (limiter_of(asked, state, found) is Limiter.CAPACITY) is (state is State.DOES_NOT_FIT)


@repeatable
@given(deployments(engine=unmeasured))
def test_it_fits_exactly_when_the_pool_holds_the_sequences_asked_for(asked: Deployment) -> None:
    found = measure(asked)
    fits = state_of(asked, found) is not State.DOES_NOT_FIT
    assert fits is (found.memory.max_concurrency >= found.memory.running_sequences)


def test_a_measured_pool_that_holds_the_sequences_is_never_told_not_to_fit() -> None:
    # 16.06 GB of weights in a share of 0.1 × 85.5 GB (an engine whose setting is for the cache alone): the pool was
    # measured beside those weights, and beats what is computed.
    asked = deployment(engine=engine(0.1, given=Given(kv_pool=2e9)), workload=workload(concurrency=1))
    found = measure(asked)
    assert found.memory.max_concurrency == 10
    assert found.memory.per_gpu.free_bytes > 0
    assert state_of(asked, found) is not State.DOES_NOT_FIT


@repeatable
@given(deployments())
def test_the_sentence_is_two_sentences_that_begin_with_the_state(asked: Deployment) -> None:
    found = measure(asked)
    for binary in (False, True):
        told = verdict(asked, found, binary=binary)
        start = {State.FITS: "Fits: ", State.TIGHT: "Fits, but tight: ", State.DOES_NOT_FIT: "Does not fit: "}
        assert told.sentence.startswith(start[told.state])
        assert told.sentence.endswith((" users.", " one user."))
        assert "nan" not in told.sentence
        assert "inf" not in told.sentence
    assert "GB" not in verdict(asked, found, binary=True).sentence


@pytest.mark.parametrize(
    ("asked", "sentence"),
    [
        (
            deployment(),
            "Fits: 28.6 GB of 85.5 GB in use, room for 309 full-length sequences. "
            "Decode is bound by memory bandwidth: at best 131 tokens/s to each of 64 users.",
        ),
        (
            deployment(workload=workload(concurrency=300)),
            "Fits, but tight: 75 GB of 85.5 GB in use, room for 309 full-length sequences. "
            "Decode is bound by memory bandwidth: at best 52 tokens/s to each of 300 users.",
        ),
        (
            deployment(workload=workload(concurrency=310)),
            "Does not fit: the weights and 310 sequences of 1,500 tokens need 77 GB, 40.3 MB more than the 77 GB the "
            "engine may use; room for 309. If it did, decode would be bound by memory bandwidth: at best 50.3 tokens/s "
            "to each of 310 users.",
        ),
        (
            deployment(precision=precision(WeightFormat.FP32), engine=engine(0.3)),
            "Does not fit: the weights alone take 32.1 GB, 6.46 GB more than the 25.7 GB the engine may use. "
            "If it did, decode would be bound by memory bandwidth: at best 82.7 tokens/s to each of 64 users.",
        ),
    ],
    ids=["fits", "tight", "does-not-fit", "weights-alone"],
)
def test_the_sentence_of_each_state(asked: Deployment, sentence: str) -> None:
    assert verdict(asked, measure(asked)).sentence == sentence


def test_the_limiter_is_the_roof_over_the_longer_phase() -> None:
    def limiter(asked: Deployment) -> Limiter:
        return verdict(asked, measure(asked)).limiter

    assert limiter(deployment()) is Limiter.MEMORY_BANDWIDTH
    assert limiter(deployment(workload=workload(concurrency=10**5))) is Limiter.CAPACITY
    long_prompt = workload(prompt_tokens=20_000, output_tokens=2, concurrency=1)
    assert limiter(deployment(workload=long_prompt)) is Limiter.COMPUTE
    many_prompts = workload(prompt_tokens=4000, output_tokens=10, concurrency=64)
    assert limiter(deployment(workload=many_prompts)) is Limiter.COMPUTE  # their prefills outlast one answer


def test_a_tenth_of_the_share_to_spare_is_the_edge_of_tight() -> None:
    # 16 GB of weights and one sequence of 1 GiB; the budget is set so that it is 90 % full, to a byte.
    needed = 16_060_522_496 + 8192 * 131_072
    for extra, state in ((-1e-9, State.TIGHT), (1e-9, State.FITS)):
        card = replace(h100_sxm(), memory_reported_bytes=None, memory_marketed_bytes=needed / 0.9 * (1 + extra))
        asked = deployment(accelerator=card, engine=Engine("ideal", 1.0), workload=workload(8191, 1, 1))
        assert state_of(asked, measure(asked)) is state


@pytest.mark.parametrize("kv_cache", [dtype for dtype in Dtype if dtype is not Dtype.TF32])
def test_a_narrower_cache_never_holds_fewer_sequences(kv_cache: Dtype) -> None:
    wide = memory(deployment(precision=replace(BF16, kv_cache=Dtype.FP32)))
    narrow = memory(deployment(precision=replace(BF16, kv_cache=kv_cache)))
    assert narrow.max_concurrency >= wide.max_concurrency
    assert narrow.kv_bytes_per_token * 32 == wide.kv_bytes_per_token * kv_cache.bits


@pytest.mark.parametrize("concurrency", [None, 64, 3000])
def test_no_measured_pool_makes_a_card_larger_than_it_is(concurrency: int | None) -> None:
    asked = deployment(engine=engine(0.9, given=Given(kv_pool=5e11)), workload=workload(concurrency=concurrency))
    found = measure(asked)
    held = found.memory
    assert held.per_gpu.kv_pool_bytes == held.per_gpu.capacity_bytes - held.per_gpu.weights_bytes
    assert held.budget_bytes == held.per_gpu.capacity_bytes
    assert held.per_gpu.free_bytes == pytest.approx(0, abs=1e-3)
    fits = held.needed_bytes <= held.per_gpu.capacity_bytes
    assert (state_of(asked, found) is not State.DOES_NOT_FIT) is fits
    assert fits is (concurrency != 3000)
