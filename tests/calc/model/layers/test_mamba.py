"""Mamba 1: layers of Jamba 1.5 by hand, the selective scan counted element by element."""

import pytest

from app.calc.model.layers.mamba import Mamba
from app.calc.model.layers.parts import OperatorName, Run
from app.calc.model.split import SplitError

JAMBA_MINI = Mamba(8192, 16, 256, inner_norms=True)
JAMBA_LARGE = Mamba(16_384, 16, 512, inner_norms=True)
SMALL = Mamba(4, 3, 2)


def stored(layer: Mamba, hidden_size: int) -> int:
    return sum(weights.stored for weights in layer.weights(hidden_size))


@pytest.mark.parametrize(
    ("layer", "hidden_size", "inner", "step", "layers", "published"),
    [(JAMBA_MINI, 4096, 8192, 256, 28, 2_948_636_544), (JAMBA_LARGE, 8192, 16_384, 512, 63, 26_480_920_032)],
)
def test_a_layer_has_the_parameters_counted_by_hand(
    layer: Mamba, hidden_size: int, inner: int, step: int, layers: int, published: int
) -> None:
    entering, convolution = 2 * hidden_size * inner, 4 * inner + inner
    selection = inner * (step + 2 * 16) + step * inner + inner  # to step, B and C; the step back up, with its bias
    decay, skip, norms = inner * 16, inner, step + 2 * 16
    by_hand = entering + convolution + selection + decay + skip + norms + inner * hidden_size
    assert stored(layer, hidden_size) == by_hand
    assert layers * by_hand == published


def test_the_worked_number_of_jamba_mini() -> None:
    assert stored(JAMBA_MINI, 4096) == 105_308_448
    assert stored(Mamba(8192, 16, 256), 4096) == 105_308_448 - 288  # without Jamba's three small norms


def test_the_state_has_the_bytes_of_the_published_shape() -> None:
    recurrent, convolution = JAMBA_MINI.state()
    assert (recurrent.bytes, convolution.bytes) == (8192 * 16 * 4, 8192 * 3 * 2)
    assert recurrent.bytes + convolution.bytes == 573_440
    assert 28 * 573_440 == 16_056_320
    assert 63 * sum(state.bytes for state in JAMBA_LARGE.state()) == 72_253_440
    # At 1,024 tokens 4 full layers of 2,048 elements and the states: 32,064 B a token.
    assert (4 * 2048 * 2 * 1024 + 16_056_320) / 1024 == 32_064
    assert JAMBA_MINI.cache() == ()


def one_by_one(layer: Mamba, tokens: int) -> int:
    """Every number of every channel's state, token after token."""
    flops = 0
    for _token in range(tokens):
        for _channel in range(layer.inner):
            for _number in range(layer.state_size):
                flops += 1  # the step times the rate: the exponent of the decay
                flops += 1  # decay
                flops += 2  # add the input times B
                flops += 2  # read by C
    return flops


@pytest.mark.parametrize("tokens", [1, 2, 17])
@pytest.mark.parametrize("cached", [0, 1000])
def test_a_prefill_is_the_recurrence_token_by_token(tokens: int, cached: int) -> None:
    (work,) = SMALL.work(Run(1.0, float(tokens), float(cached), is_decode=False))
    assert (work.operator, work.flops) == (OperatorName.STATE, one_by_one(SMALL, tokens))
    passes = 2 if cached else 1  # written, and read where a token came before
    assert work.state_bytes == passes * (4 * 3 * 4 + 4 * 3 * 2)


def test_a_decode_step_is_one_token_a_sequence_however_long_the_context() -> None:
    (first,), near, far = (SMALL.work(Run(8.0, 1.0, n, is_decode=True)) for n in (0.0, 1.0, 10.0**6))
    assert near == far
    assert near[0].flops == first.flops == 8 * one_by_one(SMALL, 1)
    assert near[0].state_bytes == 2 * float(first.state_bytes)  # the first token has no state to read


@pytest.mark.parametrize("ranks", [1, 2, 8, 64])
def test_channels_are_divided_and_the_norms_are_on_every_gpu(ranks: int) -> None:
    part, run = JAMBA_MINI.split(ranks), Run(2.0, 1.0, 99.0, is_decode=True)
    assert ranks * (stored(part, 4096) - 288) == 105_308_448 - 288
    assert ranks * sum(s.bytes for s in part.state()) == 573_440
    assert ranks * float(part.work(run)[0].flops) == JAMBA_MINI.work(run)[0].flops
    assert ranks * float(part.work(run)[0].state_bytes) == JAMBA_MINI.work(run)[0].state_bytes


def test_channels_that_do_not_divide_are_refused() -> None:
    with pytest.raises(SplitError, match=r"^8,192 channels of Mamba do not divide among 3 GPUs\.$"):
        JAMBA_MINI.split(3)


def test_the_kind_has_its_name() -> None:
    assert JAMBA_MINI.label == "Mamba"
