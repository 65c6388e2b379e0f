"""Grouped attention: layers of real models by hand, pairs counted one by one, heads divided among GPUs."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.calc.model.layers.grouped_attention import GroupedAttention, KvProjection, OutputGate, QkNorm
from app.calc.model.layers.parts import OperatorName, Run
from app.calc.model.layers.span import FULL, Chunk, Window
from app.calc.model.split import SplitError
from tests.calc.strategies import repeatable

LLAMA_3_1_8B = GroupedAttention(32, 8, 128)
GPT_OSS = GroupedAttention(64, 8, 64, window=128, qkv_bias=True, output_bias=True, sinks=True)
QWEN3_NEXT = GroupedAttention(16, 2, 256, qk_norm=QkNorm.PER_HEAD, output_gate=OutputGate.PER_ELEMENT)
STEP_3 = GroupedAttention(64, 1, 256, query_rank=2048)
STEP_3_5 = GroupedAttention(96, 8, 128, window=512, qk_norm=QkNorm.PER_HEAD, output_gate=OutputGate.PER_HEAD)
GEMMA_4_31B_FULL = GroupedAttention(32, 4, 512, qk_norm=QkNorm.PER_HEAD, kv_projection=KvProjection.SHARED)
HUNYUAN_LARGE = GroupedAttention(80, 8, 80, qk_norm=QkNorm.PER_HEAD)
HUNYUAN_LARGE_SHARING = GroupedAttention(
    80, 8, 80, qk_norm=QkNorm.PER_HEAD, kv_projection=KvProjection.NONE, shares_cache=True
)
MIMO_V2 = GroupedAttention(64, 8, 192, v_head_dim=128, window=128, sinks=True)
LLAMA_4 = GroupedAttention(40, 8, 128, chunk=8192)


def stored(attention: GroupedAttention, hidden_size: int) -> int:
    return sum(weights.stored for weights in attention.weights(hidden_size))


@pytest.mark.parametrize(
    ("attention", "hidden_size", "by_hand", "total"),
    [
        (LLAMA_3_1_8B, 4096, 4096 * 4096 + 2 * 4096 * 1024 + 4096 * 4096, 41_943_040),
        (GroupedAttention(128, 8, 128), 16_384, 2 * 16_384 * 16_384 + 2 * 16_384 * 1024, 570_425_344),
        # Qwen2.5: biases on query, key and value, none on the output.
        (GroupedAttention(28, 4, 128, qkv_bias=True), 3584, 2 * 3584 * 3584 + 2 * 3584 * 512 + 3584 + 1024, 29_364_736),
        # Qwen3-30B-A3B: 32 heads of 128 are twice the hidden size; a gain for each place in a head, of query and key.
        (
            GroupedAttention(32, 4, 128, qk_norm=QkNorm.PER_HEAD),
            2048,
            2048 * 4096 + 2 * 2048 * 512 + 4096 * 2048 + 2 * 128,
            905_981_952 // 48,
        ),
        # MiniMax-M2: the norm has a gain for every element of the queries and keys.
        (
            GroupedAttention(48, 8, 128, qk_norm=QkNorm.FULL_WIDTH),
            3072,
            3072 * 6144 + 2 * 3072 * 1024 + 6144 * 3072 + 6144 + 1024,
            2_730_936_320 // 62,
        ),
        # gpt-oss: biases on all four, one sink a head.
        (
            GPT_OSS,
            2880,
            2880 * 4096 + 2 * 2880 * 512 + (4096 + 2 * 512) + 64 + 4096 * 2880 + 2880,
            955_805_184 // 36,
        ),
        # Qwen3-Next: the query projection is doubled to carry a gate for each element.
        (QWEN3_NEXT, 2048, 2 * 2048 * 4096 + 2 * 2048 * 512 + 4096 * 2048 + 2 * 256, 327_161_856 // 12),
        # Step-3: the query goes through 2,048, with a norm there; one KV head of 256.
        (
            STEP_3,
            7168,
            7168 * 2048 + 2048 + 2048 * 64 * 256 + 2 * 7168 * 256 + 64 * 256 * 7168,
            10_330_171_392 // 61,
        ),
        # Step-3.5: one gate a head; its windowed layers have 96 query heads.
        (STEP_3_5, 4096, 4096 * 12_288 + 2 * 4096 * 1024 + 12_288 * 4096 + 2 * 128 + 4096 * 96, 109_445_376),
        # Gemma 4: full layers project keys alone, which serve as values too.
        (GEMMA_4_31B_FULL, 5376, 5376 * 16_384 + 5376 * 2048 + 16_384 * 5376 + 2 * 512, 187_171_840),
        (HUNYUAN_LARGE, 6400, 2 * 6400 * 6400 + 2 * 6400 * 640 + 2 * 80, 90_112_160),
        (HUNYUAN_LARGE_SHARING, 6400, 2 * 6400 * 6400 + 2 * 80, 81_920_160),
        # MiMo-V2: keys of 192, values of 128, and sinks in the windowed layers.
        (MIMO_V2, 4096, 4096 * 64 * 192 + 4096 * 8 * (192 + 128) + 64 * 128 * 4096 + 64, 94_371_904),
        (LLAMA_4, 5120, 2 * 5120 * 5120 + 2 * 5120 * 1024, 3_019_898_880 // 48),
    ],
    ids=lambda value: "" if isinstance(value, int) else None,
)
def test_a_layer_has_the_parameters_counted_by_hand(
    attention: GroupedAttention, hidden_size: int, by_hand: int, total: int
) -> None:
    assert stored(attention, hidden_size) == by_hand == total


def test_layers_of_two_kinds_sum_to_the_published_attention() -> None:
    assert (
        10 * stored(GEMMA_4_31B_FULL, 5376)
        + 50 * stored(GroupedAttention(32, 16, 256, window=1024, qk_norm=QkNorm.PER_HEAD), 5376)
        == 8_477_772_800
    )
    assert 32 * stored(HUNYUAN_LARGE, 6400) + 32 * stored(HUNYUAN_LARGE_SHARING, 6400) == 5_505_034_240
    full = GroupedAttention(64, 8, 128, qk_norm=QkNorm.PER_HEAD, output_gate=OutputGate.PER_HEAD)
    assert 12 * stored(full, 4096) + 33 * stored(STEP_3_5, 4096) == 4_520_815_872
    mimo_full = GroupedAttention(64, 4, 192, v_head_dim=128)
    assert 9 * stored(mimo_full, 4096) + 39 * stored(MIMO_V2, 4096) == 4_482_664_896


def test_a_norm_of_queries_alone_has_one_gain_a_place_of_a_head() -> None:
    """Gemma's layers that read another's cache have no keys to norm."""
    plain = GroupedAttention(8, 2, 256, kv_projection=KvProjection.NONE, shares_cache=True)
    normed = GroupedAttention(
        8, 2, 256, kv_projection=KvProjection.NONE, shares_cache=True, qk_norm=QkNorm.QUERY_PER_HEAD
    )
    assert stored(normed, 2560) - stored(plain, 2560) == 256
    (norm,) = [weights for weights in normed.weights(2560) if weights.operator is OperatorName.NORMS]
    assert norm.flops == 4 * 8 * 256


def test_norms_cost_four_flops_an_element_of_all_heads() -> None:
    for norm, attention in ((QkNorm.PER_HEAD, 2 * 128), (QkNorm.FULL_WIDTH, 40 * 128)):
        kind = GroupedAttention(32, 8, 128, qk_norm=norm)
        (weights,) = [w for w in kind.weights(4096) if w.operator is OperatorName.NORMS]
        assert (weights.params, weights.flops) == (attention, 4 * (32 + 8) * 128)


@pytest.mark.parametrize(("v_head_dim", "values"), [(None, 128), (64, 64)])
@pytest.mark.parametrize("query_rank", [None, 96])
def test_a_gate_for_each_element_is_as_wide_as_the_output(
    v_head_dim: int | None, values: int, query_rank: int | None
) -> None:
    """A second query of the hidden state where values are as wide as queries; with a bias of its own."""
    plain = GroupedAttention(8, 2, 128, v_head_dim, query_rank=query_rank)
    biased = replace(plain, qkv_bias=True)
    gated = [replace(kind, output_gate=OutputGate.PER_ELEMENT) for kind in (plain, biased)]
    gate = bias = 0
    for _head in range(8):
        for _element in range(values):
            gate += 1024
            bias += 1
    assert stored(gated[0], 1024) - stored(plain, 1024) == gate
    assert stored(gated[1], 1024) - stored(gated[0], 1024) == 8 * 128 + bias + 2 * (128 + values)
    assert stored(biased, 1024) - stored(plain, 1024) == 8 * 128 + 2 * (128 + values)


@pytest.mark.parametrize(
    ("attention", "layers", "context", "per_token_bf16"),
    [
        (LLAMA_3_1_8B, 32, 8192, 131_072),  # 32 layers × 2 × 8 × 128 × 2 B
        (STEP_3, 61, 8192, 62_464),  # 61 × 2 × 256 × 2 B
        (HUNYUAN_LARGE, 32, 8192, 81_920),  # of 64 layers 32 store: 32 × 2 × 640 × 2 B
        (QWEN3_NEXT, 12, 8192, 24_576),  # 12 × 2 × 512 × 2 B, beside 77,266,944 B of states
        (GPT_OSS, 18, 1024, 4_608),  # 18 × 1,024 × 2 B × 128 of 1,024 tokens
        (GPT_OSS, 18, 131_072, 36),
        (MIMO_V2, 39, 1024, 39 * 2560 * 2 / 8),  # 8 × (192 + 128) a token, 128 of 1,024 tokens
        (LLAMA_4, 36, 131_072, 36 * 2048 * 2 / 16),  # a chunk of 8,192 in 131,072
        (GEMMA_4_31B_FULL, 10, 8192, 81_920),  # values are stored too: 10 × 2 × 2,048 × 2 B
    ],
)
def test_the_cache_has_the_bytes_of_the_published_shape(
    attention: GroupedAttention, layers: int, context: int, per_token_bf16: float
) -> None:
    (row,) = attention.cache()
    assert layers * row.width_per_token * float(row.span.kept(context)) * 2 / context == per_token_bf16


def test_a_layer_that_shares_a_cache_reads_it_and_stores_nothing() -> None:
    assert HUNYUAN_LARGE_SHARING.cache() == () == HUNYUAN_LARGE_SHARING.state()
    run = Run(1.0, 1.0, 999.0, is_decode=True)
    assert HUNYUAN_LARGE_SHARING.work(run) == HUNYUAN_LARGE.work(run)


attentions = st.builds(
    GroupedAttention,
    n_heads=st.just(6),
    n_kv_heads=st.sampled_from([1, 2, 6]),
    head_dim=st.sampled_from([1, 8]),
    v_head_dim=st.sampled_from([None, 3]),
    window=st.none() | st.integers(1, 30),
    chunk=st.none() | st.integers(1, 30),
)


def one_by_one(attention: GroupedAttention, new: int, cached: int) -> tuple[int, int]:
    """FLOP and elements read: every query head of every new token meets every position before it that it sees."""
    flops, rows = 0, set()
    value_dim = attention.v_head_dim or attention.head_dim
    for position in range(cached, cached + new):
        for key in range(position + 1):
            if attention.window is not None:
                visible = position - key < attention.window
            else:
                visible = attention.chunk is None or position // attention.chunk == key // attention.chunk
            if visible:
                rows.add(key)
                for _ in range(attention.n_heads):
                    flops += 2 * attention.head_dim + 2 * value_dim  # a score, and a value weighted by it
    return flops, len(rows) * attention.n_kv_heads * (attention.head_dim + value_dim)


@repeatable
@given(attentions, st.integers(1, 50), st.integers(0, 50))
def test_a_prefill_computes_and_reads_what_is_counted_one_by_one(
    attention: GroupedAttention, new: int, cached: int
) -> None:
    (work,) = attention.work(Run(1.0, float(new), float(cached), is_decode=False))
    assert (work.flops, work.cache_elements) == one_by_one(attention, new, cached)
    assert (work.operator, work.state_bytes) == (OperatorName.ATTENTION, 0)


@repeatable
@given(attentions, st.integers(1, 20), st.integers(1, 100))
def test_a_decode_step_computes_and_reads_what_is_counted_one_by_one(
    attention: GroupedAttention, sequences: int, context: int
) -> None:
    (work,) = attention.work(Run(float(sequences), 1.0, context - 1.0, is_decode=True))
    flops, read = one_by_one(attention, 1, context - 1)
    assert (work.flops, work.cache_elements) == (sequences * flops, sequences * read)


def test_attention_of_a_known_prefill() -> None:
    (work,) = LLAMA_3_1_8B.work(Run(1.0, 1000.0, 0.0, is_decode=False))
    assert 32 * float(work.flops) == 32 * 4 * 4096 * 500_500 == 262_406_144_000
    assert 32 * float(work.cache_elements) * 2 == 131_072 * 1000


@pytest.mark.parametrize("ranks", [1, 2, 4, 8])
def test_heads_are_divided_and_their_parts_sum_to_the_whole(ranks: int) -> None:
    part, run = LLAMA_3_1_8B.split(ranks), Run(2.0, 1.0, 4095.0, is_decode=True)
    assert (part.n_heads, part.n_kv_heads) == (32 // ranks, 8 // ranks)
    assert ranks * stored(part, 4096) == stored(LLAMA_3_1_8B, 4096)
    (of_part,), (of_whole,) = part.work(run), LLAMA_3_1_8B.work(run)
    assert ranks * float(of_part.flops) == of_whole.flops
    assert ranks * float(of_part.cache_elements) == of_whole.cache_elements


@pytest.mark.parametrize("ranks", [16, 32])
def test_kv_heads_fewer_than_the_gpus_are_copied(ranks: int) -> None:
    """Each GPU then holds one whole KV head: the queries are divided, the cache no further."""
    part = LLAMA_3_1_8B.split(ranks)
    assert (part.n_heads, part.n_kv_heads) == (32 // ranks, 1)
    assert ranks * stored(part, 4096) == 2 * 4096 * 4096 + ranks * 2 * 4096 * 128
    assert part.cache()[0].width == 2 * 128


def test_norms_biases_and_gates_follow_their_heads() -> None:
    """Output bias and the gains of a head are on every GPU; biases, sinks and gates are of the heads there."""
    part = GPT_OSS.split(8)
    assert stored(part, 2880) == 2880 * 512 + 2 * 2880 * 64 + (512 + 2 * 64) + 8 + 512 * 2880 + 2880
    gated = STEP_3_5.split(8)
    assert stored(gated, 4096) == 4096 * 1536 + 2 * 4096 * 128 + 1536 * 4096 + 2 * 128 + 4096 * 12
    factorised = STEP_3.split(8)  # the down projection to 2,048 belongs to no head
    assert stored(factorised, 7168) == 7168 * 2048 + 2048 + 2048 * 8 * 256 + 2 * 7168 * 256 + 8 * 256 * 7168


@pytest.mark.parametrize(
    ("attention", "ranks", "message"),
    [
        (GroupedAttention(71, 1, 64), 8, r"^71 attention heads do not divide among 8 GPUs\.$"),
        (GroupedAttention(24, 6, 64), 4, r"^6 KV heads do not divide among 4 GPUs\.$"),
        (GroupedAttention(24, 3, 64), 8, r"^3 KV heads cannot be copied evenly to 8 GPUs\.$"),
        (LLAMA_3_1_8B, 64, r"^32 attention heads do not divide among 64 GPUs\.$"),
    ],
)
def test_heads_that_do_not_divide_are_refused(attention: GroupedAttention, ranks: int, message: str) -> None:
    with pytest.raises(SplitError, match=message):
        attention.split(ranks)


def test_a_layer_is_called_by_its_grouping_and_what_it_does_not_see_or_store() -> None:
    assert [GroupedAttention(8, n, 64).label for n in (8, 2, 1)] == ["MHA", "GQA", "MQA"]
    assert GroupedAttention(1, 1, 64).kind == "MHA"
    assert GPT_OSS.label == "GQA, window of 128"
    assert LLAMA_4.label == "GQA, chunks of 8,192"
    assert HUNYUAN_LARGE_SHARING.label == "GQA, shared cache"


def test_a_layer_sees_everything_a_window_or_a_chunk() -> None:
    assert (LLAMA_3_1_8B.span, GPT_OSS.span, LLAMA_4.span) == (FULL, Window(128), Chunk(8192))
