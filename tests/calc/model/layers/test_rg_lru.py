"""RG-LRU: layers of RecurrentGemma by hand, the recurrence counted channel by channel."""

import pytest

from app.calc.dtypes import Dtype
from app.calc.model.layers.parts import OperatorName, Run
from app.calc.model.layers.rg_lru import RgLru
from app.calc.model.split import SplitError

GEMMA_2B, GEMMA_9B = RgLru(2560, 10), RgLru(4096, 16)
SMALL = RgLru(6, 2)


def stored(layer: RgLru, hidden_size: int) -> int:
    return sum(weights.stored for weights in layer.weights(hidden_size))


@pytest.mark.parametrize(("layer", "hidden_size", "blocks"), [(GEMMA_2B, 2560, 10), (GEMMA_9B, 4096, 16)])
def test_a_layer_has_the_parameters_counted_by_hand(layer: RgLru, hidden_size: int, blocks: int) -> None:
    inner, block = hidden_size, hidden_size // blocks
    entering = 2 * (hidden_size * inner + inner)  # what is gated, and what gates it
    gates = 2 * (blocks * block * block + inner)  # of the input and of the recurrence
    by_hand = entering + (4 * inner + inner) + gates + inner + inner * hidden_size + hidden_size
    assert stored(layer, hidden_size) == by_hand


def test_the_worked_number_of_recurrentgemma_2b() -> None:
    parts = (13_107_200 + 5_120, 12_800, 1_310_720 + 5_120, 2_560, 6_553_600 + 2_560)
    assert stored(GEMMA_2B, 2560) == sum(parts) == 20_999_680


def test_a_whole_model_has_the_published_total() -> None:
    attention = 2560 * (2560 + 2 * 256) + 2560 * 2560 + 2560  # ten heads, one of keys and values, a bias out
    block = 3 * 2560 * 7680 + 2 * 7680 + 2560
    layers = 18 * 20_999_680 + 8 * attention + 26 * (block + 2 * 2560)
    assert 256_000 * 2560 + layers + 2560 == 2_682_862_080


def test_the_state_is_one_number_a_channel_and_three_inputs() -> None:
    recurrent, convolution = GEMMA_2B.state()
    assert (recurrent.bytes, recurrent.dtype) == (2560 * 4, Dtype.FP32)
    assert (convolution.bytes, convolution.dtype) == (2560 * 3 * 2, Dtype.BF16)
    assert recurrent.bytes + convolution.bytes == 25_600
    assert GEMMA_2B.cache() == ()


def one_by_one(layer: RgLru, tokens: int) -> int:
    """Every channel, token after token: state ← decay × state + input."""
    flops = 0
    for _token in range(tokens):
        for _channel in range(layer.inner):
            flops += 2
    return flops


@pytest.mark.parametrize("tokens", [1, 2, 17])
@pytest.mark.parametrize("cached", [0, 1000])
def test_a_prefill_is_the_recurrence_token_by_token(tokens: int, cached: int) -> None:
    (work,) = SMALL.work(Run(1.0, float(tokens), float(cached), is_decode=False))
    assert (work.operator, work.flops) == (OperatorName.STATE, one_by_one(SMALL, tokens))
    passes = 2 if cached else 1  # written, and read where a token came before
    assert work.state_bytes == passes * (6 * 4 + 6 * 3 * 2)


def test_gates_cost_two_flops_a_weight_and_are_no_matrices() -> None:
    state = [weights for weights in SMALL.weights(8) if weights.operator is OperatorName.STATE]
    assert sum(weights.flops for weights in state) == 2 * 2 * (2 * 3 * 3)
    assert not any(weights.is_matrix for weights in state)


@pytest.mark.parametrize("ranks", [1, 2, 5, 10])
def test_blocks_are_divided_and_the_bias_of_the_output_is_copied(ranks: int) -> None:
    part, run = GEMMA_2B.split(ranks), Run(2.0, 1.0, 99.0, is_decode=True)
    assert (part.inner, part.heads) == (2560 // ranks, 10 // ranks)
    assert ranks * (stored(part, 2560) - 2560) == 20_999_680 - 2560
    assert ranks * sum(s.bytes for s in part.state()) == 25_600
    assert ranks * float(part.work(run)[0].flops) == GEMMA_2B.work(run)[0].flops


def test_what_does_not_divide_is_refused() -> None:
    with pytest.raises(SplitError, match=r"^10 blocks of the RG-LRU do not divide among 4 GPUs\.$"):
        GEMMA_2B.split(4)
    with pytest.raises(SplitError, match=r"^2,560 channels of the RG-LRU do not divide among 3 GPUs\.$"):
        GEMMA_2B.split(3)


def test_the_kind_has_its_name() -> None:
    assert GEMMA_2B.label == "RG-LRU"
