"""Parameter groups and the bytes they take."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.calc.dtypes import Dtype, WeightFormat
from app.calc.model.architecture import Architecture, LayerGroup
from app.calc.model.layers.dense import DenseFeedForward
from app.calc.model.layers.grouped_attention import GroupedAttention, QkNorm
from app.calc.model.layers.parts import WeightGroup
from app.calc.model.parameters import GroupCount, ParameterCounts, convention, count_parameters, weight_bytes
from tests.calc.strategies import architectures, catalog_architectures, repeatable
from tests.factories import interleaved, llama_3_1_8b, shipped_catalog

models = architectures() | catalog_architectures()


def totals(counts: ParameterCounts) -> dict[str, int]:
    return {group.value: count.total for group, count in counts.groups.items() if count.total}


def test_the_groups_of_llama_3_1_8b() -> None:
    counts = count_parameters(llama_3_1_8b())
    assert totals(counts) == {
        "embedding": 525_336_576,
        "attention": 1_342_177_280,
        "feed_forward": 5_637_144_576,
        "norms": 266_240,
        "head": 525_336_576,
    }
    assert counts.active == counts.text == counts.total == 8_030_261_248
    assert counts.read_per_token == counts.active_without_embedding == 8_030_261_248 - 525_336_576
    assert counts.active_without_embeddings == 8_030_261_248 - 2 * 525_336_576


def test_every_kind_of_parameter_by_hand() -> None:
    architecture = Architecture(
        "Tiny",
        hidden_size=4,
        vocab_size=10,
        layers=(
            LayerGroup(
                2,
                GroupedAttention(2, 1, 3, qkv_bias=True, output_bias=True, qk_norm=QkNorm.FULL_WIDTH),
                (DenseFeedForward(5, gated=False, bias=True),),
                norms=3,
            ),
            LayerGroup(
                1, GroupedAttention(2, 2, 3, qk_norm=QkNorm.PER_HEAD), (DenseFeedForward(7, bias=True),), norms=1
            ),
        ),
        learned_positions=6,
        norm_bias=True,
        head_bias=True,
        vision_params=1000,
    )
    counts = count_parameters(architecture)
    assert counts.group(WeightGroup.EMBEDDING) == GroupCount(matrices=10 * 4 + 6 * 4)
    attention = 2 * (4 * (6 + 3 + 3) + 6 * 4) + (4 * (6 + 6 + 6) + 6 * 4)
    assert counts.group(WeightGroup.ATTENTION) == GroupCount(attention, vectors=2 * (12 + 4 + 6 + 3) + 2 * 3)
    assert counts.group(WeightGroup.FEED_FORWARD).matrices == 2 * (2 * 4 * 5) + 3 * 4 * 7
    assert counts.group(WeightGroup.FEED_FORWARD).vectors == 2 * (5 + 4) + (7 + 7 + 4)
    assert counts.group(WeightGroup.NORMS) == GroupCount(vectors=2 * 3 * 8 + 8 + 8)
    assert counts.group(WeightGroup.HEAD) == GroupCount(10 * 4, vectors=10)
    assert counts.vision == 1000


def test_what_layers_leave_unquantized_stays_wide() -> None:
    (group,) = llama_3_1_8b().layers
    first = replace(group, count=1, unquantized=frozenset({WeightGroup.FEED_FORWARD}))
    mixed = replace(llama_3_1_8b(), layers=(first, replace(group, count=31)))
    kept = 3 * 4096 * 14_336
    plan = convention(WeightFormat.FP8, mixed)
    assert count_parameters(mixed).total == 8_030_261_248
    assert count_parameters(mixed).group(WeightGroup.FEED_FORWARD) == GroupCount(31 * kept, kept)
    more = weight_bytes(count_parameters(mixed), plan) - weight_bytes(count_parameters(llama_3_1_8b()), plan)
    assert more == pytest.approx(kept * (2 - (1 + 4 / 16_384)))


def test_multi_token_prediction_is_counted_only_when_it_is_loaded() -> None:
    record = shipped_catalog().models["deepseek-v3"]
    without, loaded = count_parameters(record.architecture), count_parameters(record.architecture_with_mtp)
    assert loaded.text == without.text == 671_026_419_200
    assert loaded.total - without.total == loaded.mtp_params == 11_610_068_224
    assert without.mtp_params == 0


def test_a_tied_head_is_stored_once_and_only_its_bias_is_added() -> None:
    untied = count_parameters(llama_3_1_8b())
    tied = count_parameters(replace(llama_3_1_8b(), tied_embeddings=True))
    assert tied.group(WeightGroup.HEAD).total == 0
    assert untied.total - tied.total == 128_256 * 4096
    assert tied.read_per_token == untied.read_per_token
    biased = count_parameters(replace(llama_3_1_8b(), tied_embeddings=True, head_bias=True))
    assert biased.group(WeightGroup.HEAD).total == 128_256


@repeatable
@given(models)
def test_the_groups_sum_to_the_total(architecture: Architecture) -> None:
    counts = count_parameters(architecture)
    assert counts.text == sum(totals(counts).values())
    assert counts.total == counts.text + counts.vision
    assert 0 < counts.active_without_embeddings <= counts.read_per_token <= counts.active <= counts.text
    assert min(min(c.matrices, c.unquantized, c.vectors) for c in counts.groups.values()) >= 0


@repeatable
@given(models, st.sampled_from(WeightFormat))
def test_the_bytes_are_each_group_in_its_format_and_vectors_wide(
    architecture: Architecture, weights: WeightFormat
) -> None:
    counts, plan = count_parameters(architecture), convention(weights, architecture)
    wide = {WeightFormat.FP32: 4}.get(weights, 2)
    narrow = dict(plan.narrow)
    expected = float(counts.vision * wide)
    for group, count in counts.groups.items():
        each = narrow[group].bits_per_weight / 8 if group in narrow else wide
        expected += count.matrices * each + (count.unquantized + count.vectors) * wide
    assert weight_bytes(counts, plan) == pytest.approx(expected, rel=1e-12)
    assert weight_bytes(counts, plan) <= weight_bytes(counts, convention(WeightFormat.FP32, architecture))


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
    assert GroupedAttention(heads, kv_heads, 64).kind == kind


def test_a_window_is_told_beside_the_kind() -> None:
    assert llama_3_1_8b().attention_kind == "GQA"
    mixed = interleaved(windowed_layers=5, full_layers=1)
    assert mixed.attention_kind == "GQA, window of 512 in 5 of 6 layers; GQA in 1 of 6 layers"
    assert interleaved(windowed_layers=5).n_layers == 6
