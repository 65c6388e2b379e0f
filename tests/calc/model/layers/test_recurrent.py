"""What recurrent kinds share: a convolution, a state with the convolution's last inputs, one update a token."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.calc.dtypes import Dtype
from app.calc.model.layers.parts import OperatorName, Run, State
from app.calc.model.layers.recurrent import convolution_weights, recurrence, recurrent_state
from tests.calc.strategies import array, at, repeatable


def test_a_convolution_has_its_taps_and_a_bias_for_each_channel() -> None:
    (plain,) = convolution_weights(8192, 4)
    (biased,) = convolution_weights(10_240, 4, bias=True)
    assert (plain.params, plain.flops) == (8192 * 4, 2 * 8192 * 4)
    assert (biased.params, biased.flops) == (10_240 * 4 + 10_240, 2 * 10_240 * 4)
    assert (plain.operator, plain.is_matrix) == (OperatorName.CONVOLUTION, False)


def test_a_convolution_is_counted_tap_by_tap() -> None:
    flops = 0
    for _channel in range(6):
        for _tap in range(4):
            flops += 2
    (weights,) = convolution_weights(6, 4)
    assert weights.flops == flops


def test_a_state_keeps_all_but_one_of_the_inputs_that_its_convolution_sees() -> None:
    assert recurrent_state(524_288, Dtype.FP32, 8192, 4) == (
        State("recurrent state", 524_288, Dtype.FP32),
        State("convolution", 8192 * 3, Dtype.BF16, 8192),
    )
    assert recurrent_state(1_048_576, Dtype.FP32) == (State("recurrent state", 1_048_576, Dtype.FP32),)


@repeatable
@given(st.integers(1, 100), st.integers(1, 1000), st.integers(0, 10_000), st.booleans())
def test_a_pass_updates_once_a_token_and_moves_the_state_once_a_sequence(
    sequences: int, new: int, cached: int, is_decode: bool
) -> None:
    states = recurrent_state(12, Dtype.FP32, 5, 4)
    new = 1 if is_decode else new
    (work,) = recurrence(Run(float(sequences), float(new), float(cached), is_decode=is_decode), 84.0, states)
    assert work.operator is OperatorName.STATE
    assert work.flops == 84 * sequences * new
    moved = 0
    for _sequence in range(sequences):
        moved += 12 * 4 + 5 * 3 * 2  # written
        if cached:
            moved += 12 * 4 + 5 * 3 * 2  # what the tokens before have left
    assert work.state_bytes == moved
    assert work.cache_elements == 0


def test_without_a_state_nothing_moves() -> None:
    (work,) = recurrence(Run(4.0, 1.0, 9.0, is_decode=True), 7.0, ())
    assert (work.flops, work.state_bytes) == (28, 0)


def test_arrays_are_their_elements() -> None:
    states, batches, lengths = recurrent_state(12, Dtype.BF16), [1.0, 64.0], [1.0, 100.0, 5000.0]
    cached = [0.0, 1.0, 0.0]
    table = Run(array(batches)[:, None], array(lengths), array(cached), is_decode=False)
    (work,) = recurrence(table, 5.0, states)
    for i, sequences in enumerate(batches):
        for j, new in enumerate(lengths):
            (one,) = recurrence(Run(sequences, new, cached[j], is_decode=False), 5.0, states)
            assert at(work.flops, (2, 3), (i, j)) == pytest.approx(float(one.flops))
            assert at(work.state_bytes, (2, 3), (i, j)) == one.state_bytes
