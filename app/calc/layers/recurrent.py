"""What the recurrent kinds have in common: a short convolution before, and a state read and written in each pass."""

from app.calc.broadcast import indicator
from app.calc.dtypes import Dtype
from app.calc.layers.parts import FLOPS_PER_MULTIPLY_ADD, OperatorName, Run, State, WeightGroup, Weights, Work, vector


def convolution_weights(channels: int, width: int, *, bias: bool = False) -> tuple[Weights, ...]:
    """A depthwise convolution of `width` taps: too small to be quantized anywhere."""
    flops = FLOPS_PER_MULTIPLY_ADD * channels * width
    return vector(OperatorName.CONVOLUTION, WeightGroup.ATTENTION, channels * (width + (1 if bias else 0)), flops)


def recurrent_state(elements: int, dtype: Dtype, channels: int = 0, width: int = 1) -> tuple[State, ...]:
    """The matrix a layer carries on, and the last `width` − 1 inputs of its convolution in 16 bits."""
    state = (State("recurrent state", elements, dtype),)
    return (*state, State("convolution", channels * (width - 1), Dtype.BF16, channels)) if channels else state


def recurrence(run: Run, flops_per_token: float, states: tuple[State, ...]) -> tuple[Work, ...]:
    """One update a token; the state written once a pass and sequence, and read where there is one to read.

    Counted are the products that every form of the recurrence needs, token by token or in chunks; decays, which chunks
    fold into them, are not. That makes the count a floor.
    """
    reads_and_writes = 1.0 + indicator(run.cached_tokens > 0)
    moved = reads_and_writes * sum(state.bytes for state in states) * run.sequences
    return (Work(OperatorName.STATE, flops_per_token * run.tokens, state_bytes=moved),)
