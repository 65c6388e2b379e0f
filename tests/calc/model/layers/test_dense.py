"""The dense block: matrices and biases by hand, the inner width divided."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.calc.model.layers.dense import DenseFeedForward
from app.calc.model.layers.parts import OperatorName, WeightGroup
from app.calc.model.split import Split
from tests.calc.strategies import repeatable


def stored(block: DenseFeedForward, hidden_size: int) -> int:
    return sum(weights.stored for weights in block.weights(hidden_size))


@pytest.mark.parametrize(
    ("block", "hidden_size", "by_hand", "layers", "published"),
    [
        (DenseFeedForward(14_336), 4096, 3 * 4096 * 14_336, 1, 176_160_768),  # Llama-3.1-8B
        (DenseFeedForward(11_008), 4096, 3 * 4096 * 11_008, 32, 4_328_521_728),  # Llama-2-7B
        (DenseFeedForward(18_432), 7168, 3 * 7168 * 18_432, 3, 1_189_085_184),  # DeepSeek-V3's first layers
        (DenseFeedForward(21_504, gated=False), 4096, 2 * 4096 * 21_504, 24, 4_227_858_432),  # Nemotron-H-8B
        # OPT-175B: two matrices with their biases.
        (
            DenseFeedForward(49_152, gated=False, bias=True),
            12_288,
            2 * 12_288 * 49_152 + 49_152 + 12_288,
            1,
            1_208_020_992,
        ),
        (DenseFeedForward(10, bias=True), 4, 3 * 4 * 10 + 2 * 10 + 4, 1, 144),
    ],
)
def test_a_block_has_the_parameters_counted_by_hand(
    block: DenseFeedForward, hidden_size: int, by_hand: int, layers: int, published: int
) -> None:
    assert stored(block, hidden_size) == by_hand
    assert layers * by_hand == published


def test_a_token_goes_through_every_matrix_and_biases_cost_nothing() -> None:
    weights = DenseFeedForward(14_336, bias=True).weights(4096)
    assert sum(w.flops for w in weights) == 2 * 3 * 4096 * 14_336
    assert {w.operator for w in weights} == {OperatorName.GATE_UP, OperatorName.DOWN}
    assert {w.group for w in weights} == {WeightGroup.FEED_FORWARD}
    matrices = {w.operator: w.params for w in weights if w.is_matrix}
    assert matrices == {OperatorName.GATE_UP: 2 * 4096 * 14_336, OperatorName.DOWN: 14_336 * 4096}


@repeatable
@given(st.integers(1, 100_000), st.integers(1, 5000), st.booleans(), st.integers(1, 64))
def test_the_parts_of_all_gpus_are_the_whole_padded_to_divide(
    width: int, hidden_size: int, gated: bool, ranks: int
) -> None:
    block = DenseFeedForward(width, gated)
    parts = ranks * stored(block.split(Split(ranks)), hidden_size)
    matrices = 3 if gated else 2
    assert stored(block, hidden_size) <= parts < stored(block, hidden_size) + ranks * matrices * hidden_size
    if width % ranks == 0:
        assert parts == stored(block, hidden_size)


def test_the_bias_of_the_sum_is_on_every_gpu() -> None:
    part = DenseFeedForward(1000, bias=True).split(Split(4))
    assert part == DenseFeedForward(250, bias=True)
    assert stored(part, 64) == 3 * 64 * 250 + 2 * 250 + 64


def test_the_block_says_whether_it_is_gated() -> None:
    assert [DenseFeedForward(8).label, DenseFeedForward(8, gated=False).label] == ["gated", "plain"]
