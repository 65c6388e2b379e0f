"""Kimi delta attention (KDA): a delta-net whose decay is one gate for each channel, made by a low-rank projection.

Source: Kimi Linear, arXiv 2510.26692; weight shapes of Kimi-Linear-48B-A3B.
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
        """Kimi delta attention."""
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
