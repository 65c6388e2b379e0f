"""Mamba 2: layers of Nemotron-H and Granite 4 by hand, the recurrence counted element by element."""

import pytest

from app.calc.dtypes import Dtype
from app.calc.model.layers.mamba import Mamba2
from app.calc.model.layers.parts import OperatorName, Run
from app.calc.model.split import SplitError

NEMOTRON_H_8B = Mamba2(128, 64, 128, 8, state_dtype=Dtype.BF16)
NEMOTRON_3_SUPER = Mamba2(128, 64, 128, 8)
NEMOTRON_NANO_9B = Mamba2(128, 80, 128, 8)
GRANITE_SMALL = Mamba2(128, 64, 128, 1)
SMALL = Mamba2(4, 3, 5, 2)


def stored(layer: Mamba2, hidden_size: int) -> int:
    return sum(weights.stored for weights in layer.weights(hidden_size))


@pytest.mark.parametrize(
    ("layer", "hidden_size", "inner", "groups", "layers", "published"),
    [
        (NEMOTRON_H_8B, 4096, 8192, 8, 24, 2_631_263_232),
        (NEMOTRON_3_SUPER, 4096, 8192, 8, 40, 4_385_438_720),
        (NEMOTRON_NANO_9B, 4480, 10_240, 8, 27, 3_981_045_888),
        (GRANITE_SMALL, 4096, 8192, 1, 36, 3_682_331_136),
    ],
)
def test_a_layer_has_the_parameters_counted_by_hand(
    layer: Mamba2, hidden_size: int, inner: int, groups: int, layers: int, published: int
) -> None:
    convolved = inner + 2 * groups * 128  # the input, B and C
    entering = hidden_size * (inner + convolved + 128)  # a gate, what is convolved, a step a head
    per_head = 3 * 128  # the step's bias, the decay, the skip
    by_hand = entering + convolved * 4 + convolved + per_head + inner + inner * hidden_size
    assert stored(layer, hidden_size) == by_hand
    assert layers * by_hand == published


def test_the_worked_number_of_nemotron_h_8b() -> None:
    assert stored(NEMOTRON_H_8B, 4096) == 76_021_760 + 51_200 + 384 + 8192 + 33_554_432 == 109_635_968


def test_the_state_has_the_bytes_of_the_published_shape() -> None:
    recurrent, convolution = NEMOTRON_3_SUPER.state()
    assert (recurrent.bytes, convolution.bytes) == (128 * 64 * 128 * 4, 10_240 * 3 * 2)
    assert recurrent.bytes + convolution.bytes == 4_255_744
    assert 40 * 4_255_744 == 170_229_760
    assert 24 * sum(state.bytes for state in NEMOTRON_H_8B.state()) == 51_806_208
    assert 27 * sum(state.bytes for state in NEMOTRON_NANO_9B.state()) == 143_548_416
    assert 36 * sum(state.bytes for state in GRANITE_SMALL.state()) == 152_819_712
    # At 1,024 tokens 8 full layers of 512 elements and the states: 174,432 B a token in Nemotron 3 Super.
    assert (8 * 512 * 2 * 1024 + 170_229_760) / 1024 == 174_432
    assert NEMOTRON_3_SUPER.cache() == ()


def one_by_one(layer: Mamba2, tokens: int) -> int:
    """Every element of every head's state, token after token; a decay is folded into the products by chunks."""
    flops = 0
    for _token in range(tokens):
        for _head in range(layer.heads):
            for _channel in range(layer.head_dim):
                for _number in range(layer.state_size):
                    flops += 2  # add the outer product of input and B
                    flops += 2  # read by C
    return flops


@pytest.mark.parametrize("tokens", [1, 2, 17])
@pytest.mark.parametrize("cached", [0, 1000])
def test_a_prefill_is_the_recurrence_token_by_token(tokens: int, cached: int) -> None:
    (work,) = SMALL.work(Run(1.0, float(tokens), float(cached), is_decode=False))
    assert (work.operator, work.flops) == (OperatorName.STATE, one_by_one(SMALL, tokens))
    passes = 2 if cached else 1  # written, and read where a token came before
    assert work.state_bytes == passes * (4 * 3 * 5 * 4 + (4 * 3 + 2 * 2 * 5) * 3 * 2)


def test_a_decode_step_is_one_token_a_sequence_however_long_the_context() -> None:
    (first,), near, far = (SMALL.work(Run(8.0, 1.0, n, is_decode=True)) for n in (0.0, 1.0, 10.0**6))
    assert near == far
    assert near[0].flops == first.flops == 8 * one_by_one(SMALL, 1)
    assert near[0].state_bytes == 2 * float(first.state_bytes)  # the first token has no state to read


@pytest.mark.parametrize("ranks", [1, 2, 4, 8])
def test_heads_and_groups_are_divided(ranks: int) -> None:
    part, run = NEMOTRON_3_SUPER.split(ranks), Run(2.0, 1.0, 99.0, is_decode=True)
    assert (part.heads, part.groups) == (128 // ranks, 8 // ranks)
    assert ranks * stored(part, 4096) == 109_635_968
    assert ranks * sum(s.bytes for s in part.state()) == 4_255_744
    assert ranks * float(part.work(run)[0].flops) == NEMOTRON_3_SUPER.work(run)[0].flops
    assert ranks * float(part.work(run)[0].state_bytes) == NEMOTRON_3_SUPER.work(run)[0].state_bytes


def test_a_group_fewer_than_the_gpus_is_copied() -> None:
    part = GRANITE_SMALL.split(8)
    assert (part.heads, part.groups) == (16, 1)
    shared = 2 * 128  # B and C of the one group: their projection and convolution, on every GPU
    copied = 4096 * shared + 5 * shared
    assert 8 * (stored(part, 4096) - copied) == stored(GRANITE_SMALL, 4096) - copied


def test_what_does_not_divide_is_refused() -> None:
    with pytest.raises(SplitError, match=r"^128 heads of Mamba-2 do not divide among 3 GPUs\.$"):
        NEMOTRON_H_8B.split(3)
    with pytest.raises(SplitError, match=r"^6 groups of Mamba-2 do not divide among 4 GPUs\.$"):
        Mamba2(12, 3, 5, 6).split(4)
    with pytest.raises(SplitError, match=r"^3 groups of Mamba-2 cannot be copied evenly to 4 GPUs\.$"):
        Mamba2(12, 3, 5, 3).split(4)


def test_the_kind_has_its_name() -> None:
    assert NEMOTRON_H_8B.label == "Mamba-2"
