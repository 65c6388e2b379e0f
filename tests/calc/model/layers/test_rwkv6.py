"""RWKV-6: layers of a World model by hand, the recurrence counted element by element."""

import pytest

from app.calc.dtypes import Dtype
from app.calc.model.layers.parts import OperatorName, Run
from app.calc.model.layers.rwkv import Rwkv6
from app.calc.model.split import SplitError

WORLD_1_6B = Rwkv6(32, 64, 2048, 32, 64)
SMALL = Rwkv6(2, 3, 8, 1, 2)


def stored(layer: Rwkv6, hidden_size: int) -> int:
    return sum(weights.stored for weights in layer.weights(hidden_size))


def test_a_whole_model_has_the_published_total() -> None:
    hidden = 2048
    block = 2 * hidden * 7168 + hidden * hidden + 2 * hidden
    norms = 2 * 2 * hidden  # a gain and a bias each
    outside = 2 * 65_536 * hidden + 2 * 2 * hidden  # embedding and head, a norm after the one and before the other
    assert outside + 24 * (stored(WORLD_1_6B, hidden) + block + norms) == 1_599_873_024


def test_the_worked_number_of_world_1_6b() -> None:
    large = 5 * 2048 * 2048
    mixtures, decay = 2 * 2048 * 5 * 32, 2 * 2048 * 64
    shares, first_share, bias, own, norm = 5, 1, 1, 1, 2
    assert shares + first_share + bias + own + norm == 10
    assert stored(WORLD_1_6B, 2048) == large + mixtures + decay + 10 * 2048 == 21_909_504


def test_the_state_is_a_matrix_a_head_and_two_rows() -> None:
    recurrent, shift = WORLD_1_6B.state()
    assert (recurrent.bytes, recurrent.dtype) == (32 * 64 * 64 * 4, Dtype.FP32)
    assert (shift.bytes, shift.dtype) == (2 * 2048 * 2, Dtype.BF16)
    assert recurrent.bytes + shift.bytes == 532_480
    assert WORLD_1_6B.cache() == ()


def one_by_one(layer: Rwkv6, tokens: int) -> int:
    """Every element of every head's state, token after token; decays are folded into the products by chunks."""
    flops = 0
    for _token in range(tokens):
        for _head in range(layer.heads):
            for _row in range(layer.head_dim):
                for _column in range(layer.head_dim):
                    flops += 2  # add the outer product of value and key
                    flops += 2  # read by receptance
    return flops


@pytest.mark.parametrize("tokens", [1, 2, 17])
@pytest.mark.parametrize("cached", [0, 1000])
def test_a_prefill_is_the_recurrence_token_by_token(tokens: int, cached: int) -> None:
    (work,) = SMALL.work(Run(1.0, float(tokens), float(cached), is_decode=False))
    assert (work.operator, work.flops) == (OperatorName.STATE, one_by_one(SMALL, tokens))
    passes = 2 if cached else 1  # written, and read where a token came before
    assert work.state_bytes == passes * (2 * 3 * 3 * 4 + 2 * 8 * 2)


@pytest.mark.parametrize("ranks", [1, 2, 4, 8])
def test_heads_are_divided_and_what_reads_the_hidden_state_is_copied(ranks: int) -> None:
    part = WORLD_1_6B.split(ranks)
    copied = 2048 * (10 * 32 + 64) + 6 * 2048
    assert ranks * (stored(part, 2048) - copied) == 21_909_504 - copied
    assert part.state()[1] == WORLD_1_6B.state()[1]
    assert ranks * part.state()[0].bytes == WORLD_1_6B.state()[0].bytes


def test_what_does_not_divide_is_refused() -> None:
    with pytest.raises(SplitError, match=r"^32 heads of RWKV-6 do not divide among 3 GPUs\.$"):
        WORLD_1_6B.split(3)


def test_the_kind_has_its_name() -> None:
    assert WORLD_1_6B.label == "RWKV-6"
