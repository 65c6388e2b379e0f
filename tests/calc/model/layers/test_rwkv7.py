"""RWKV-7: layers of the World models by hand, the recurrence counted element by element."""

from dataclasses import replace

import pytest

from app.calc.dtypes import Dtype
from app.calc.model.layers.parts import OperatorName, Run
from app.calc.model.layers.rwkv import Rwkv7
from app.calc.model.split import SplitError

WORLD_1_5B = Rwkv7(32, 64, 2048, 96, 96, 256, 64)
WORLD_2_9B = Rwkv7(40, 64, 2560, 96, 96, 320, 64)
SMALL = Rwkv7(2, 3, 8, 1, 2, 3, 4)


def stored(layer: Rwkv7, hidden_size: int) -> int:
    return sum(weights.stored for weights in layer.weights(hidden_size))


def first(layer: Rwkv7) -> Rwkv7:
    return replace(layer, value_rank=None)


@pytest.mark.parametrize(
    ("layer", "hidden", "layers", "published"),
    [
        (Rwkv7(12, 64, 768, 64, 64, 128, 32), 768, 12, 191_034_624),
        (Rwkv7(16, 64, 1024, 64, 64, 128, 32), 1024, 24, 450_767_872),
        (WORLD_1_5B, 2048, 24, 1_527_404_544),
        (WORLD_2_9B, 2560, 32, 2_947_735_040),
    ],
)
def test_a_whole_model_has_the_published_total(layer: Rwkv7, hidden: int, layers: int, published: int) -> None:
    block = 2 * hidden * 4 * hidden + hidden  # up, down, and the mixture with the input before
    norms = 2 * 2 * hidden  # a gain and a bias each
    outside = 2 * 65_536 * hidden + 2 * 2 * hidden  # embedding and head, a norm after the one and before the other
    mixers = stored(first(layer), hidden) + (layers - 1) * stored(layer, hidden)
    assert outside + mixers + layers * (block + norms) == published


def test_the_worked_number_of_world_1_5b() -> None:
    large, thin = 4 * 2048 * 2048, 2 * 2048 * (96 + 96 + 256 + 64)
    mixtures, biases, keys, own, norm = 6, 3, 2, 1, 2
    assert mixtures + biases + keys + own + norm == 14
    assert stored(WORLD_1_5B, 2048) == large + thin + 14 * 2048 == 18_903_040
    # The first layer takes no values over: no thin pair and no bias for their share.
    assert stored(WORLD_1_5B, 2048) - stored(first(WORLD_1_5B), 2048) == 2 * 2048 * 64 + 2048


def test_the_state_is_a_matrix_a_head_and_two_rows() -> None:
    recurrent, shift = WORLD_1_5B.state()
    assert (recurrent.bytes, recurrent.dtype) == (32 * 64 * 64 * 4, Dtype.FP32)
    assert (shift.bytes, shift.dtype) == (2 * 2048 * 2, Dtype.BF16)
    assert recurrent.bytes + shift.bytes == 532_480
    assert WORLD_1_5B.cache() == ()


def one_by_one(layer: Rwkv7, tokens: int) -> int:
    """Every element of every head's state, token after token; decays are folded into the products by chunks."""
    flops = 0
    for _token in range(tokens):
        for _head in range(layer.heads):
            for _row in range(layer.head_dim):
                for _column in range(layer.head_dim):
                    flops += 2  # read along the direction to be corrected
                    flops += 2  # correct by an outer product of its own
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
    part = WORLD_1_5B.split(ranks)
    copied = 2048 * (96 + 96 + 256 + 64) + 6 * 2048  # into the thin matrices, and the mixtures
    assert ranks * (stored(part, 2048) - copied) == 18_903_040 - copied
    assert part.state()[1] == WORLD_1_5B.state()[1]
    assert ranks * part.state()[0].bytes == WORLD_1_5B.state()[0].bytes


def test_what_does_not_divide_is_refused() -> None:
    with pytest.raises(SplitError, match=r"^40 heads of RWKV-7 do not divide among 16 GPUs\.$"):
        WORLD_2_9B.split(16)


def test_the_kind_has_its_name() -> None:
    assert (WORLD_1_5B.label, first(WORLD_1_5B).label) == ("RWKV-7", "RWKV-7, first layer")
