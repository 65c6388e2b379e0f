"""Attention and Mamba 2 side by side (Falcon-H1): both read the layer's input, and their outputs are added.

Made of the two kinds as they are; nothing is shared between them but the norm before.
"""

from dataclasses import dataclass, replace
from typing import Self

from app.calc.layers.grouped_attention import GroupedAttention
from app.calc.layers.mamba2 import Mamba2
from app.calc.layers.parts import CacheRows, Run, State, Weights, Work


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
        """That of both."""
        return (*self.attention.work(run), *self.mamba.work(run))

    def split(self, ranks: int) -> Self:
        """Each divided in its own way."""
        return replace(self, attention=self.attention.split(ranks), mamba=self.mamba.split(ranks))
