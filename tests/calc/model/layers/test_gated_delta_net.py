"""Gated delta-net: layers of Qwen3-Next and Qwen3.5 by hand, the recurrence counted element by element."""

import pytest

from app.calc.dtypes import Dtype
from app.calc.model.layers.parts import OperatorName, Run
from app.calc.model.layers.recurrent import GatedDeltaNet
from app.calc.model.split import SplitError

QWEN3_NEXT = GatedDeltaNet(16, 32, 128, 128)
QWEN3_5_397B = GatedDeltaNet(16, 64, 128, 128)
SMALL = GatedDeltaNet(2, 4, 3, 5)


def stored(layer: GatedDeltaNet, hidden_size: int) -> int:
    return sum(weights.stored for weights in layer.weights(hidden_size))


@pytest.mark.parametrize(
    ("layer", "hidden_size", "values", "layers", "published"),
    [(QWEN3_NEXT, 2048, 32, 36, 1_213_864_704), (QWEN3_5_397B, 4096, 64, 45, 5_310_639_360)],
)
def test_a_layer_has_the_parameters_counted_by_hand(
    layer: GatedDeltaNet, hidden_size: int, values: int, layers: int, published: int
) -> None:
    keys, width = 16 * 128, values * 128
    entering = hidden_size * (keys + keys + width + width)  # queries, keys, values and the output gate
    gates = hidden_size * 2 * values  # decay and strength, one a value head
    convolution, head_constants, norm = (2 * keys + width) * 4, 2 * values, 128
    by_hand = entering + gates + convolution + head_constants + norm + width * hidden_size
    assert stored(layer, hidden_size) == by_hand
    assert layers * by_hand == published


def test_the_worked_number_of_qwen3_next() -> None:
    assert stored(QWEN3_NEXT, 2048) == 25_165_824 + 131_072 + 32_768 + 64 + 128 + 8_388_608 == 33_718_464


def test_the_state_has_the_bytes_of_the_published_shape() -> None:
    recurrent, convolution = QWEN3_NEXT.state()
    assert (recurrent.bytes, convolution.bytes) == (32 * 128 * 128 * 4, 8192 * 3 * 2)
    assert recurrent.bytes + convolution.bytes == 2_146_304
    assert 36 * 2_146_304 == 77_266_944
    assert 45 * sum(state.bytes for state in QWEN3_5_397B.state()) == 192_061_440
    # At 1,024 tokens 12 full layers of 1,024 elements and the states: 100,032 B a token.
    assert (12 * 1024 * 2 * 1024 + 77_266_944) / 1024 == 100_032
    assert QWEN3_NEXT.cache() == ()


def test_the_state_may_be_kept_in_16_bits() -> None:
    recurrent, convolution = GatedDeltaNet(16, 32, 128, 128, state_dtype=Dtype.BF16).state()
    assert (recurrent.bytes, convolution.bytes) == (32 * 128 * 128 * 2, 49_152)


def one_by_one(layer: GatedDeltaNet, tokens: int) -> int:
    """Every element of every value head's state, token after token; a decay is folded into the products by chunks."""
    flops = 0
    for _token in range(tokens):
        for _head in range(layer.value_heads):
            for _key in range(layer.key_dim):
                for _value in range(layer.value_dim):
                    flops += 2  # what the state holds for this key
                    flops += 2  # correct it by the outer product
                    flops += 2  # read by the query
    return flops


@pytest.mark.parametrize("tokens", [1, 2, 17])
@pytest.mark.parametrize("cached", [0, 1000])
def test_a_prefill_is_the_recurrence_token_by_token(tokens: int, cached: int) -> None:
    (work,) = SMALL.work(Run(1.0, float(tokens), float(cached), is_decode=False))
    assert (work.operator, work.flops) == (OperatorName.STATE, one_by_one(SMALL, tokens))
    passes = 2 if cached else 1  # written, and read where a token came before
    assert work.state_bytes == passes * (4 * 3 * 5 * 4 + (2 * 2 * 3 + 4 * 5) * 3 * 2)


def test_a_decode_step_is_one_token_a_sequence_however_long_the_context() -> None:
    (first,), near, far = (SMALL.work(Run(8.0, 1.0, n, is_decode=True)) for n in (0.0, 1.0, 10.0**6))
    assert near == far
    assert near[0].flops == first.flops == 8 * one_by_one(SMALL, 1)
    assert near[0].state_bytes == 2 * float(first.state_bytes)  # the first token has no state to read
    assert near[0].cache_elements == 0


@pytest.mark.parametrize("ranks", [1, 2, 4, 8, 16])
def test_both_kinds_of_heads_are_divided(ranks: int) -> None:
    part, run = QWEN3_NEXT.split(ranks), Run(2.0, 1.0, 99.0, is_decode=True)
    assert (part.key_heads, part.value_heads) == (16 // ranks, 32 // ranks)
    copied = 128  # the gains of the norm, one for each place of a head
    assert ranks * (stored(part, 2048) - copied) == stored(QWEN3_NEXT, 2048) - copied
    assert ranks * sum(s.bytes for s in part.state()) == 2_146_304
    assert ranks * float(part.work(run)[0].flops) == QWEN3_NEXT.work(run)[0].flops
    assert ranks * float(part.work(run)[0].state_bytes) == QWEN3_NEXT.work(run)[0].state_bytes


def test_heads_that_do_not_divide_are_refused() -> None:
    with pytest.raises(SplitError, match=r"^16 key heads of the delta-net do not divide among 32 GPUs\.$"):
        QWEN3_NEXT.split(32)
    with pytest.raises(SplitError, match=r"^6 value heads of the delta-net do not divide among 4 GPUs\.$"):
        GatedDeltaNet(4, 6, 3, 5).split(4)


def test_the_kind_has_its_name() -> None:
    assert QWEN3_NEXT.label == "gated delta-net"
