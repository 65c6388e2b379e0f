"""Lightning attention: a layer of MiniMax-M1 by hand, the recurrence counted element by element."""

import pytest

from app.calc.model.layers.parts import OperatorName, Run
from app.calc.model.layers.recurrent import LightningAttention
from app.calc.model.split import SplitError

MINIMAX_M1, SMALL = LightningAttention(64, 128), LightningAttention(2, 3)


def stored(layer: LightningAttention, hidden_size: int) -> int:
    return sum(weights.stored for weights in layer.weights(hidden_size))


def test_a_layer_of_minimax_m1_has_the_parameters_counted_by_hand() -> None:
    width = 64 * 128
    by_hand = 3 * 6144 * width + 6144 * width + width + width * 6144
    assert stored(MINIMAX_M1, 6144) == by_hand == 251_666_432
    assert 70 * by_hand == 17_616_650_240


def test_the_state_has_the_bytes_of_the_published_shape() -> None:
    (state,) = MINIMAX_M1.state()
    assert state.bytes == 64 * 128 * 128 * 4 == 4_194_304
    assert 70 * 4_194_304 == 293_601_280
    # At 1,024 tokens 10 full layers of 2,048 elements and the states: 327,680 B a token.
    assert (10 * 2048 * 2 * 1024 + 293_601_280) / 1024 == 327_680
    assert MINIMAX_M1.cache() == ()


def one_by_one(layer: LightningAttention, tokens: int) -> int:
    """Every element of every head's state, token after token; a decay is folded into the products by chunks."""
    flops = 0
    for _token in range(tokens):
        for _head in range(layer.heads):
            for _key in range(layer.head_dim):
                for _value in range(layer.head_dim):
                    flops += 2  # add the outer product
                    flops += 2  # read by the query
    return flops


@pytest.mark.parametrize("tokens", [1, 2, 17])
@pytest.mark.parametrize("cached", [0, 1000])
def test_a_prefill_is_the_recurrence_token_by_token(tokens: int, cached: int) -> None:
    (work,) = SMALL.work(Run(1.0, float(tokens), float(cached), is_decode=False))
    assert (work.operator, work.flops) == (OperatorName.STATE, one_by_one(SMALL, tokens))
    passes = 2 if cached else 1  # written, and read where a token came before
    assert work.state_bytes == passes * (2 * 3 * 3 * 4)


def test_a_decode_step_is_one_token_a_sequence_however_long_the_context() -> None:
    (first,), near, far = (SMALL.work(Run(8.0, 1.0, n, is_decode=True)) for n in (0.0, 1.0, 10.0**6))
    assert near == far
    assert near[0].flops == first.flops == 8 * one_by_one(SMALL, 1)
    assert near[0].state_bytes == 2 * float(first.state_bytes)  # the first token has no state to read


@pytest.mark.parametrize("ranks", [1, 2, 8, 64])
def test_heads_are_divided_and_all_that_is_theirs(ranks: int) -> None:
    part, run = MINIMAX_M1.split(ranks), Run(2.0, 1.0, 99.0, is_decode=True)
    assert ranks * stored(part, 6144) == 251_666_432  # the norm is as wide as the heads, and divided with them
    assert ranks * sum(s.bytes for s in part.state()) == 4_194_304
    assert ranks * float(part.work(run)[0].flops) == MINIMAX_M1.work(run)[0].flops
    assert ranks * float(part.work(run)[0].state_bytes) == MINIMAX_M1.work(run)[0].state_bytes


def test_heads_that_do_not_divide_are_refused() -> None:
    with pytest.raises(SplitError, match=r"^64 heads of the lightning attention do not divide among 3 GPUs\.$"):
        MINIMAX_M1.split(3)


def test_the_kind_has_its_name() -> None:
    assert MINIMAX_M1.label == "lightning attention"
