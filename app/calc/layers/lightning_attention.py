"""Lightning attention (MiniMax-01, M1): linear attention with a fixed decay for each head, a gate and a norm.

Source: MiniMax-01, arXiv 2501.08313; weight shapes of MiniMax-Text-01.
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
from app.calc.layers.recurrent import recurrence, recurrent_state


@dataclass(frozen=True, slots=True)
class LightningAttention:
    """`heads` of `head_dim`; keys and values have as many."""

    heads: int
    head_dim: int
    state_dtype: Dtype = Dtype.FP32

    @property
    def label(self) -> str:
        """Lightning attention."""
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
        """Heads divided."""
        return replace(self, heads=share(self.heads, ranks, "heads of the lightning attention"))
