"""Parameter groups and the bytes they take."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.calc.architecture import Architecture, Attention, FeedForward, LayerGroup, QkNorm
from app.calc.dtypes import Dtype, WeightFormat
from app.calc.parameters import ParameterCounts, count_parameters, unquantized_bytes_per_weight, weight_bytes
from tests.calc.strategies import architectures, catalog_architectures, repeatable
from tests.factories import interleaved, llama_3_1_8b

models = architectures() | catalog_architectures()


def test_the_groups_of_llama_3_1_8b() -> None:
    assert count_parameters(llama_3_1_8b()) == ParameterCounts(
        embedding=525_336_576,
        attention=1_342_177_280,
        attention_vectors=0,
        feed_forward=5_637_144_576,
        feed_forward_vectors=0,
        norms=266_240,
        head=525_336_576,
        vision=0,
    )


def test_every_kind_of_parameter_by_hand() -> None:
    architecture = Architecture(
        "Tiny",
        hidden_size=4,
        vocab_size=10,
        layers=(
            LayerGroup(
                2,
                Attention(2, 1, 3, qkv_bias=True, output_bias=True, qk_norm=QkNorm.FULL_WIDTH),
                FeedForward(5, gated=False, bias=True),
                norms=3,
            ),
            LayerGroup(1, Attention(2, 2, 3, qk_norm=QkNorm.PER_HEAD), FeedForward(7, bias=True), norms=1),
        ),
        learned_positions=6,
        norm_bias=True,
        head_bias=True,
        vision_params=1000,
    )
    counts = count_parameters(architecture)
    assert counts.embedding == 10 * 4 + 6 * 4
    assert counts.attention == 2 * (4 * (6 + 3 + 3) + 6 * 4) + (4 * (6 + 6 + 6) + 6 * 4)
    assert counts.attention_vectors == 2 * (12 + 4)
    assert counts.feed_forward == 2 * (2 * 4 * 5) + 3 * 4 * 7
    assert counts.feed_forward_vectors == 2 * (5 + 4) + (7 + 7 + 4)
    assert counts.norms == 2 * (3 * 8 + 6 + 3) + (8 + 2 * 3) + 8
    assert counts.head == 10 * 4 + 10
    assert counts.vision == 1000


def test_a_tied_head_is_stored_once_and_only_its_bias_is_added() -> None:
    untied = count_parameters(llama_3_1_8b())
    tied = count_parameters(replace(llama_3_1_8b(), tied_embeddings=True))
    assert tied.head == 0
    assert untied.total - tied.total == 128_256 * 4096
    assert count_parameters(replace(llama_3_1_8b(), tied_embeddings=True, head_bias=True)).head == 128_256


@repeatable
@given(models)
def test_the_groups_sum_to_the_total(architecture: Architecture) -> None:
    counts = count_parameters(architecture)
    parts = (counts.embedding, counts.attention, counts.attention_vectors, counts.feed_forward)
    rest = (counts.feed_forward_vectors, counts.norms, counts.head, counts.vision)
    assert counts.total == sum(parts) + sum(rest)
    assert counts.total == counts.matrices + counts.unquantized == counts.text + counts.vision
    assert min(*parts, *rest) >= 0


@repeatable
@given(models, st.sampled_from(WeightFormat))
def test_the_bytes_are_the_matrices_in_their_format_and_the_rest_in_16_bits(
    architecture: Architecture, weights: WeightFormat
) -> None:
    counts = count_parameters(architecture)
    rest = 4 if weights is WeightFormat.FP32 else 2
    expected = counts.matrices * weights.bytes_per_weight + counts.unquantized * rest
    assert weight_bytes(counts, weights) == expected
    assert unquantized_bytes_per_weight(weights) == rest
    assert weight_bytes(counts, weights) <= weight_bytes(counts, WeightFormat.FP32)


@pytest.mark.parametrize(
    ("weights", "bits"),
    [
        ("fp32", 32),
        ("bf16", 16),
        ("fp16", 16),
        ("fp8", 8 + 32 / 16_384),
        ("int8", 8.125),
        ("int4", 4.15625),
        ("mxfp4", 4.25),  # 17/32 of a byte
        ("nvfp4", 4.5),
    ],
)
def test_bits_of_a_weight_with_its_scales(weights: str, bits: float) -> None:
    assert WeightFormat(weights).layout.bits_per_weight == bits
    assert WeightFormat(weights).bytes_per_weight == bits / 8
    assert WeightFormat(weights).is_quantized is (bits < 16)


@pytest.mark.parametrize(
    ("dtype", "width"),
    [("fp32", 4), ("tf32", 4), ("bf16", 2), ("fp16", 2), ("fp8", 1), ("int8", 1), ("fp4", 0.5), ("int4", 0.5)],
)
def test_bytes_of_an_element(dtype: str, width: float) -> None:
    assert Dtype(dtype).bytes == width
    assert Dtype(dtype).bits == 8 * width


def test_every_format_and_type_is_known() -> None:
    assert len(WeightFormat) == 8 == len(Dtype)
    assert {weights.layout.element for weights in WeightFormat} <= set(Dtype)


@pytest.mark.parametrize(
    ("heads", "kv_heads", "kind"), [(32, 32, "MHA"), (32, 8, "GQA"), (71, 1, "MQA"), (1, 1, "MHA")]
)
def test_the_grouping_has_its_name(heads: int, kv_heads: int, kind: str) -> None:
    assert Attention(heads, kv_heads, 64).kind == kind


def test_a_window_is_told_beside_the_kind() -> None:
    assert llama_3_1_8b().attention_kind == "GQA"
    assert interleaved(windowed_layers=5, full_layers=1).attention_kind == "GQA, sliding window in 5 of 6 layers"
    assert interleaved(windowed_layers=5).n_layers == 6
