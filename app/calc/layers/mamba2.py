"""Mamba 2 (Nemotron-H, Granite 4, Falcon-H1): a state of head × state for each head, one decay a head.

Source: Dao and Gu, "Transformers are SSMs", arXiv 2405.21060; weight shapes of Nemotron-H.
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
    copied_share,
    matrix,
    share,
    vector,
)
from app.calc.layers.recurrent import convolution_weights, recurrence, recurrent_state


@dataclass(frozen=True, slots=True)
class Mamba2:
    """Heads share B and C within a group. Not every model has a norm after the recurrence (`gated_norm`)."""

    heads: int
    head_dim: int
    state_size: int
    groups: int
    conv_width: int = 4
    state_dtype: Dtype = Dtype.FP32
    gated_norm: bool = True

    @property
    def label(self) -> str:
        """Mamba-2."""
        return "Mamba-2"

    @property
    def inner(self) -> int:
        """Channels."""
        return self.heads * self.head_dim

    @property
    def _convolved(self) -> int:
        return self.inner + 2 * self.groups * self.state_size

    def weights(self, hidden_size: int) -> tuple[Weights, ...]:
        """h·(D + c + heads) in, convolution of c channels with bias, step, decay and skip a head, norm of D, D·h out.

        Worked number: a layer of Nemotron-H-8B has 109,635,968.
        """
        group = WeightGroup.ATTENTION
        norm = self.inner if self.gated_norm else 0
        return (
            matrix(OperatorName.QKV, group, hidden_size * (self.inner + self._convolved + self.heads)),
            *convolution_weights(self._convolved, self.conv_width, bias=True),
            *vector(OperatorName.STATE, group, 3 * self.heads),
            *vector(OperatorName.NORMS, group, norm, FLOPS_PER_NORM_ELEMENT * norm),
            matrix(OperatorName.OUTPUT, group, self.inner * hidden_size),
        )

    def cache(self) -> tuple[CacheRows, ...]:
        """None: nothing grows with the context."""
        return ()

    def state(self) -> tuple[State, ...]:
        """Worked number: 128 × 64 × 128 × 4 B and 10,240 × 3 × 2 B are 4,255,744 B a layer in Nemotron 3 Super."""
        elements = self.inner * self.state_size
        return recurrent_state(elements, self.state_dtype, self._convolved, self.conv_width)

    def work(self, run: Run) -> tuple[Work, ...]:
        """Add an outer product, read: 4 FLOP an element of the state."""
        return recurrence(run, 4 * self.inner * self.state_size, self.state())

    def split(self, ranks: int) -> Self:
        """Heads divided; groups too, or copied where there are fewer of them than GPUs."""
        return replace(
            self,
            heads=share(self.heads, ranks, "heads of Mamba-2"),
            groups=copied_share(self.groups, ranks, "groups of Mamba-2"),
        )
