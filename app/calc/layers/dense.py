"""The dense feed-forward block: gated (gate, up and down matrices) or plain (up and down)."""

import math
from dataclasses import dataclass, replace
from typing import Self

from app.calc.layers.parts import OperatorName, WeightGroup, Weights, matrix, vector
from app.calc.split import Split


@dataclass(frozen=True, slots=True)
class DenseFeedForward:
    """`intermediate_size` is the width between the matrices."""

    intermediate_size: int
    gated: bool = True
    bias: bool = False

    @property
    def label(self) -> str:
        """Gated or plain."""
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
