"""Any techniques at once: no floor is beaten, every sum adds up, and every formula still gives its number."""

import math
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from app.calc.broadcast import scalar
from app.calc.deployment import Deployment
from app.calc.derivation import Explanation
from app.calc.evaluate import Evaluation, evaluate
from app.calc.measure import Measures, measure
from app.calc.memory.capacity import Memory
from app.calc.time.lengths import Shape
from app.calc.time.operators import decode_operators
from app.scenario.resolve import resolve
from tests.calc.formulas import computed, substituted_value, symbols
from tests.calc.time.combined import combined
from tests.factories import answer_to, scenario, shipped_catalog

SLACK = 1 + 1e-9
many = settings(deadline=None, derandomize=True, max_examples=90, suppress_health_check=list(HealthCheck))


def check_explained(explanation: Explanation) -> None:
    values = {term.symbol: term.value for term in explanation.terms}
    assert len(values) == len(explanation.terms), "a symbol stands for two things"
    assert symbols(explanation.formula) == set(values)
    assert computed(explanation.formula, values) == pytest.approx(explanation.value, rel=1e-12, abs=1e-15)
    substituted_value(explanation.substituted.rpartition(" = ")[0])


def check_floors(asked: Deployment, found: Measures) -> None:
    """What bytes and arithmetic of a step allow, and what the arithmetic of all answers does."""
    served, card = found.serving, asked.accelerator
    a, k = asked.tokens_per_step, asked.positions - 1
    assert 1 <= a <= k + 1
    tpot = served.tpot_s.ceiling
    assert tpot * card.bandwidth_bytes_per_s * (k + 1) * SLACK >= found.decode.bytes
    assert tpot * a * SLACK >= found.decode.compute_s
    assert served.ttft_s.ceiling * SLACK >= found.prefill.ceiling_s / asked.prompt_side.split.pipeline
    # No step and no drafter's pass reads fewer weights than one token without guesses does.
    plain = replace(asked, speculation=None)
    least = sum(scalar(op.bytes) for op in decode_operators(plain, 1.0, 1.0))
    assert found.decode.bytes * SLACK >= least
    # Every token that is given is computed at the peak at best, each on its part of the GPUs.
    per_token_s = sum(
        scalar(op.flops) / card.peak(op.dtype)
        for op in decode_operators(plain, float(asked.split.data * asked.split.pipeline), 1.0)
    )
    rate = served.output_tokens_per_s.ceiling / asked.replicas / asked.split.data
    assert rate * per_token_s / asked.split.pipeline <= SLACK * _idle_replicas(asked, found)


def _idle_replicas(asked: Deployment, found: Measures) -> float:
    """The busiest replica may have more than the least busy one, for which steps are timed."""
    running, replicas = found.memory.running_sequences, asked.replicas
    return running / (replicas * max(1, running // replicas))


def check_levels(found: Measures) -> None:
    """No time is expected below its ceiling, no rate above; all are numbers."""
    served = found.serving
    times = [found.prefill_s, found.decode_s, served.ttft_s, served.tpot_s, served.total_latency_s]
    for time in (*times, served.tpot_inclusive_s):
        assert math.isfinite(time.ceiling)
        assert time.ceiling > 0
        assert time.mid is None or time.ceiling <= time.mid * SLACK < math.inf
    for rate in (served.output_tokens_per_s, served.output_tokens_per_s_per_user, served.total_tokens_per_s):
        assert math.isfinite(rate.ceiling)
        assert rate.mid is not None
        assert 0 < rate.mid <= rate.ceiling * SLACK


def check_sums(asked: Deployment, found: Measures) -> None:
    """A TPOT from its causes, a stay from its tokens, a card from its parts."""
    expected = found.expected
    assert expected is not None
    causes = expected.causes
    assert causes.total_s == pytest.approx(found.serving.tpot_s.mid, rel=1e-9)
    parts = (causes.efficiency_s, causes.calls_s, causes.collectives_s, causes.host_s, causes.interference_s)
    assert min(parts) >= -1e-12 * causes.total_s
    stay = expected.stay
    answer = scalar(stay.ttft_s) + asked.workload.output_tokens * scalar(stay.tpot_s)
    assert scalar(stay.residency_s) == pytest.approx(answer, rel=1e-9)
    if expected.pool is not None:
        requests = found.serving.output_tokens_per_s.best_known / asked.workload.output_tokens
        assert requests <= SLACK * expected.pool.per_s
    check_memory(found.memory)
    assert (found.prefill_memory is None) == (asked.prefill_pool is None)
    if found.prefill_memory is not None:
        check_memory(found.prefill_memory)


def check_memory(held: Memory) -> None:
    card = held.per_gpu
    parts = (card.weights_bytes, card.kv_pool_bytes, card.activation_bytes, card.overhead_bytes, card.free_bytes)
    assert sum(parts) == pytest.approx(card.capacity_bytes, rel=1e-9)
    # As many as fit do fit, beside what they share.
    pool = max(0.0, held.tightest.pool.mid)
    assert held.rank_concurrency * held.gpu_bytes_per_sequence <= max(pool - held.shared_bytes, 0) * SLACK + 1


def check_goodput(found: Evaluation) -> None:
    good = found.goodput
    if good is not None:
        assert 0 <= good.rate_per_s <= good.offered_per_s * SLACK
        assert good.offered_per_s <= good.most_per_s * SLACK
        assert good.rate_per_s * SLACK >= good.load.good_per_s.max()


@many
@given(combined())
def test_no_combination_beats_a_floor_or_breaks_a_sum(asked: Deployment) -> None:
    found = evaluate(asked)
    check_floors(asked, found.measures)
    check_levels(found.measures)
    check_sums(asked, found.measures)
    check_goodput(found)
    explanations = found.explanations
    assert len({explanation.id for explanation in explanations}) == len(explanations)
    for explanation in explanations:
        check_explained(explanation)


def static(asked: Deployment, *, shape: Shape = Shape.FIXED) -> Deployment:
    workload = replace(asked.workload, answer_shape=shape, longest_answer=None)
    return replace(asked, engine=replace(asked.engine, is_static=True), workload=workload)


@settings(many, max_examples=40)
@given(combined())
def test_a_static_batch_of_answers_all_alike_gives_what_a_continuous_one_gives(asked: Deployment) -> None:
    continuous = measure(replace(static(asked), engine=replace(asked.engine, is_static=False))).serving
    alike = measure(static(asked)).serving
    assert alike.output_tokens_per_s.ceiling == pytest.approx(continuous.output_tokens_per_s.ceiling, rel=1e-12)
    assert alike.output_tokens_per_s.mid == pytest.approx(continuous.output_tokens_per_s.mid, rel=1e-12)
    assert alike.total_latency_s.mid == pytest.approx(continuous.total_latency_s.mid, rel=1e-12)
    for shape in (Shape.UNIFORM, Shape.EXPONENTIAL):
        spread = measure(static(asked, shape=shape)).serving
        assert spread.output_tokens_per_s.ceiling <= alike.output_tokens_per_s.ceiling * SLACK
        assert spread.output_tokens_per_s.best_known <= alike.output_tokens_per_s.best_known * SLACK


def test_a_static_batch_by_hand() -> None:
    """32 exponential answers of 128 tokens on average: the batch ends after 519.5, so a quarter of it is used."""
    workload = {"prompt_tokens": 1, "output_tokens": 128, "concurrency": 32}
    static_ = answer_to(workload=workload | {"answer_shape": "exponential"}, techniques={"static_batching": True})
    continuous = answer_to(workload=workload)
    before, after = (answered.evaluation.measures.serving for answered in (continuous, static_))
    ttft, tpot = before.ttft_s.ceiling, before.tpot_s.ceiling
    assert after.stay_s.ceiling == pytest.approx(ttft + 519.5 * tpot, rel=1e-4)
    assert after.output_tokens_per_s.ceiling == pytest.approx(32 * 128 / (ttft + 519.5 * tpot), rel=1e-4)


@settings(many, max_examples=60)
@given(combined())
def test_reserved_room_is_never_more_than_paged_and_shared_tokens_never_take_room(asked: Deployment) -> None:
    paged = replace(asked, engine=replace(asked.engine, reserved_tokens=None, shared_tokens=0))
    total = asked.workload.total_tokens
    room = measure(paged).memory.max_concurrency
    for reserved in (1, total, total + 1, 4 * total):
        held = replace(paged, engine=replace(paged.engine, reserved_tokens=reserved))
        assert measure(held).memory.max_concurrency <= room
    for shared in (0, 1, asked.workload.prompt_tokens // 2, asked.workload.prompt_tokens):
        sharing = measure(replace(paged, engine=replace(paged.engine, shared_tokens=shared))).memory
        # A pool that just held them may lose a place to the rounding of two parts to blocks.
        assert sharing.max_concurrency >= room - asked.replicas * asked.split.data


@pytest.mark.parametrize("rate", [0.0, 0.5, 0.999, 1.0])
def test_a_prefix_that_is_found_leaves_at_least_one_token_to_compute(rate: float) -> None:
    asked = resolve(
        scenario(workload={"prompt_tokens": 1000, "prefix_hit_rate": rate, "concurrency": 1}), shipped_catalog()
    ).deployment
    new = asked.workload.prompt_tokens - asked.workload.cached_prompt_tokens
    assert new == {0.0: 1000, 0.5: 500, 0.999: 1, 1.0: 1}[rate]
    assert measure(asked).prefill.flops >= new * 2 * 6.9e9


def test_a_whole_shared_prefix_keeps_the_last_tokens_of_each_prompt() -> None:
    def held(shared: int, block: int = 16) -> tuple[int, int]:
        asked = resolve(
            scenario(workload={"prompt_tokens": 1000, "shared_prefix_tokens": shared}, engine={"block_size": block}),
            shipped_catalog(),
        ).deployment
        return asked.shared_tokens, asked.held_tokens

    assert held(0) == (0, 1500)
    assert held(1) == (0, 1500)  # no whole block
    assert held(16) == (16, 1484)
    assert held(1000) == (992, 508)  # 62 blocks of 16; the last token is always computed
    assert held(1000, 1) == (999, 501)


PLAIN: dict[str, tuple[dict[str, Any], tuple[str, str, str, str]]] = {
    "reference": (
        {},
        ("0x1.e16142960df72p-7", "0x1.f2f1d08382084p-8", "0x1.e92186e3030a0p+1", "0x1.05b0487358e30p+13"),
    ),
    "one user": (
        {"workload": {"concurrency": 1}},
        ("0x1.e16142960df72p-7", "0x1.28d86afe33aadp-8", "0x1.23c4b9bed482cp+1", "0x1.b6b43b8ea1b4ep+7"),
    ),
    "saturated, fp8": (
        {"workload": {"concurrency": None}, "precision": {"weights": "fp8", "kv_cache": "fp8"}},
        ("0x1.ebbf8ac77c5a5p-8", "0x1.60c24e47216fcp-6", "0x1.58bb3862cf96bp+3", "0x1.df5bdb075c28cp+14"),
    ),
    "prefix, long prompts": (
        {"workload": {"prompt_tokens": 8000, "output_tokens": 4, "prefix_hit_rate": 0.7}},
        ("0x1.5eddd73e2c044p-5", "0x1.91bf57e14c52bp-6", "0x1.209721c0312a6p-3", "0x1.77adba1f9adccp+6"),
    ),
    "latents and experts over ranks": (
        {
            "model": "deepseek-v3",
            "hardware": "h200-sxm",
            "parallelism": {"data": 8, "expert": 8},
            "workload": {"concurrency": 256},
        },
        ("0x1.22b6efa905426p-5", "0x1.5d0ec37b1fe03p-6", "0x1.560321d5e6263p+3", "0x1.7641701b5acfcp+13"),
    ),
    "own layers loaded": (
        {"model": {"id": "deepseek-v3", "mtp": True}, "hardware": "h200-sxm", "parallelism": {"tensor": 8}},
        ("0x1.bcde02f855d19p-6", "0x1.179425730cbcfp-6", "0x1.11e51b93d69b7p+3", "0x1.d3551bafb53abp+11"),
    ),
    "a draft in memory alone": (
        {
            "model": "llama-3.1-70b",
            "hardware": "h200-sxm",
            "parallelism": {"tensor": 2, "pipeline": 2},
            "techniques": {"speculative": {"draft_tokens": 4, "draft": {"id": "llama-3.2-1b"}}},
        },
        ("0x1.36e368ac50366p-5", "0x1.06af5dfd9a5c5p-6", "0x1.01be2532550e5p+3", "0x1.f09e83ae09ccbp+11"),
    ),
    "windows": (
        {"model": "gemma-3-27b", "hardware": "h200-sxm", "workload": {"concurrency": 2}},
        ("0x1.b0fe3a028f10dp-5", "0x1.7820e3fe5447cp-7", "0x1.72b21b1a636c3p+2", "0x1.594bf29a17d6ap+7"),
    ),
    "states": (
        {"model": "qwen3.5-35b-a3b", "hardware": "h200-sxm", "engine": {"id": "sglang"}},
        ("0x1.11b935d0ed413p-6", "0x1.dc191a2c870f9p-7", "0x1.d2023cc54cd27p+2", "0x1.12ac471d52760p+12"),
    ),
    "replicas": (
        {"hardware": {"id": "h100-sxm-80gb", "count": 6}, "parallelism": {"tensor": 2}},
        ("0x1.16ecc75f9c12ap-7", "0x1.6c397c390705dp-9", "0x1.65ddfcde7013dp+0", "0x1.65acb523bc38bp+14"),
    ),
}


@pytest.mark.parametrize("name", PLAIN)
def test_without_any_technique_every_number_is_what_it_was(name: str) -> None:
    """Bit for bit, as reckoned before there were techniques."""
    sections, numbers = PLAIN[name]
    served = answer_to(**sections).evaluation.measures.serving
    found = (served.ttft_s, served.tpot_s, served.total_latency_s, served.output_tokens_per_s)
    assert tuple(estimate.ceiling.hex() for estimate in found) == numbers
