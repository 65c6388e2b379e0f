"""Channel mixing: blocks of RWKV-6 and 7 by hand."""

import pytest

from app.calc.model.layers.dense import ChannelMix
from app.calc.model.layers.parts import WeightGroup
from app.calc.model.split import Split

FINCH_1_6B = ChannelMix(7168, receptance=True)
GOOSE_1_5B = ChannelMix(8192)


def stored(block: ChannelMix, hidden_size: int) -> int:
    return sum(weights.stored for weights in block.weights(hidden_size))


@pytest.mark.parametrize(
    ("block", "by_hand"),
    [
        (FINCH_1_6B, 2 * 2048 * 7168 + 2048 * 2048 + 2 * 2048),  # key and receptance each read a mixture of their own
        (GOOSE_1_5B, 2 * 2048 * 8192 + 2048),
    ],
)
def test_a_block_has_the_parameters_counted_by_hand(block: ChannelMix, by_hand: int) -> None:
    assert stored(block, 2048) == by_hand
    assert {weights.group for weights in block.weights(2048)} == {WeightGroup.FEED_FORWARD}


def test_the_worked_number_of_world_1_6b() -> None:
    assert stored(FINCH_1_6B, 2048) == 2 * 14_680_064 + 4_194_304 + 4_096 == 33_558_528


def test_a_token_costs_two_flops_for_each_weight_of_a_matrix() -> None:
    assert sum(w.flops for w in FINCH_1_6B.weights(2048)) == 2 * (2 * 14_680_064 + 4_194_304)
    assert sum(w.flops for w in GOOSE_1_5B.weights(2048)) == 2 * 2 * 2048 * 8192


@pytest.mark.parametrize("ranks", [1, 2, 3, 7])
def test_the_width_is_divided_and_the_gate_is_copied(ranks: int) -> None:
    part = FINCH_1_6B.split(Split(ranks))
    copied = 2048 * 2048 + 2 * 2048
    assert part.intermediate_size == -(-7168 // ranks)
    assert stored(part, 2048) - copied == 2 * 2048 * part.intermediate_size


def test_the_kind_has_its_name() -> None:
    assert FINCH_1_6B.label == GOOSE_1_5B.label == "channel mixing"
