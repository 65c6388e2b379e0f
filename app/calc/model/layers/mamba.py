"""Mamba 1 (Jamba): a selective state space of `state_size` numbers for each of `inner` channels.

Source: Gu and Dao, "Mamba", arXiv 2312.00752; weight shapes of Jamba 1.5.

Mamba 2 (Nemotron-H, Granite 4, Falcon-H1): a state of head × state for each head, one decay a head.

Source: Dao and Gu, "Transformers are SSMs", arXiv 2405.21060; weight shapes of Nemotron-H.

Attention and Mamba 2 side by side (Falcon-H1): both read the layer's input, and their outputs are added.

Made of the two kinds as they are; nothing is shared between them but the norm before.
"""

from dataclasses import dataclass, replace
from typing import Self

from app.calc.dtypes import Dtype
from app.calc.model.layers.grouped_attention import GroupedAttention
from app.calc.model.layers.parts import (
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
from app.calc.model.layers.recurrent import convolution_weights, recurrence, recurrent_state


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
        return replace(self, inner=share(self.inner, ranks, "channels of Mamba"))


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


@dataclass(frozen=True, slots=True)
class ParallelMamba2:
    """A layer keeps a row for every position and a state besides."""

    attention: GroupedAttention
    mamba: Mamba2

    @property
    def label(self) -> str:
        """The attention's label and the other's."""
        return f"{self.attention.label} beside {self.mamba.label}"

    def weights(self, hidden_size: int) -> tuple[Weights, ...]:
        """Those of both.

        Worked number: a layer of Falcon-H1-0.5B has 1,310,720 in attention and 5,014,344 in Mamba 2.
        """
        return (*self.attention.weights(hidden_size), *self.mamba.weights(hidden_size))

    def cache(self) -> tuple[CacheRows, ...]:
        """The attention's keys and values. Worked number: 2 × 2 × 64 = 256 elements in Falcon-H1-0.5B."""
        return self.attention.cache()

    def state(self) -> tuple[State, ...]:
        """The recurrence's. Worked number: 1,536 × 128 × 4 B and 1,792 × 3 × 2 B are 797,184 B in Falcon-H1-0.5B."""
        return self.mamba.state()

    def work(self, run: Run) -> tuple[Work, ...]:
        return (*self.attention.work(run), *self.mamba.work(run))

    def split(self, ranks: int) -> Self:
        """Each divided in its own way."""
        return replace(self, attention=self.attention.split(ranks), mamba=self.mamba.split(ranks))
