"""vLLM's share of a card: what is charged in which release, how the pool follows, and what its log prints."""

from dataclasses import replace
from typing import Any

import pytest

from app.calc.deployment import Engine
from app.calc.dtypes import Dtype, WeightFormat
from app.calc.memory.capacity import memory
from app.calc.memory.engines.parts import Draft, Given, LogLine, Part
from app.calc.memory.engines.vllm import VllmPolicy, VllmRelease
from app.calc.memory.rank import RankMemory
from app.calc.model.split import Split
from tests.calc.memory.engines.laws import GIB, fixed, laws, only
from tests.factories import BF16, deployment, h200_sxm, interleaved, llama_3_1_8b, precision, shipped_catalog, workload

CATALOG = shipped_catalog()
NEWEST = VllmPolicy("vLLM", VllmRelease(), laws())
OLD = VllmPolicy("vLLM", VllmRelease(charges_graphs=False, prints_concurrency=False), laws())
CARD = 81_559 * 2**20
WEIGHTS = 16_060_522_496


def lines(rank: RankMemory, policy: VllmPolicy = NEWEST) -> dict[str, LogLine]:
    return {line.id: line for line in policy.log_lines(rank.rank, rank.pool.mid)}


def test_the_pool_is_the_share_less_all_that_is_charged() -> None:
    rank = only(NEWEST)
    assert rank.budget_bytes == CARD * 0.9
    assert rank.pool.mid == pytest.approx(CARD * 0.9 - WEIGHTS - 2.75 * GIB, rel=1e-12)
    assert rank.held_back_bytes == pytest.approx(2.75 * GIB, rel=1e-9)
    assert NEWEST.pool_formula == "max(0, M × u − W − A − N − G)"


def test_graphs_were_outside_of_the_share_before_0_21() -> None:
    rank = only(OLD)
    assert rank.pool.mid == pytest.approx(CARD * 0.9 - WEIGHTS - 2.5 * GIB, rel=1e-12)
    assert [o.part for o in rank.overheads if not o.is_charged] == [Part.DRIVER, Part.GRAPHS]
    assert OLD.pool_formula == "max(0, M × u − W − A − N)"


def test_no_graphs_are_captured_where_they_are_switched_off() -> None:
    eager, captured = only(NEWEST, settings={"is_eager": True}), only(NEWEST)
    assert eager.pool.mid - captured.pool.mid == pytest.approx(0.25 * GIB, rel=1e-9)


@pytest.mark.parametrize(
    ("given", "gained"),
    [
        (Given(activation=GIB), 1.0),
        (Given(non_framework=0.0), 0.5),
        (Given(graphs=0.0), 0.25),
        (Given(weights=WEIGHTS - GIB), 1.0),
        (Given(total_memory=CARD - GIB), -0.9),
        (Given(activation=GIB, non_framework=0.0, graphs=0.0), 1.75),
    ],
)
def test_what_was_measured_takes_the_place_of_what_is_assumed(given: Given, gained: float) -> None:
    rank = only(NEWEST, settings={"given": given})
    assert rank.pool.mid - only(NEWEST).pool.mid == pytest.approx(gained * GIB, rel=1e-6)


def test_the_logged_breakdown_of_a_development_build_on_an_80_gb_card() -> None:
    """vllm#10511: 79.22 GiB × 0.9 less 14.96, 1.79 and 1.26 is the 53.29 GiB that it printed."""
    given = Given(79.22 * GIB, 14.96 * GIB, 1.26 * GIB, 1.79 * GIB, 0.0)
    rank = only(OLD, settings={"given": given})
    assert rank.pool.mid / GIB == pytest.approx(53.29, abs=0.01)
    assert rank.pool.is_exact


def peaks(policy: VllmPolicy, **settings: object) -> float:
    rank = only(policy, settings=dict(settings))
    return rank.overhead(Part.ACTIVATION).mid


def test_old_releases_profiled_the_longest_sequence_and_later_ones_a_step() -> None:
    physical = laws(activation=fixed(0, factor=1.0))
    step = VllmPolicy("vLLM", VllmRelease(), physical)
    whole = VllmPolicy("vLLM", VllmRelease(profiles_model_len=True), physical)
    assert peaks(step, step_tokens=2048, max_model_len=8192) == peaks(step, step_tokens=2048, max_model_len=16_384)
    assert peaks(whole, step_tokens=2048, max_model_len=8192) < peaks(whole, step_tokens=2048, max_model_len=16_384)
    assert peaks(step, step_tokens=2048) < peaks(step, step_tokens=16_384)
    # A step is never longer than the longest sequence.
    assert peaks(step, step_tokens=8192, max_model_len=1000) == peaks(step, step_tokens=1000, max_model_len=1000)


def test_sequences_set_by_hand_size_the_sampler() -> None:
    physical = VllmPolicy("vLLM", VllmRelease(), laws(activation=fixed(0, factor=1.0)))
    logits = 128_256 * physical.release.logit_bytes
    found = peaks(physical, max_num_seqs=2048, profiled_seqs=256) - peaks(physical, max_num_seqs=1024)
    assert found == pytest.approx(1024 * logits, rel=1e-9)
    assert peaks(physical, profiled_seqs=512) == peaks(physical, max_num_seqs=512)


def test_releases_that_know_no_groups_give_every_layer_the_whole_length() -> None:
    """V0 charged a windowed layer as a full one (kv-truth 1.1)."""
    uniform = VllmPolicy("vLLM", VllmRelease(is_uniform=True), laws())
    model = interleaved(window=512)  # 6 layers of 4 heads of 64, 1,024 B a token
    for policy, blocks in ((uniform, 512), (NEWEST, 512 + 5 * (32 + 128 + 1))):
        rank = only(policy, architecture=model, settings={"step_tokens": 2048})
        plan = policy.plan(rank.rank).plan
        assert plan is not None
        assert plan.blocks_of(8192) == blocks
    assert 5 * (-(-(511 + 2048) // 16) + 1) == 5 * (32 + 128 + 1)


def test_the_lines_of_the_log() -> None:
    rank = only(NEWEST, settings={"given": Given(kv_pool=16 * 131_072 * 1000.5), "max_model_len": 4096})
    found = lines(rank)
    assert found["available"].text == "1.95 GiB"
    assert found["blocks"].text == "1,000"
    assert found["tokens"].text == found["other_tokens"].text == "16,000 tokens"
    assert found["concurrency"].text == "3.91x"  # 1,000 ÷ 256
    assert found["concurrency"].label == "Maximum concurrency for 4,096 tokens per request"


def test_both_forms_of_the_token_line_stand_in_the_log_of_a_hybrid() -> None:
    model = CATALOG.architectures["qwen3.5-27b"]  # blocks of 16 × 1,568 tokens of 2,048 B, four groups
    settings = {"given": Given(kv_pool=1000 * 16 * 1568 * 2048.0), "max_model_len": 32_768}
    others: dict[str, Any] = {
        "architecture": model,
        "accelerator": h200_sxm(),
        "precision": replace(BF16, kv_cache=Dtype.FP8),
    }
    rank = only(NEWEST, settings=settings, **others)
    demand = 21 + 3 * 2  # ⌈32,768 ÷ 1,568⌉, and two blocks of each recurrent group: prefixes are cached
    new, old = int(1000 / demand * 32_768), 1000 // 4 * 1568
    assert (lines(rank)["tokens"].value, lines(rank)["other_tokens"].value) == (new, old)
    assert (lines(rank, OLD)["tokens"].value, lines(rank, OLD)["other_tokens"].value) == (old, new)
    plain = only(NEWEST, settings=settings | {"prefix_caching": False}, **others)
    assert lines(plain)["concurrency"].value == pytest.approx(1000 / (21 + 3), rel=1e-12)


def test_a_draft_model_stands_on_the_last_stage_and_takes_weights_and_cache() -> None:
    draft = Draft(llama_3_1_8b(), BF16.weights)
    engine = Engine("vllm", 0.9, NEWEST)
    held = memory(deployment(engine=engine, split=Split(2, 2), draft=draft, workload=workload(concurrency=1)))
    first, last = held.ranks
    assert (first.rank.draft is None, last.rank.draft is None) == (True, False)
    alone = memory(deployment(engine=engine, split=Split(2, 2)))
    half = WEIGHTS / 2 + 65 * 4096  # norms are copied
    assert last.weights.mid - alone.ranks[1].weights.mid == half
    # 16 layers of the stage and 32 of the draft, each 2 × 4 × 128 × 2 B of a token
    assert last.plan.unit_bytes == 16 * (16 + 32) * 2048
    assert first.plan.unit_bytes == 16 * 16 * 2048
    assert held.tightest is last


def test_kimi_k2_on_eight_h200() -> None:
    """vLLM printed 715,072 tokens at 46.80 GiB, and 5,721,088 with eight context ranks, of Kimi-K2-Thinking (INT4)."""
    settings = {"given": Given(kv_pool=46.80 * GIB), "block_tokens": 64}
    card, model = CATALOG.devices["h200-sxm"], CATALOG.architectures["kimi-k2"]
    for ranks, tokens, near in ((1, 715_072, 0.0), (8, 5_721_088, 2e-4)):
        asked = deployment(
            architecture=model,
            accelerator=card,
            precision=precision(WeightFormat.INT4, architecture=model),
            engine=Engine("vllm", 0.9, NEWEST, **settings),  # type: ignore[arg-type]
            split=Split(8, decode_context=ranks),
        )
        assert memory(asked).kv_pool_tokens == pytest.approx(tokens, rel=near, abs=0)
