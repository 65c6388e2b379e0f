"""Attention beside Mamba 2: a layer of Falcon-H1 by hand, and all that it has and does is that of its two parts."""

from dataclasses import replace

import pytest

from app.calc.model.layers.grouped_attention import GroupedAttention
from app.calc.model.layers.mamba import Mamba2, ParallelMamba2
from app.calc.model.layers.parts import OperatorName, Run
from app.calc.model.layers.span import FULL
from app.calc.model.split import SplitError

ATTENTION = GroupedAttention(8, 2, 64)
MAMBA = Mamba2(24, 64, 128, 1, gated_norm=False)
FALCON_H1_500M = ParallelMamba2(ATTENTION, MAMBA)
DECODE = Run(3.0, 1.0, 999.0, is_decode=True)
PREFILL = Run(1.0, 100.0, 50.0, is_decode=False)


def stored(layer: ParallelMamba2 | Mamba2, hidden_size: int) -> int:
    return sum(weights.stored for weights in layer.weights(hidden_size))


def test_a_layer_has_the_parameters_counted_by_hand() -> None:
    attention = 1024 * (512 + 2 * 128) + 512 * 1024
    channels, convolved = 24 * 64, 24 * 64 + 2 * 128
    recurrence = 1024 * (channels + convolved + 24) + 5 * convolved + 3 * 24 + channels * 1024
    assert (attention, recurrence) == (1_310_720, 5_014_344)
    assert stored(FALCON_H1_500M, 1024) == attention + recurrence


def test_a_whole_model_has_the_published_total() -> None:
    block = 3 * 1024 * 2048
    layers = 36 * (1_310_720 + 5_014_344 + block + 2 * 1024)
    assert 2 * 32_784 * 1024 + layers + 1024 == 521_411_104


def test_a_norm_after_the_recurrence_is_a_gain_a_channel() -> None:
    normed = replace(MAMBA, gated_norm=True)
    assert stored(normed, 1024) - stored(MAMBA, 1024) == 1_536
    assert not [w for w in MAMBA.weights(1024) if w.operator is OperatorName.NORMS]


def test_a_layer_keeps_rows_and_a_state() -> None:
    (row,) = FALCON_H1_500M.cache()
    assert (row.width, row.span) == (2 * 2 * 64, FULL)
    recurrent, convolution = FALCON_H1_500M.state()
    assert (recurrent.bytes, convolution.bytes) == (24 * 64 * 128 * 4, 1_792 * 3 * 2)
    assert recurrent.bytes + convolution.bytes == 797_184
    # All 36 layers at 4,096 tokens.
    assert 36 * (256 * 2 * 4_096 + 797_184) == 104_196_096


@pytest.mark.parametrize("run", [DECODE, PREFILL])
def test_its_work_is_that_of_both(run: Run) -> None:
    attention, state = FALCON_H1_500M.work(run)
    assert (attention,) == ATTENTION.work(run)
    assert (state,) == MAMBA.work(run)


def test_each_part_is_divided_in_its_own_way() -> None:
    part = FALCON_H1_500M.split(4)
    assert (part.attention.n_heads, part.attention.n_kv_heads) == (2, 1)  # two KV heads, copied
    assert (part.mamba.heads, part.mamba.groups) == (6, 1)
    assert FALCON_H1_500M.split(1) == FALCON_H1_500M
    with pytest.raises(SplitError, match=r"^24 heads of Mamba-2 do not divide among 16 GPUs\.$"):
        ParallelMamba2(replace(ATTENTION, n_heads=16), MAMBA).split(16)


def test_the_kind_is_named_after_both() -> None:
    assert FALCON_H1_500M.label == "GQA beside Mamba-2"
