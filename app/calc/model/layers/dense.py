"""The dense feed-forward block: gated (gate, up and down matrices) or plain (up and down).

Channel mixing (RWKV): a plain block that mixes its input with the one before, under a gate of its own in RWKV-6.

The row of the input before, which a sequence keeps, is counted with the layer's time mixing. Source: Peng et al.,
"Eagle and Finch", arXiv 2404.05892, and "RWKV-7", arXiv 2503.14456.
"""

import math
from dataclasses import dataclass, replace
from typing import Self

from app.calc.model.layers.parts import OperatorName, WeightGroup, Weights, matrix, vector
from app.calc.model.split import Split


@dataclass(frozen=True, slots=True)
class DenseFeedForward:
    """`intermediate_size` is the width between the matrices."""

    intermediate_size: int
    gated: bool = True
    bias: bool = False

    @property
    def label(self) -> str:
        return "gated" if self.gated else "plain"

    @property
    def _input_matrices(self) -> int:
        return 2 if self.gated else 1

    def weights(self, hidden_size: int) -> tuple[Weights, ...]:
        """3·h·i gated, 2·h·i plain; one bias a matrix. Worked number: 3 × 4,096 × 14,336 = 176,160,768."""
        group, inner = WeightGroup.FEED_FORWARD, self.intermediate_size
        biases = self._input_matrices * inner if self.bias else 0
        return (
            matrix(OperatorName.GATE_UP, group, self._input_matrices * hidden_size * inner),
            *vector(OperatorName.GATE_UP, group, biases),
            matrix(OperatorName.DOWN, group, inner * hidden_size),
            *vector(OperatorName.DOWN, group, hidden_size if self.bias else 0),
        )

    def live_elements(self, hidden_size: int) -> int:
        """What goes into the activation and what comes out of it: 3·i gated, 2·i plain."""
        return (self._input_matrices + 1) * self.intermediate_size

    def split(self, split: Split) -> Self:
        """The inner width divided, rounded up: the last GPU's part is padded."""
        return replace(self, intermediate_size=math.ceil(self.intermediate_size / split.tensor))


@dataclass(frozen=True, slots=True)
class ChannelMix:
    """`intermediate_size` is the width between the matrices; `receptance` gates what comes out, channel by channel."""

    intermediate_size: int
    receptance: bool = False

    @property
    def label(self) -> str:
        return "channel mixing"

    def weights(self, hidden_size: int) -> tuple[Weights, ...]:
        """2·h·i, h² of the gate, and a mixture for each of what reads the input.

        Worked number: a block of RWKV-6 World 1.6B has 2 × 14,680,064 + 4,194,304 + 4,096 = 33,558,528.
        """
        group, inner = WeightGroup.FEED_FORWARD, self.intermediate_size
        gate = (matrix(OperatorName.GATE_UP, group, hidden_size * hidden_size),) if self.receptance else ()
        return (
            matrix(OperatorName.GATE_UP, group, hidden_size * inner),
            *gate,
            *vector(OperatorName.GATE_UP, group, (2 if self.receptance else 1) * hidden_size),
            matrix(OperatorName.DOWN, group, inner * hidden_size),
        )

    def live_elements(self, hidden_size: int) -> int:
        """What goes into the activation and what comes out of it, and the gate's channels."""
        return 2 * self.intermediate_size + (hidden_size if self.receptance else 0)

    def split(self, split: Split) -> Self:
        """The inner width divided, rounded up; the gate is on every GPU."""
        return replace(self, intermediate_size=math.ceil(self.intermediate_size / split.tensor))
