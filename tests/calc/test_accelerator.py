"""Weights that a decode step reads: layer by layer and expert by expert, against the one formula."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.calc.accelerator import step_weight_bytes
from app.calc.dtypes import WeightFormat
from app.calc.model.architecture import Architecture, LayerGroup, SidePath
from app.calc.model.layers.dense import DenseFeedForward
from app.calc.model.layers.experts import Experts
from app.calc.model.layers.grouped_attention import GroupedAttention, QkNorm
from app.calc.model.layers.parts import WeightGroup
from app.calc.model.parameters import convention, count_parameters, text_weight_bytes
from tests.calc.strategies import array, at, repeatable
from tests.factories import llama_3_1_8b, shipped_catalog

QWEN3_30B = Architecture(
    name="Qwen3-30B-A3B",
    hidden_size=2048,
    vocab_size=151_936,
    layers=(LayerGroup(48, GroupedAttention(32, 4, 128, qk_norm=QkNorm.PER_HEAD), (Experts(128, 8, 768),)),),
)
GPT_OSS_120B = Architecture(
    name="gpt-oss-120b",
    hidden_size=2880,
    vocab_size=201_088,
    layers=(
        LayerGroup(
            36,
            GroupedAttention(64, 8, 64, qkv_bias=True, output_bias=True, sinks=True),
            (Experts(128, 4, 2880, bias=True, router_bias=True),),
        ),
    ),
)
MIXED = Architecture(
    name="Dense first, then experts",
    hidden_size=64,
    vocab_size=1000,
    layers=(
        LayerGroup(1, GroupedAttention(4, 2, 16), (DenseFeedForward(256),)),
        LayerGroup(3, GroupedAttention(4, 2, 16), (Experts(8, 2, 32, shared_size=64), DenseFeedForward(64))),
        LayerGroup(2, None, (Experts(6, 1, 48),), unquantized=frozenset({WeightGroup.ROUTED_EXPERTS})),
    ),
)
BF16, FP8 = convention(WeightFormat.BF16, QWEN3_30B), convention(WeightFormat.FP8, QWEN3_30B)
steps = st.integers(0, 10_000)


def test_the_worked_number_of_qwen3_30b() -> None:
    """One token leaves 120 of 128 experts of 3 × 2,048 × 768 unread in each of 48 layers."""
    assert text_weight_bytes(count_parameters(QWEN3_30B), BF16) == 30_532_122_624 * 2 == 61_064_245_248
    unread = 48 * 120 * 3 * 2048 * 768
    assert unread == 27_179_089_920
    assert step_weight_bytes(QWEN3_30B, BF16, 1) == (30_532_122_624 - unread) * 2 == 3_353_032_704 * 2
    assert round(3_353_032_704 * 2 / 1e9, 2) == 6.71


@pytest.mark.parametrize(("tokens", "touched"), [(1, 8.0), (2, 15.5), (64, 125.943), (512, 128.0)])
def test_a_step_reads_the_experts_that_its_tokens_touch(tokens: int, touched: float) -> None:
    beside = (30_532_122_624 - 28_991_029_248) * 2
    expected = beside + 48 * touched * 3 * 2048 * 768 * 2
    assert step_weight_bytes(QWEN3_30B, BF16, tokens) == pytest.approx(expected, rel=1e-4)


def test_a_step_without_tokens_reads_no_expert_and_a_huge_one_all() -> None:
    whole = text_weight_bytes(count_parameters(QWEN3_30B), BF16)
    assert step_weight_bytes(QWEN3_30B, BF16, 0) == whole - 28_991_029_248 * 2
    assert step_weight_bytes(QWEN3_30B, BF16, 10**6) == whole


def test_a_dense_model_is_read_whole() -> None:
    plan = convention(WeightFormat.INT4, llama_3_1_8b())
    whole = text_weight_bytes(count_parameters(llama_3_1_8b()), plan)
    for tokens in (1, 64, 10**6):
        assert step_weight_bytes(llama_3_1_8b(), plan, tokens) == whole


def test_experts_in_four_bits_have_their_biases_in_sixteen() -> None:
    plan = convention(WeightFormat.MXFP4, GPT_OSS_120B)
    whole = text_weight_bytes(count_parameters(GPT_OSS_120B), plan)
    assert whole == 65_248_815_744  # the published files, to the byte
    one_expert = 3 * 2880 * 2880 * 17 / 32 + 3 * 2880 * 2
    assert step_weight_bytes(GPT_OSS_120B, plan, 1) == pytest.approx(whole - 36 * 124 * one_expert)


def expert_by_expert(tokens: int, bf16_bytes: float, matrix_bytes: float) -> float:
    """The layers of MIXED one after the other; each expert is read if any of the tokens chose it."""
    attention = 64 * 64 + 2 * 64 * 32 + 64 * 64
    norms = 2 * 64
    total = (2 * 1000 * 64 + 64) * bf16_bytes  # embedding, head, last norm
    total += attention * matrix_bytes + norms * bf16_bytes + 3 * 64 * 256 * matrix_bytes
    for _layer in range(3):
        total += attention * matrix_bytes + norms * bf16_bytes + 64 * 8 * bf16_bytes
        total += 3 * 64 * 64 * matrix_bytes + 3 * 64 * 64 * matrix_bytes
        for _expert in range(8):
            total += (1 - (6 / 8) ** tokens) * 3 * 64 * 32 * matrix_bytes
    for _layer in range(2):
        total += norms * bf16_bytes + 64 * 6 * bf16_bytes
        for _expert in range(6):
            total += (1 - (5 / 6) ** tokens) * 3 * 64 * 48 * bf16_bytes  # left unquantized
    return total


@repeatable
@given(st.integers(0, 300), st.sampled_from([WeightFormat.BF16, WeightFormat.FP8, WeightFormat.INT4]))
def test_a_step_is_the_sum_over_layers_and_experts(tokens: int, weights: WeightFormat) -> None:
    plan = convention(weights, MIXED)
    expected = expert_by_expert(tokens, 2.0, weights.bytes_per_weight)
    assert step_weight_bytes(MIXED, plan, tokens) == pytest.approx(expected, rel=1e-12)


@repeatable
@given(st.sampled_from([QWEN3_30B, MIXED, GPT_OSS_120B]), st.sampled_from(WeightFormat), steps, steps)
def test_more_tokens_never_read_less_and_never_more_than_all(
    architecture: Architecture, weights: WeightFormat, tokens: int, more: int
) -> None:
    plan = convention(weights, architecture)
    whole = text_weight_bytes(count_parameters(architecture), plan)
    some = float(step_weight_bytes(architecture, plan, tokens))
    assert 0 < some <= whole
    assert float(step_weight_bytes(architecture, plan, tokens + more)) >= some * (1 - 1e-12)


@repeatable
@given(st.lists(steps.map(float), min_size=1, max_size=4))
def test_steps_of_an_array_are_those_of_its_elements(tokens: list[float]) -> None:
    table = step_weight_bytes(MIXED, FP8, array(tokens).reshape(1, -1))
    for i, n in enumerate(tokens):
        one = float(step_weight_bytes(MIXED, FP8, n))
        assert at(table, (1, len(tokens)), (0, i)) == pytest.approx(one, rel=1e-12)


def test_identity_experts_leave_more_unread() -> None:
    (group,) = QWEN3_30B.layers
    with_identity = replace(group, feed_forwards=(Experts(128, 8, 768, identity_experts=128),))
    half = replace(QWEN3_30B, layers=(with_identity,))
    router = 48 * 2048 * 128 * 2  # the router chooses among twice as many
    one = 48 * 3 * 2048 * 768 * 2
    assert step_weight_bytes(half, BF16, 1) == float(step_weight_bytes(QWEN3_30B, BF16, 1)) + router - 4 * one


@pytest.mark.parametrize("weights", [WeightFormat.BF16, WeightFormat.FP8, WeightFormat.INT4, WeightFormat.FP32])
@pytest.mark.parametrize("tokens", [0, 1, 64, 10**6])
def test_a_table_beside_the_embedding_is_left_out_and_the_embedding_is_not(weights: WeightFormat, tokens: int) -> None:
    """A step gathers rows of the table; the small matrices beside it are read whole."""
    matrices, table = SidePath("per-layer projection", 64 * 96), SidePath("per-layer table", 1000 * 96, gathered=96)
    without = replace(MIXED, side_paths=(matrices,))
    tables = replace(MIXED, side_paths=(matrices, table, table))
    plan = convention(weights, MIXED)
    assert step_weight_bytes(tables, plan, tokens) == pytest.approx(step_weight_bytes(without, plan, tokens), rel=1e-12)
    wide = 4 if weights is WeightFormat.FP32 else 2
    beside = float(step_weight_bytes(without, plan, tokens)) - float(step_weight_bytes(MIXED, plan, tokens))
    assert beside == pytest.approx(64 * 96 * wide, rel=1e-9)
    doubled = replace(MIXED, vocab_size=2000)
    grown = float(step_weight_bytes(doubled, plan, tokens)) - float(step_weight_bytes(MIXED, plan, tokens))
    assert grown == pytest.approx(2 * 1000 * 64 * wide, rel=1e-9)  # rows of embedding and head


@pytest.mark.parametrize(
    ("model", "rows", "layers"),
    [("gemma-3n-e2b", 262_144, 30), ("gemma-3n-e4b", 262_144, 35), ("gemma-4-e2b", 262_144, 35)],
)
def test_the_per_layer_tables_of_gemma_are_left_out(model: str, rows: int, layers: int) -> None:
    """256 elements for every layer and row of the vocabulary."""
    architecture = shipped_catalog().architectures[model]
    plan = convention(WeightFormat.BF16, architecture)
    whole = text_weight_bytes(count_parameters(architecture), plan)
    table = 0
    for _layer in range(layers):
        table += rows * 256
    assert step_weight_bytes(architecture, plan, 1) == whole - 2 * table
