"""What loading adds to experts in MXFP4, whose kernels want whole tiles."""

import pytest

from app.calc.dtypes import WeightFormat
from app.calc.memory.engines.rules import mxfp4_padding_bytes
from app.calc.model.parameters import convention, count_parameters, weight_bytes
from app.calc.model.split import Split
from tests.factories import shipped_catalog

CATALOG = shipped_catalog()
MODEL, PLAN = CATALOG.architectures["gpt-oss-120b"], CATALOG.plans["gpt-oss-120b"]
GIB = 2**30
MXFP4_BYTES = 17 / 32  # 32 elements of half a byte and a scale of one


def test_gpt_oss_120b_on_four_gpus() -> None:
    """A log has 17.22 GiB loaded against 15.23 GiB of tensors: 3,072 × 768 for 2,880 × 720 in 128 × 36 experts."""
    part = MODEL.split(Split(4))
    by_hand = 36 * 128 * 3 * (3072 * 768 - 2880 * 720) * MXFP4_BYTES
    assert mxfp4_padding_bytes(part, PLAN) == pytest.approx(by_hand, rel=1e-12)
    assert weight_bytes(count_parameters(part), PLAN) / GIB == pytest.approx(15.23, abs=0.02)
    assert (weight_bytes(count_parameters(part), PLAN) + by_hand) / GIB == pytest.approx(17.22, abs=0.05)


def test_groups_of_whole_experts_are_padded_less() -> None:
    spread, grouped = MODEL.split(Split(4)), MODEL.split(Split(4, expert=4))
    by_hand = 36 * 32 * 3 * (3072 * 2880 - 2880 * 2880) * MXFP4_BYTES
    assert mxfp4_padding_bytes(grouped, PLAN) == pytest.approx(by_hand, rel=1e-12)
    assert mxfp4_padding_bytes(grouped, PLAN) < mxfp4_padding_bytes(spread, PLAN)


@pytest.mark.parametrize("weights", [WeightFormat.BF16, WeightFormat.FP8, WeightFormat.INT4, WeightFormat.NVFP4])
def test_other_formats_are_not_padded(weights: WeightFormat) -> None:
    assert mxfp4_padding_bytes(MODEL.split(Split(4)), convention(weights, MODEL)) == 0


def test_a_dense_model_has_no_experts_to_pad() -> None:
    dense = CATALOG.architectures["llama-3.1-8b"]
    assert mxfp4_padding_bytes(dense, convention(WeightFormat.MXFP4, dense)) == 0
