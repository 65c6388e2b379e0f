"""vLLM's cut of a pool into blocks, against the lines of start-up logs: blocks, demands and tokens to the integer.

The source of each number is the row of the collection of logs that is named beside it.
"""

from dataclasses import dataclass, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.calc.dtypes import Dtype
from app.calc.memory.cache import CachedLayers, CachedRows, CachedState, CacheFormat, cached_layers
from app.calc.memory.engines.paged_pool import BlockPlan, BlockRoom, plan_blocks
from app.calc.model.architecture import Architecture, LayerGroup
from app.calc.model.layers.dense import DenseFeedForward
from app.calc.model.layers.grouped_attention import GroupedAttention
from app.calc.model.split import Split
from tests.calc.strategies import repeatable
from tests.factories import shipped_catalog

CATALOG = shipped_catalog()
GIB = 2**30
# A drafter of five layers, 8 heads of 128: as many bytes a token as a layer of Qwen3.6-27B, in another shape.
DFLASH = Architecture("Drafter", 5120, 1000, (LayerGroup(5, GroupedAttention(32, 8, 128), (DenseFeedForward(1),)),))


@dataclass(frozen=True)
class Logged:
    """What decides the blocks of a log, and what it prints."""

    model: str
    kv_cache: Dtype = Dtype.FP8
    tensor: int = 1
    mtp: bool = False
    drafts: int = 0
    draft: Architecture | None = None
    block: int = 16
    step: int = 8192
    alignment: int = 16
    states: int = 1
    context_ranks: int = 1

    @property
    def layers(self) -> CachedLayers:
        record = CATALOG.models[self.model]
        whole = record.architecture_with_mtp if self.mtp else record.architecture
        part, draft = whole.split(Split(self.tensor)), self.draft and self.draft.split(Split(self.tensor))
        return cached_layers(part, CacheFormat.plain(self.kv_cache), self.drafts, draft)

    @property
    def plan(self) -> BlockPlan:
        found = plan_blocks(
            self.layers,
            block_tokens=self.block,
            step_tokens=self.step,
            state_alignment=self.alignment,
            states=self.states,
            context_ranks=self.context_ranks,
        )
        assert found is not None
        return found


QWEN_27B = Logged("qwen3.5-27b")  # the same shape as Qwen3.6-27B and Qwen3.8-27B
QWEN_35B = Logged("qwen3.5-35b-a3b")
MTP_27B = replace(QWEN_27B, mtp=True, drafts=3, states=5)
MTP_35B = replace(QWEN_35B, mtp=True, drafts=2, states=4)
DFLASH_27B = replace(QWEN_27B, kv_cache=Dtype.BF16, drafts=5, draft=DFLASH, states=7)
KIMI_LINEAR = Logged("kimi-linear-48b-a3b", Dtype.BF16, tensor=2, alignment=64, step=64_000)
GEMMA_3 = Logged("gemma-3-4b", Dtype.BF16)
GEMMA_4 = Logged("gemma-4-31b", Dtype.BF16, tensor=2, step=4096)
GPT_OSS = Logged("gpt-oss-120b", Dtype.BF16)


@pytest.mark.parametrize(
    ("asked", "state", "block", "padding"),
    [
        # 48 × 128 × 128 × 4 B and 10,240 × 3 × 2 B; ÷ 2,048 B a token = 1,566, in sixteens 1,568
        (QWEN_27B, 3_207_168, 1568, 1568 * 2048 / 3_207_168 - 1),
        (replace(QWEN_27B, tensor=2), 1_603_584, 1568, 1568 * 1024 / 1_603_584 - 1),
        # 32 × 128 × 128 × 4 B and 8,192 × 3 × 2 B; ÷ 1,024 B = 2,096 and nothing over
        (QWEN_35B, 2_146_304, 2096, 0),
        (MTP_35B, 2_179_072, 2128, 0),  # the convolution keeps two guessed tokens more
        (MTP_27B, 3_268_608, 1600, 1600 * 2048 / 3_268_608 - 1),
        (DFLASH_27B, 3_309_568, 816, 816 * 4096 / 3_309_568 - 1),
        (replace(QWEN_27B, kv_cache=Dtype.BF16), 3_207_168, 784, 784 * 4096 / 3_207_168 - 1),  # vllm#40691
        # 16 × 128 × 128 × 4 B and 3 × 3 × 2,048 × 2 B, halved; ÷ 1,152 B = 942.2, in sixty-fours 960
        (KIMI_LINEAR, 1_085_440, 960, 960 * 1152 / 1_085_440 - 1),
    ],
)
def test_a_block_is_raised_to_the_size_of_a_state(asked: Logged, state: int, block: int, padding: float) -> None:
    plan = asked.plan
    assert {kept.bytes for kept in asked.layers.states} == {state}
    assert {kind.block_tokens for kind in plan.kinds if not kind.is_state} == {block}
    assert plan.state_padding == pytest.approx(padding, abs=1e-12)
    assert plan.smallest_block_tokens == block


def test_the_padding_is_the_printed_one() -> None:
    assert QWEN_27B.plan.state_padding == pytest.approx(0.0013, abs=5e-5)  # "Padding mamba page size by 0.13%"


@pytest.mark.parametrize(
    ("asked", "groups", "padding_layers"),
    [
        (QWEN_27B, {"GQA": (1, 0), "gated DeltaNet": (3, 0)}, 0),  # 16 and 48 layers
        (QWEN_35B, {"GQA": (1, 0), "gated DeltaNet": (3, 0)}, 0),  # 10 and 30
        (MTP_35B, {"GQA": (1, 0), "gated DeltaNet": (3, 3)}, 3),  # 11 and 30
        (MTP_27B, {"GQA": (1, 0), "gated DeltaNet": (3, 3)}, 3),  # 17 and 48
        (KIMI_LINEAR, {"latent": (1, 0), "Kimi": (3, 1)}, 1),  # 7 and 20: "Add 1 padding layers"
        (GEMMA_3, {"full": (1, 0), "window": (6, 1)}, 1),  # 5 and 29: 3.45 % are wasted
        (GEMMA_4, {"full": (1, 0), "window": (5, 0)}, 0),  # 10 and 50
        (GPT_OSS, {"full": (1, 0), "window": (1, 0)}, 0),  # 18 and 18
    ],
)
def test_layers_are_cut_into_groups_of_the_smallest_kind(
    asked: Logged, groups: dict[str, tuple[int, int]], padding_layers: int
) -> None:
    plan = asked.plan
    assert sorted((kind.groups, kind.padding_layers) for kind in plan.kinds) == sorted(groups.values())
    assert sum(kind.padding_layers for kind in plan.kinds) == padding_layers
    assert plan.groups == sum(count for count, _ in groups.values())
    assert plan.is_hybrid


def test_a_drafter_makes_the_groups_as_small_as_it_is() -> None:
    plan = DFLASH_27B.plan  # 16 full, 48 recurrent and 5 drafting layers
    found = sorted((kind.is_state, kind.groups, kind.padding_layers) for kind in plan.kinds)
    assert found == [(False, 1, 0), (False, 4, 4), (True, 10, 2)]
    assert plan.block_bytes == 5 * 816 * 4096


def test_a_narrower_row_gets_a_longer_block() -> None:
    # Gemma 4 31B on two cards: 2 × 2 × 512 × 2 B and 2 × 8 × 256 × 2 B of a token, a page of 131,072 B for both.
    by_window = {kind.window: kind.block_tokens for kind in GEMMA_4.plan.kinds}
    assert by_window == {None: 32, 1024: 16}
    assert GEMMA_4.plan.block_bytes == 10 * 16 * 8192


LOGS = pytest.mark.parametrize(
    ("asked", "length", "demand", "blocks", "tokens", "pool_gib"),
    [
        # source, in the order of the collection: club-3090 Gemma 4; #612; #851; #858; benchmark; #127; talos; GB10 a, b
        (GEMMA_4, 131_072, 4096 + 5 * 321, 8548, 196_527, 10.43),
        (replace(QWEN_35B, states=2), 131_072, 63 + 3 * 2, 299, 567_978, 5.98),
        (replace(QWEN_35B, tensor=2, states=2), 262_144, 126 + 3 * 2, 1703, 3_382_054, 17.02),
        (replace(QWEN_35B, tensor=2, states=2), 262_144, 132, 1658, 3_292_687, 16.57),
        (replace(QWEN_35B, tensor=2, states=2), 262_144, 132, 904, 1_795_289, 9.03),
        (replace(MTP_27B, tensor=4), 262_144, 164 + 3 * 5, 1212, 1_774_963, 15.72),
        (replace(QWEN_27B, tensor=2, states=2), 131_072, 84 + 3 * 2, 208, 302_921, 4.98),
        (MTP_35B, 262_144, 124 + 3 * 4, 3349, 6_455_296, 74.76),
        (MTP_35B, 262_144, 136, 2982, 5_747_892, 66.58),
    ],
)


@LOGS
def test_the_demand_and_the_new_token_line_are_the_printed_ones(
    asked: Logged, length: int, demand: int, blocks: int, tokens: int, pool_gib: float
) -> None:
    plan = asked.plan
    assert plan.blocks_of(length) == demand
    pool = blocks * plan.block_bytes
    assert pool / GIB == pytest.approx(pool_gib, abs=0.02)  # a pool is printed with two digits, less than a block off
    room = BlockRoom(plan, prints_concurrency=True)
    assert room.blocks(pool) == blocks
    assert room.blocks(pool - 1) == blocks - 1
    assert room.pool_tokens(pool, length) == tokens == int(blocks / demand * length)


@pytest.mark.parametrize(
    ("asked", "length", "demand", "blocks", "tokens", "concurrency"),
    [
        (replace(QWEN_27B, kv_cache=Dtype.BF16, step=16_384), 32_768, 42 + 3, 1487, 290_864, 33.04),  # vllm#40691
        (KIMI_LINEAR, 120_000, 125 + 3, 318, 75_840, 2.48),  # vllm#28228
        (DFLASH_27B, 180_000, 5 * 221 + 70, 1251, 67_728, 1.06),  # club-3090#46
        (GEMMA_3, 3072, 192 + 6 * 193, 138_747, 317_136, 102.78),  # kvcached#215
    ],
)
def test_the_old_token_line_is_blocks_by_groups(
    asked: Logged, length: int, demand: int, blocks: int, tokens: int, concurrency: float
) -> None:
    plan = asked.plan
    assert plan.blocks_of(length) == demand
    room = BlockRoom(plan, prints_concurrency=False)
    pool = blocks * plan.block_bytes
    assert room.pool_tokens(pool, length) == tokens == blocks // plan.groups * plan.smallest_block_tokens
    assert round(room.concurrency(pool, length), 2) == concurrency


def test_the_old_line_lies_far_below_what_the_pool_serves() -> None:
    plan = KIMI_LINEAR.plan
    pool = 318 * plan.block_bytes
    assert int(2.48 * 120_000) == 297_600  # what the log's own concurrency stands for
    assert BlockRoom(plan, prints_concurrency=True).pool_tokens(pool, 120_000) == int(318 / 128 * 120_000) == 298_125


def test_the_new_line_rises_with_the_length_at_the_same_memory() -> None:
    plan = replace(QWEN_35B, states=2).plan
    room, pool = BlockRoom(plan, prints_concurrency=True), 299 * plan.block_bytes
    found = [room.pool_tokens(pool, length) for length in (8192, 32_768, 131_072)]
    assert found == sorted(found)
    assert found[0] == int(299 / (4 + 6) * 8192)


def test_gpt_oss_by_hand() -> None:
    plan = GPT_OSS.plan
    assert plan.block_bytes == 18 * 16 * 2048  # 36,864 B a token in the full layers
    # 131,072 tokens: 8,192 blocks, and of the window ⌈(127 + 8,192) ÷ 16⌉ + 1 = 521: 4.79 GiB, "about 4.5 GiB" in logs
    assert plan.blocks_of(131_072) == 8192 + 521
    assert plan.blocks_of(131_072) * plan.block_bytes / GIB == pytest.approx(4.79, abs=0.01)
    full = Logged("gpt-oss-120b", Dtype.BF16, step=1)
    assert full.plan.blocks_of(131_072) == 8192 + 9


def test_one_kind_of_layers_is_one_group_whatever_the_sizes() -> None:
    plan = Logged("llama-3.1-8b", Dtype.BF16).plan
    assert plan.block_bytes == 16 * 131_072
    assert (plan.groups, plan.is_hybrid, plan.smallest_block_tokens, plan.state_padding) == (1, False, 16, 0)
    assert [plan.blocks_of(tokens) for tokens in (0, 1, 16, 17, 4096)] == [0, 1, 1, 2, 256]
    sparse = Logged("deepseek-v3.2", Dtype.FP8, block=64).plan  # latents and index keys stand in one block
    assert sparse.block_bytes == 64 * 48_068
    assert not sparse.is_hybrid


def test_latents_are_on_every_tensor_rank_and_heads_beyond_their_count_too() -> None:
    for tensor in (1, 2, 8):
        assert Logged("deepseek-v3", Dtype.BF16, tensor=tensor, block=64).plan.block_bytes == 64 * 70_272
    sizes = [Logged("llama-3.1-8b", Dtype.BF16, tensor=tensor).plan.block_bytes for tensor in (1, 2, 4, 8, 16)]
    assert [16 * 131_072 / size for size in sizes] == [1, 2, 4, 8, 8]


def test_kimi_k2_on_eight_h200_with_and_without_context_ranks() -> None:
    # vLLM start-up logs of Kimi-K2-Thinking, 46.80 GiB: 715,072 and 5,721,088 tokens.
    pool = 46.80 * GIB
    copied = BlockRoom(Logged("kimi-k2", Dtype.BF16, tensor=8, block=64).plan, prints_concurrency=True)
    assert copied.blocks(pool) == 11_173  # ⌊46.80 GiB ÷ (64 × 61 × 576 × 2 B)⌋
    assert copied.pool_tokens(pool, 262_144) == 715_072
    shared = BlockRoom(Logged("kimi-k2", Dtype.BF16, tensor=8, block=64, context_ranks=8).plan, prints_concurrency=True)
    assert shared.pool_tokens(pool, 262_144) == pytest.approx(5_721_088, rel=2e-4)
    within = {shared.pool_tokens((46.80 + shift / 1000) * GIB, 262_144) for shift in range(-5, 6)}
    assert 5_721_088 in within  # 11,174 blocks of 512 tokens: the pool is printed with two digits
    assert 5_721_088 == 11_174 * 64 * 8


def test_context_ranks_share_out_what_keeps_everything_and_nothing_else() -> None:
    spread = replace(GPT_OSS, tensor=16)  # 8 KV heads, each on two cards
    whole, shared = spread.plan, replace(spread, context_ranks=2).plan
    windows = 521
    assert whole.blocks_of(131_072) - windows == 2 * (shared.blocks_of(131_072) - windows)
    assert shared.block_bytes == whole.block_bytes


def test_a_chunk_starts_again_and_needs_no_block_more() -> None:
    rows = CachedRows("chunks", 3, 1024.0, 8192, True, (1,)), CachedRows("full", 1, 1024.0, None, False, (1,))
    plan = plan_blocks(CachedLayers(rows, ()), block_tokens=16, step_tokens=2048)
    assert plan is not None
    assert plan.blocks_of(100_000) == 6250 + 3 * (8192 + 2048) // 16
    assert plan.blocks_of(5000) == 313 + 3 * 313


def test_counts_that_are_nearly_equal_are_padded_to_the_larger() -> None:
    def sizes(full: int, windowed: int) -> float:
        rows = CachedRows("a", full, 64.0, None, False, (1,)), CachedRows("b", windowed, 64.0, 128, False, (1,))
        plan = plan_blocks(CachedLayers(rows, ()), block_tokens=16, step_tokens=1)
        assert plan is not None
        return plan.block_bytes / (16 * 64)

    assert sizes(10, 14) == 14  # less than 1.5 ×
    assert sizes(10, 15) == 10
    assert sizes(18, 18) == 18


def test_what_keeps_nothing_has_no_plan_and_states_alone_have_one() -> None:
    assert plan_blocks(CachedLayers((), ()), block_tokens=16, step_tokens=1) is None
    states = CachedState("recurrence", 24, 1_000_000.0)
    plan = plan_blocks(CachedLayers((), (states,)), block_tokens=16, step_tokens=1, states=2)
    assert plan is not None
    assert (plan.block_bytes, plan.blocks_of(1), plan.blocks_of(10**8)) == (24_000_000, 2, 2)
    assert plan.smallest_block_tokens == 1


kept_rows = st.builds(
    CachedRows,
    label=st.sampled_from(["a", "b", "c"]),
    layers=st.integers(1, 60),
    bytes_per_token=st.sampled_from([1.0, 132.0, 512.0, 1152.0, 4096.0]),
    window=st.none() | st.integers(1, 9000),
    is_chunk=st.just(False),
    shape=st.tuples(st.integers(1, 9)),
)
kept_states = st.builds(CachedState, st.just("state"), st.integers(1, 60), st.sampled_from([64.0, 131_072.0, 3e6]))
kept = st.builds(
    CachedLayers, st.lists(kept_rows, min_size=1, max_size=3).map(tuple), st.lists(kept_states, max_size=2).map(tuple)
)


@repeatable
@given(kept, st.integers(1, 64), st.integers(1, 9000), st.integers(0, 300_000), st.integers(0, 4000))
def test_longer_sequences_never_need_fewer_blocks_and_blocks_hold_what_layers_keep(
    layers: CachedLayers, block: int, step: int, tokens: int, more: int
) -> None:
    plan = plan_blocks(layers, block_tokens=block, step_tokens=step)
    assert plan is not None
    assert plan.blocks_of(tokens) <= plan.blocks_of(tokens + more)
    needed = layers.state_bytes + sum(
        row.layers * row.bytes_per_token * min(tokens, row.window or tokens) for row in layers.rows
    )
    # A block of a kind holds its tokens of each of its layers, filled up; a narrow row may lose a part of a token.
    shortest = min((kind.block_tokens for kind in plan.kinds if not kind.is_state), default=1)
    assert plan.blocks_of(tokens) * plan.block_bytes * (1 + 1 / shortest) >= needed * (1 - 1e-9)


@repeatable
@given(kept, st.integers(1, 64), st.integers(0, 300_000))
def test_a_narrower_cache_and_fewer_layers_never_take_more(layers: CachedLayers, block: int, tokens: int) -> None:
    def bytes_of(some: CachedLayers) -> float:
        plan = plan_blocks(some, block_tokens=block, step_tokens=2048)
        return plan.blocks_of(tokens) * plan.block_bytes if plan else 0.0

    uniform = CachedLayers(tuple(replace(row, window=None) for row in layers.rows), ())
    halved = replace(uniform, rows=tuple(replace(r, bytes_per_token=r.bytes_per_token / 2) for r in uniform.rows))
    assert 2 * bytes_of(halved) == pytest.approx(bytes_of(uniform), rel=1e-12)
    assert bytes_of(CachedLayers(uniform.rows[:1], ())) <= bytes_of(uniform)
