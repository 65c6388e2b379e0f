"""Mamba 1 (Jamba): a selective state space of `state_size` numbers for each of `inner` channels.

Source: Gu and Dao, "Mamba", arXiv 2312.00752; weight shapes of Jamba 1.5.
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
class Mamba:
    """`dt_rank` is the inner width of the step's projection; `inner_norms` are Jamba's norms of step, B and C."""

    inner: int
    state_size: int
    dt_rank: int
    conv_width: int = 4
    inner_norms: bool = False
    state_dtype: Dtype = Dtype.FP32

    @property
    def label(self) -> str:
        """Mamba."""
        return "Mamba"

    def weights(self, hidden_size: int) -> tuple[Weights, ...]:
        """2·h·D in, D·(dt + 2s) and dt·D between, D·s of decay, D·h out.

        Worked number: a layer of Jamba-1.5-Mini has 105,308,448.
        """
        group, inner = WeightGroup.ATTENTION, self.inner
        between = self.dt_rank + 2 * self.state_size
        norms = between if self.inner_norms else 0
        return (
            matrix(OperatorName.QKV, group, 2 * hidden_size * inner),
            *convolution_weights(inner, self.conv_width, bias=True),
            matrix(OperatorName.STATE, group, inner * between + self.dt_rank * inner),
            # The step's bias, the decay of each channel and state, and the skip of each channel.
            *vector(OperatorName.STATE, group, inner + inner * self.state_size + inner),
            *vector(OperatorName.NORMS, group, norms, FLOPS_PER_NORM_ELEMENT * norms),
            matrix(OperatorName.OUTPUT, group, inner * hidden_size),
        )

    def cache(self) -> tuple[CacheRows, ...]:
        """None: nothing grows with the context."""
        return ()

    def state(self) -> tuple[State, ...]:
        """Worked number: 8,192 × 16 × 4 B and 8,192 × 3 × 2 B are 573,440 B in a layer of Jamba-1.5-Mini."""
        return recurrent_state(self.inner * self.state_size, self.state_dtype, self.inner, self.conv_width)

    def work(self, run: Run) -> tuple[Work, ...]:
        """Discretise, decay, add, read: 6 FLOP an element of the state."""
        return recurrence(run, 6 * self.inner * self.state_size, self.state())

    def split(self, ranks: int) -> Self:
        """Channels divided."""
        return replace(self, inner=share(self.inner, ranks, "channels of Mamba"))
