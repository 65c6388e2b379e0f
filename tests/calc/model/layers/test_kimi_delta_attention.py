"""Kimi delta attention: layers of Kimi-Linear and Kimi-K3 by hand, the recurrence counted element by element."""

import pytest

from app.calc.model.layers.parts import OperatorName, Run
from app.calc.model.layers.recurrent import KimiDeltaAttention
from app.calc.model.split import SplitError

KIMI_LINEAR = KimiDeltaAttention(32, 128, 128)
KIMI_K3 = KimiDeltaAttention(96, 128, 128, full_rank_gate=True)
SMALL = KimiDeltaAttention(2, 3, 3)


def stored(layer: KimiDeltaAttention, hidden_size: int) -> int:
    return sum(weights.stored for weights in layer.weights(hidden_size))


def test_a_layer_of_kimi_linear_part_by_part() -> None:
    width = 32 * 128
    projections = 3 * 2304 * width
    convolution = 3 * width * 4
    decay = 2304 * 128 + 128 * width + 32 + width  # low-rank, a rate a head, a bias a channel
    strength = 2304 * 32
    gate = 2304 * 128 + 128 * width
    assert (projections, convolution, decay, strength, gate) == (28_311_552, 49_152, 823_328, 73_728, 819_200)
    by_hand = projections + convolution + decay + strength + gate + 128 + width * 2304
    assert stored(KIMI_LINEAR, 2304) == by_hand == 39_514_272
    assert 20 * by_hand == 790_285_440


def test_a_layer_of_kimi_k3_has_a_full_gate() -> None:
    width = 96 * 128
    decay = 7168 * 128 + 128 * width + 96 + width
    by_hand = 3 * 7168 * width + 3 * width * 4 + decay + 7168 * 96 + 7168 * width + 128 + width * 7168
    assert stored(KIMI_K3, 7168) == by_hand
    assert 69 * by_hand == 30_618_086_496


def test_the_state_has_the_bytes_of_the_published_shape() -> None:
    recurrent, convolution = KIMI_LINEAR.state()
    assert (recurrent.bytes, convolution.bytes) == (32 * 128 * 128 * 4, 3 * 4096 * 3 * 2)
    assert recurrent.bytes + convolution.bytes == 2_170_880
    assert 20 * 2_170_880 == 43_417_600
    assert 69 * sum(state.bytes for state in KIMI_K3.state()) == 449_372_160
    # At 1,024 tokens 7 latent layers of 576 elements and the states: 50,464 B a token.
    assert (7 * 576 * 2 * 1024 + 43_417_600) / 1024 == 50_464
    assert KIMI_LINEAR.cache() == ()


def one_by_one(layer: KimiDeltaAttention, tokens: int) -> int:
    """Every element of every head's state, token after token; a decay is folded into the products by chunks."""
    flops = 0
    for _token in range(tokens):
        for _head in range(layer.heads):
            for _key in range(layer.head_dim):
                for _value in range(layer.head_dim):
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
    assert work.state_bytes == passes * (2 * 3 * 3 * 4 + 3 * 2 * 3 * 3 * 2)


def test_a_decode_step_is_one_token_a_sequence_however_long_the_context() -> None:
    (first,), near, far = (SMALL.work(Run(8.0, 1.0, n, is_decode=True)) for n in (0.0, 1.0, 10.0**6))
    assert near == far
    assert near[0].flops == first.flops == 8 * one_by_one(SMALL, 1)
    assert near[0].state_bytes == 2 * float(first.state_bytes)  # the first token has no state to read


@pytest.mark.parametrize("ranks", [1, 2, 4, 8, 32])
@pytest.mark.parametrize(
    ("layer", "hidden_size", "copied"),
    [(KIMI_LINEAR, 2304, 2 * 2304 * 128 + 128), (KIMI_K3, 7168, 7168 * 128 + 128)],
    ids=["low-rank gate", "full gate"],
)
def test_heads_are_divided_and_low_rank_inner_widths_are_on_every_gpu(
    layer: KimiDeltaAttention, hidden_size: int, copied: int, ranks: int
) -> None:
    part, run = layer.split(ranks), Run(2.0, 1.0, 99.0, is_decode=True)
    assert ranks * (stored(part, hidden_size) - copied) == stored(layer, hidden_size) - copied
    assert ranks * sum(s.bytes for s in part.state()) == sum(s.bytes for s in layer.state())
    assert ranks * float(part.work(run)[0].flops) == layer.work(run)[0].flops
    assert ranks * float(part.work(run)[0].state_bytes) == layer.work(run)[0].state_bytes


def test_heads_that_do_not_divide_are_refused() -> None:
    with pytest.raises(SplitError, match=r"^32 heads of the delta attention do not divide among 5 GPUs\.$"):
        KIMI_LINEAR.split(5)


def test_the_kind_has_its_name() -> None:
    assert KIMI_LINEAR.label == "Kimi delta attention"
