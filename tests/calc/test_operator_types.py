"""The type whose peak an operator is held against: that of its weights, and for scores and values one of their own."""

from collections.abc import Iterable

import pytest

from app.calc.deployment import Deployment, Precision
from app.calc.dtypes import Dtype, WeightFormat
from app.calc.model.layers.parts import OperatorName
from app.calc.model.parameters import NATIVE
from app.calc.time.operators import Operator, decode_operators, prefill_operators
from tests.factories import deployment, precision, shipped_catalog

CATALOG = shipped_catalog()
BF16, FP8, FP4 = Dtype.BF16, Dtype.FP8, Dtype.FP4


def deployed(model: str, card: str, precision: Precision) -> Deployment:
    return deployment(architecture=CATALOG.architectures[model], accelerator=CATALOG.devices[card], precision=precision)


def named(model: str, card: str, weights: WeightFormat, kv_cache: Dtype, compute: Dtype) -> Deployment:
    return deployed(model, card, precision(weights, kv_cache, compute, CATALOG.architectures[model]))


def passes(asked: Deployment) -> tuple[list[Operator], ...]:
    """A decode step, a prompt, and one new token, each far beyond any selection; and a prompt below it."""
    return (
        decode_operators(asked, 8, 100_000),
        prefill_operators(asked, 100_000),
        prefill_operators(asked, 1, 100_000),
        prefill_operators(asked, 1000, 50_000),
        prefill_operators(asked, 100),
    )


def types(operators: Iterable[Operator], name: OperatorName, *, working: bool = True) -> set[Dtype]:
    """Of the operators of a name, those that compute anything unless all are asked for."""
    return {op.dtype for op in operators if op.name is name and (op.flops or not working)}


def test_fp8_deepseek_v3_2_scores_its_index_and_expands_latents_in_fp8_and_attends_in_bf16() -> None:
    asked = named("deepseek-v3.2", "h200-sxm", WeightFormat.FP8, BF16, FP8)
    for operators in passes(asked):
        assert types(operators, OperatorName.INDEXER, working=False) == {FP8}
        assert types(operators, OperatorName.LATENT_UP, working=False) == {FP8}
        assert types(operators, OperatorName.ATTENTION, working=False) == {BF16}
        assert types(operators, OperatorName.QKV) == types(operators, OperatorName.EXPERTS) == {FP8}
        assert types(operators, OperatorName.ROUTER) == types(operators, OperatorName.HEAD) == {BF16}


def test_a_narrow_cache_makes_the_scores_narrow_too_but_nothing_that_stays_wide() -> None:
    asked = named("deepseek-v3.2", "h200-sxm", WeightFormat.FP8, FP8, FP8)
    for operators in passes(asked):
        assert (
            types(operators, OperatorName.ATTENTION) == types(operators, OperatorName.INDEXER, working=False) == {FP8}
        )
        assert types(operators, OperatorName.ROUTER) == types(operators, OperatorName.NORMS) == {BF16}


def test_bf16_weights_leave_everything_in_bf16_whatever_the_cache() -> None:
    for cache in (BF16, FP8):
        for operators in passes(named("deepseek-v3.2", "h200-sxm", WeightFormat.BF16, cache, BF16)):
            assert {op.dtype for op in operators} == {BF16}


@pytest.mark.parametrize(("kv_cache", "compute", "scores"), [(BF16, BF16, BF16), (BF16, FP8, BF16), (FP8, FP8, FP8)])
@pytest.mark.parametrize("weights", [WeightFormat.BF16, WeightFormat.FP8, WeightFormat.MXFP4])
def test_the_sinks_of_gpt_oss_do_not_change_the_type_of_its_scores(
    kv_cache: Dtype, compute: Dtype, scores: Dtype, weights: WeightFormat
) -> None:
    """Sinks are 16-bit weights of the same operator; they compute nothing."""
    asked = named("gpt-oss-120b", "h200-sxm", weights, kv_cache, compute)
    for operators in passes(asked):
        sinks = [op for op in operators if op.name is OperatorName.ATTENTION and not op.flops]
        assert [(op.bytes, op.dtype) for op in sinks] == [(18 * 64 * 2, BF16)] * 2  # 18 layers of a kind, 64 heads
        assert types(operators, OperatorName.ATTENTION) == {scores}


def test_the_checkpoint_of_v4_flash_runs_each_group_in_its_own_type() -> None:
    plan = CATALOG.plans["deepseek-v4-flash"]
    assert plan.label == NATIVE
    asked = deployed("deepseek-v4-flash", "b200-sxm", Precision(plan, BF16, FP4))
    for operators in passes(asked):
        assert types(operators, OperatorName.EXPERTS) == {FP4}
        for name in (OperatorName.QKV, OperatorName.OUTPUT, OperatorName.COMPRESSOR, OperatorName.SHARED_EXPERTS):
            assert types(operators, name) == {FP8}
        assert types(operators, OperatorName.INDEXER, working=False) == {FP8}
        for name in (OperatorName.ROUTER, OperatorName.HEAD, OperatorName.NORMS, OperatorName.ATTENTION):
            assert types(operators, name, working=False) == {BF16}


def test_a_state_update_without_matrices_of_its_own_runs_in_the_wide_type() -> None:
    """A delta-net has a decay for each head there, and nothing that is quantized."""
    asked = named("qwen3-next-80b-a3b", "h200-sxm", WeightFormat.FP8, FP8, FP8)
    for operators in passes(asked):
        assert types(operators, OperatorName.STATE, working=False) == {BF16}
        assert types(operators, OperatorName.QKV) == {FP8}
