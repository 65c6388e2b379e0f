"""Gated delta-net (Qwen3-Next, Qwen3.5): a state of key × value for each value head, decayed and corrected in turn.

Source: Yang et al., "Gated Delta Networks", arXiv 2412.06464; weight shapes of Qwen3-Next.
"""

from dataclasses import dataclass, replace
from typing import Self

from app.calc.dtypes import Dtype
from app.calc.layers.parts import (
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
from app.calc.layers.recurrent import convolution_weights, recurrence, recurrent_state


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
        """Gated delta-net."""
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
