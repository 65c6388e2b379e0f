"""The yardstick of the cache: plain multi-head attention, by hand and for every model of the catalog."""

import pytest

from app.calc.architecture import Architecture, LayerGroup
from app.calc.dtypes import Dtype
from app.calc.kv_cache import kv_bytes_per_sequence
from app.calc.layers.dense import DenseFeedForward
from app.calc.layers.grouped_attention import GroupedAttention
from app.calc.layers.mamba2 import Mamba2
from app.calc.layers.parallel_mamba2 import ParallelMamba2
from app.calc.multi_head import multi_head_bytes_per_sequence, multi_head_elements_per_token
from tests.factories import llama_3_1_8b, shipped_catalog

ARCHITECTURES = shipped_catalog().architectures


@pytest.mark.parametrize(
    ("model", "elements"),
    [
        ("llama-3.1-8b", 32 * 32 * (128 + 128)),
        ("llama-2-7b", 32 * 32 * (128 + 128)),
        ("deepseek-v3", 61 * 128 * (128 + 64 + 128)),
        ("deepseek-v3.2", 61 * 128 * (128 + 64 + 128)),
        ("gemma-3-27b", 62 * 32 * 2 * 128),
        ("qwen3-next-80b-a3b", 48 * 16 * 2 * 256),  # 36 recurrent layers count as the 12 of attention
        ("nemotron-3-super-120b-a12b", 48 * 32 * 2 * 128),  # 40 layers of experts mix nothing
    ],
)
def test_by_hand(model: str, elements: int) -> None:
    assert multi_head_elements_per_token(ARCHITECTURES[model]) == elements


@pytest.mark.parametrize("model", ARCHITECTURES)
def test_no_model_keeps_more_than_the_yardstick_once_its_states_are_paid(model: str) -> None:
    architecture = ARCHITECTURES[model]
    plain = multi_head_bytes_per_sequence(architecture, 8_192, Dtype.BF16)
    assert plain is not None
    assert kv_bytes_per_sequence(architecture, 8_192, Dtype.BF16) <= plain


def test_plain_attention_is_its_own_yardstick() -> None:
    group = LayerGroup(4, GroupedAttention(8, 8, 64), (DenseFeedForward(512),))
    architecture = Architecture("plain", 512, 1_000, (group,))
    assert multi_head_bytes_per_sequence(architecture, 100, Dtype.FP8) == kv_bytes_per_sequence(
        architecture, 100, Dtype.FP8
    )


def test_without_attention_there_is_nothing_to_measure_by() -> None:
    group = LayerGroup(4, Mamba2(8, 64, 64, 1), (DenseFeedForward(512),))
    architecture = Architecture("recurrent", 512, 1_000, (group,))
    assert multi_head_elements_per_token(architecture) is None
    assert multi_head_bytes_per_sequence(architecture, 100, Dtype.BF16) is None


def test_attention_beside_a_state_is_measured_by_its_own_heads() -> None:
    mixer = ParallelMamba2(GroupedAttention(8, 2, 64), Mamba2(24, 64, 128, 1))
    architecture = Architecture("parallel", 512, 1_000, (LayerGroup(36, mixer, (DenseFeedForward(512),)),))
    assert multi_head_elements_per_token(architecture) == 36 * 8 * 2 * 64


def test_it_grows_with_every_token() -> None:
    one = multi_head_bytes_per_sequence(llama_3_1_8b(), 1, Dtype.BF16)
    assert one == 524_288
    assert multi_head_bytes_per_sequence(llama_3_1_8b(), 1_000, Dtype.BF16) == 524_288_000
