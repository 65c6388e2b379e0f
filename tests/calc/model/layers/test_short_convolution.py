"""Gated short convolution: layers of LFM2 by hand, and a convolution of a sequence tap by tap."""

import pytest

from app.calc.dtypes import Dtype
from app.calc.model.layers.parts import OperatorName, Run
from app.calc.model.layers.short_convolution import ShortConvolution
from app.calc.model.split import SplitError

LFM2_350M, LFM2_1_2B = ShortConvolution(1024), ShortConvolution(2048)
BIASED = ShortConvolution(8, 4, bias=True)


def stored(layer: ShortConvolution, hidden_size: int) -> int:
    return sum(weights.stored for weights in layer.weights(hidden_size))


@pytest.mark.parametrize(("layer", "hidden_size"), [(LFM2_350M, 1024), (LFM2_1_2B, 2048)])
def test_a_layer_has_the_parameters_counted_by_hand(layer: ShortConvolution, hidden_size: int) -> None:
    entering = 3 * hidden_size * hidden_size  # a gate before, a gate after, and the input
    assert stored(layer, hidden_size) == entering + 3 * hidden_size + hidden_size * hidden_size


def test_the_worked_number_of_lfm2_1_2b() -> None:
    assert stored(LFM2_1_2B, 2048) == 12_582_912 + 6_144 + 4_194_304 == 16_783_360


def test_biases_are_of_all_three_parts() -> None:
    assert stored(BIASED, 16) - stored(ShortConvolution(8, 4), 16) == 3 * 8 + 8 + 16


def test_the_state_is_what_the_taps_reach_back_to() -> None:
    (state,) = LFM2_1_2B.state()
    assert (state.elements, state.dtype, state.bytes) == (2048 * 2, Dtype.BF16, 8_192)
    assert LFM2_1_2B.cache() == ()
    # Ten such layers and six of attention, of 4,096 tokens: 6 × 2 × 8 × 64 × 2 B × 4,096 and the states.
    assert 6 * 2 * 8 * 64 * 2 * 4_096 + 10 * state.bytes == 50_413_568


@pytest.mark.parametrize("taps", [2, 3, 4])
@pytest.mark.parametrize("split_at", [1, 3, 7])
def test_a_sequence_goes_on_from_the_inputs_that_are_kept(taps: int, split_at: int) -> None:
    """The state is enough, and nothing less is: a convolution in two pieces is that of the whole."""
    layer, inputs = ShortConvolution(1, taps), [3, 1, 4, 1, 5, 9, 2, 6]
    kept = layer.state()[0].elements

    def convolved(past: list[int], new: list[int]) -> list[int]:
        line = [0] * (taps - 1 - len(past)) + past + new
        return [sum((k + 1) * line[i + k] for k in range(taps)) for i in range(len(new))]

    whole = convolved([], inputs)
    first, then = inputs[:split_at], inputs[split_at:]
    assert convolved([], first) + convolved(first[-kept:], then) == whole
    if split_at >= kept:
        assert convolved([], first) + convolved(first[-kept:][1:], then) != whole


@pytest.mark.parametrize("tokens", [1, 2, 17])
@pytest.mark.parametrize("cached", [0, 1000])
def test_taps_cost_two_flops_each_and_the_state_none(tokens: int, cached: int) -> None:
    (work,) = BIASED.work(Run(1.0, float(tokens), float(cached), is_decode=False))
    passes = 2 if cached else 1  # written, and read where a token came before
    assert (work.operator, work.flops, work.state_bytes) == (OperatorName.STATE, 0, passes * 8 * 3 * 2)
    taps = [w.flops for w in BIASED.weights(16) if w.operator is OperatorName.CONVOLUTION]
    assert taps == [2 * 4 * 8]


@pytest.mark.parametrize("ranks", [1, 2, 8])
def test_channels_are_divided(ranks: int) -> None:
    part = LFM2_1_2B.split(ranks)
    assert part.inner == 2048 // ranks
    assert ranks * stored(part, 2048) == 16_783_360
    assert ranks * part.state()[0].bytes == 8_192


def test_what_does_not_divide_is_refused() -> None:
    with pytest.raises(SplitError, match=r"^1,024 channels of the short convolution do not divide among 3 GPUs\.$"):
        LFM2_350M.split(3)


def test_the_kind_has_its_name() -> None:
    assert LFM2_350M.label == "short convolution"
