"""Plans of weights: what a format's name means, group by group, and what a mixed checkpoint is called."""

from dataclasses import replace

import pytest

from app.calc.dtypes import Dtype, WeightFormat, WeightLayout
from app.calc.model.architecture import Architecture
from app.calc.model.layers.experts import Experts
from app.calc.model.layers.parts import WeightGroup
from app.calc.model.parameters import (
    LAYER_MATRICES,
    NATIVE,
    WeightPlan,
    convention,
    count_parameters,
    named,
    weight_bytes,
)
from tests.factories import llama_3_1_8b

DENSE = llama_3_1_8b()
(_GROUP,) = DENSE.layers
SPARSE = replace(DENSE, layers=(replace(_GROUP, feed_forwards=(Experts(8, 2, 4096),)),))
BF16, FP8, MXFP4 = (WeightFormat(name).layout for name in ("bf16", "fp8", "mxfp4"))
WIDE = [WeightFormat.FP32, WeightFormat.BF16, WeightFormat.FP16]
NARROW = [weights for weights in WeightFormat if weights not in WIDE]
models = pytest.mark.parametrize("architecture", [DENSE, SPARSE], ids=["dense", "experts"])


@models
@pytest.mark.parametrize("weights", WIDE)
def test_a_wide_format_is_the_type_of_everything(weights: WeightFormat, architecture: Architecture) -> None:
    plan = convention(weights, architecture)
    assert (plan.label, plan.narrow) == (weights, ())
    assert {plan.layout(group) for group in WeightGroup} == {weights.layout}
    assert plan.narrowest == weights.layout


@models
@pytest.mark.parametrize("weights", NARROW)
def test_a_narrow_format_is_that_of_the_layers_matrices(weights: WeightFormat, architecture: Architecture) -> None:
    plan = convention(weights, architecture)
    alone = weights is WeightFormat.MXFP4 and architecture is SPARSE
    groups = {WeightGroup.ROUTED_EXPERTS} if alone else set(LAYER_MATRICES)
    for group in WeightGroup:
        assert plan.layout(group) == (weights.layout if group in groups else BF16)
    assert (plan.label, plan.wide, plan.narrowest) == (weights, BF16, weights.layout)


def test_embedding_head_router_norms_and_side_paths_are_never_quantized() -> None:
    assert set(WeightGroup) - set(LAYER_MATRICES) == {
        WeightGroup.EMBEDDING,
        WeightGroup.HEAD,
        WeightGroup.ROUTER,
        WeightGroup.NORMS,
        WeightGroup.SIDE_PATHS,
    }


def test_the_narrowest_layout_has_the_fewest_bits() -> None:
    plan = WeightPlan("mixed", BF16, ((WeightGroup.ATTENTION, FP8), (WeightGroup.ROUTED_EXPERTS, MXFP4)))
    assert plan.narrowest == MXFP4
    assert plan.layout(WeightGroup.ATTENTION) == FP8
    assert plan.layout(WeightGroup.FEED_FORWARD) == BF16


def test_a_plan_is_priced_group_by_group() -> None:
    """Llama-3.1-8B in FP8: 6,979,321,856 weights of the layers with their scales, the rest 2 bytes each."""
    counts = count_parameters(DENSE)
    matrices = 32 * (41_943_040 + 176_160_768)
    assert matrices == 6_979_321_856
    scaled = matrices * (1 + 4 / 128**2)
    assert weight_bytes(counts, convention(WeightFormat.FP8, DENSE)) == scaled + (8_030_261_248 - matrices) * 2
    attention_alone = WeightPlan("attention", BF16, ((WeightGroup.ATTENTION, FP8),))
    saved = 32 * 41_943_040 * (1 - 4 / 128**2)
    assert weight_bytes(counts, attention_alone) == 8_030_261_248 * 2 - saved


@models
@pytest.mark.parametrize("weights", WeightFormat)
def test_a_plan_that_is_a_format_s_own_gets_its_name(weights: WeightFormat, architecture: Architecture) -> None:
    usual = convention(weights, architecture)
    shuffled = WeightPlan("as read from a checkpoint", usual.wide, tuple(reversed(usual.narrow)))
    assert named(shuffled, architecture) == usual
    assert named(usual, architecture) == usual


@pytest.mark.parametrize(
    "plan",
    [
        WeightPlan("some", BF16, ((WeightGroup.ATTENTION, FP8),)),
        WeightPlan("some", BF16, ((WeightGroup.ATTENTION, FP8), (WeightGroup.ROUTED_EXPERTS, MXFP4))),
        WeightPlan("some", WeightFormat.FP32.layout, tuple((group, FP8) for group in LAYER_MATRICES)),
        WeightPlan("some", BF16, tuple((group, WeightLayout(Dtype.FP8)) for group in LAYER_MATRICES)),
    ],
    ids=["one group", "two formats", "wider vectors", "no scales"],
)
def test_any_other_plan_is_native_and_otherwise_unchanged(plan: WeightPlan) -> None:
    assert named(plan, SPARSE) == replace(plan, label=NATIVE)


def test_mxfp4_of_the_experts_alone_is_its_own_name_only_where_there_are_experts() -> None:
    experts_alone = WeightPlan("checkpoint", BF16, ((WeightGroup.ROUTED_EXPERTS, MXFP4),))
    everything = WeightPlan("checkpoint", BF16, tuple((group, MXFP4) for group in LAYER_MATRICES))
    assert named(experts_alone, SPARSE).label == "mxfp4"
    assert named(experts_alone, DENSE).label == NATIVE
    assert named(everything, DENSE).label == "mxfp4"
    assert named(everything, SPARSE).label == NATIVE
