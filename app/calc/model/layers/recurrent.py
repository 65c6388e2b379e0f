"""What the recurrent kinds have in common: a short convolution before, and a state read and written in each pass.

Gated delta-net (Qwen3-Next, Qwen3.5): a state of key × value for each value head, decayed and corrected in turn.

Source: Yang et al., "Gated Delta Networks", arXiv 2412.06464; weight shapes of Qwen3-Next.

Kimi delta attention (KDA): a delta-net whose decay is one gate for each channel, made by a low-rank projection.

Source: Kimi Linear, arXiv 2510.26692; weight shapes of Kimi-Linear-48B-A3B.

Lightning attention (MiniMax-01, M1): linear attention with a fixed decay for each head, a gate and a norm.

Source: MiniMax-01, arXiv 2501.08313; weight shapes of MiniMax-Text-01.
"""

from dataclasses import dataclass, replace
from typing import Self

from app.calc.broadcast import indicator
from app.calc.dtypes import Dtype
from app.calc.model.layers.parts import (
    FLOPS_PER_MULTIPLY_ADD,
    FLOPS_PER_NORM_ELEMENT,
    CacheRows,
    OperatorName,
    Run,
    State,
    WeightGroup,
    Weights,
    Work,
    matrix,
    share,
    vector,
)


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


@dataclass(frozen=True, slots=True)
class GatedDeltaNet:
    """Key heads are repeated for the value heads; the state is `state_dtype`, its convolution 16-bit."""

    key_heads: int
    value_heads: int
    key_dim: int
    value_dim: int
    conv_width: int = 4
    state_dtype: Dtype = Dtype.FP32

    @property
    def label(self) -> str:
        return "gated delta-net"

    @property
    def _keys(self) -> int:
        return self.key_heads * self.key_dim

    @property
    def _values(self) -> int:
        return self.value_heads * self.value_dim

    def weights(self, hidden_size: int) -> tuple[Weights, ...]:
        """h·(2K + 2W) + 2h·heads in, convolution over 2K + W, decay, norm, W·h out.

        Worked number: a layer of Qwen3-Next-80B-A3B has 33,718,464.
        """
        group = WeightGroup.ATTENTION
        entering = hidden_size * (2 * self._keys + 2 * self._values) + 2 * hidden_size * self.value_heads
        return (
            matrix(OperatorName.QKV, group, entering),
            *convolution_weights(2 * self._keys + self._values, self.conv_width),
            *vector(OperatorName.STATE, group, 2 * self.value_heads),
            *vector(OperatorName.NORMS, group, self.value_dim, FLOPS_PER_NORM_ELEMENT * self._values),
            matrix(OperatorName.OUTPUT, group, self._values * hidden_size),
        )

    def cache(self) -> tuple[CacheRows, ...]:
        """None: nothing grows with the context."""
        return ()

    def state(self) -> tuple[State, ...]:
        """Worked number: 32 × 128 × 128 × 4 B and 8,192 × 3 × 2 B are 2,146,304 B in a layer of Qwen3-Next."""
        elements = self.value_heads * self.key_dim * self.value_dim
        return recurrent_state(elements, self.state_dtype, 2 * self._keys + self._values, self.conv_width)

    def work(self, run: Run) -> tuple[Work, ...]:
        """Read by key, correct by an outer product, read by query: 6 FLOP an element of the state."""
        return recurrence(run, 6 * self.value_heads * self.key_dim * self.value_dim, self.state())

    def split(self, ranks: int) -> Self:
        """Both kinds of heads divided."""
        return replace(
            self,
            key_heads=share(self.key_heads, ranks, "key heads of the delta-net"),
            value_heads=share(self.value_heads, ranks, "value heads of the delta-net"),
        )


@dataclass(frozen=True, slots=True)
class KimiDeltaAttention:
    """`heads` of `head_dim` for queries, keys and values; `low_rank` is the inner width of the decay's projection.

    The output gate is as low-rank as the decay, or one full matrix where `full_rank_gate`.
    """

    heads: int
    head_dim: int
    low_rank: int
    conv_width: int = 4
    full_rank_gate: bool = False
    state_dtype: Dtype = Dtype.FP32

    @property
    def label(self) -> str:
        return "Kimi delta attention"

    @property
    def _width(self) -> int:
        return self.heads * self.head_dim

    def weights(self, hidden_size: int) -> tuple[Weights, ...]:
        """3·h·P in, decay and gate, h·heads, P·h out, with P = heads × head width.

        Worked number: a layer of Kimi-Linear-48B-A3B has 39,514,272.
        """
        group, width = WeightGroup.ATTENTION, self._width
        factored = hidden_size * self.low_rank + self.low_rank * width
        gate = hidden_size * width if self.full_rank_gate else factored
        return (
            matrix(OperatorName.QKV, group, 3 * hidden_size * width + factored + gate + hidden_size * self.heads),
            *convolution_weights(3 * width, self.conv_width),
            *vector(OperatorName.STATE, group, self.heads + width),
            *vector(OperatorName.NORMS, group, self.head_dim, FLOPS_PER_NORM_ELEMENT * width),
            matrix(OperatorName.OUTPUT, group, width * hidden_size),
        )

    def cache(self) -> tuple[CacheRows, ...]:
        """None: nothing grows with the context."""
        return ()

    def state(self) -> tuple[State, ...]:
        """Worked number: 32 × 128 × 128 × 4 B and 3 × 4,096 × 3 × 2 B are 2,170,880 B in a layer of Kimi-Linear."""
        elements = self.heads * self.head_dim * self.head_dim
        return recurrent_state(elements, self.state_dtype, 3 * self._width, self.conv_width)

    def work(self, run: Run) -> tuple[Work, ...]:
        """As a gated delta-net: 6 FLOP an element of the state."""
        return recurrence(run, 6 * self.heads * self.head_dim * self.head_dim, self.state())

    def split(self, ranks: int) -> Self:
        """Heads divided; the inner width of the low-rank projections is on every GPU."""
        return replace(self, heads=share(self.heads, ranks, "heads of the delta attention"))


@dataclass(frozen=True, slots=True)
class LightningAttention:
    """`heads` of `head_dim`; keys and values have as many."""

    heads: int
    head_dim: int
    state_dtype: Dtype = Dtype.FP32

    @property
    def label(self) -> str:
        return "lightning attention"

    def weights(self, hidden_size: int) -> tuple[Weights, ...]:
        """3·h·P in, h·P gate, norm of P, P·h out. Worked number: 251,666,432 in a layer of MiniMax-M1."""
        group, width = WeightGroup.ATTENTION, self.heads * self.head_dim
        return (
            matrix(OperatorName.QKV, group, 4 * hidden_size * width),
            *vector(OperatorName.NORMS, group, width, FLOPS_PER_NORM_ELEMENT * width),
            matrix(OperatorName.OUTPUT, group, width * hidden_size),
        )

    def cache(self) -> tuple[CacheRows, ...]:
        """None: nothing grows with the context."""
        return ()

    def state(self) -> tuple[State, ...]:
        """One matrix a head. Worked number: 64 × 128 × 128 × 4 B = 4,194,304 B in a layer of MiniMax-M1."""
        return recurrent_state(self.heads * self.head_dim * self.head_dim, self.state_dtype)

    def work(self, run: Run) -> tuple[Work, ...]:
        """Add an outer product, read by query: 4 FLOP an element of the state."""
        return recurrence(run, 4 * self.heads * self.head_dim * self.head_dim, self.state())

    def split(self, ranks: int) -> Self:
        return replace(self, heads=share(self.heads, ranks, "heads of the lightning attention"))
