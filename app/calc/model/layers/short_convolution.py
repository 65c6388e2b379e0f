"""Gated short convolution (LFM2): a few taps between two gates, and nothing carried on but the last inputs.

Source: shapes of the class LFM2 in transformers: input, gate before and gate after in one projection, a depthwise
convolution, and an output projection. Limits: a class may hold one input more than the convolution needs; engines do
not.
"""

from dataclasses import dataclass, replace
from typing import Self

from app.calc.dtypes import Dtype
from app.calc.model.layers.parts import (
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
from app.calc.model.layers.recurrent import convolution_weights, recurrence


@dataclass(frozen=True, slots=True)
class ShortConvolution:
    """`inner` channels and `conv_width` taps; all three parts have a bias, or none."""

    inner: int
    conv_width: int = 3
    bias: bool = False

    @property
    def label(self) -> str:
        return "short convolution"

    def weights(self, hidden_size: int) -> tuple[Weights, ...]:
        """3·h·D in, D·taps between, D·h out.

        Worked number: a layer of LFM2-1.2B has 12,582,912 + 6,144 + 4,194,304 = 16,783,360.
        """
        group, biased = WeightGroup.ATTENTION, self.bias
        return (
            matrix(OperatorName.QKV, group, 3 * hidden_size * self.inner),
            *vector(OperatorName.QKV, group, 3 * self.inner if biased else 0),
            *convolution_weights(self.inner, self.conv_width, bias=biased),
            matrix(OperatorName.OUTPUT, group, self.inner * hidden_size),
            *vector(OperatorName.OUTPUT, group, hidden_size if biased else 0),
        )

    def cache(self) -> tuple[CacheRows, ...]:
        """None: nothing grows with the context."""
        return ()

    def state(self) -> tuple[State, ...]:
        """The last taps − 1 gated inputs. Worked number: 2,048 × 2 × 2 B are 8,192 B in a layer of LFM2-1.2B."""
        return (State("convolution", self.inner * (self.conv_width - 1), Dtype.BF16),)

    def work(self, run: Run) -> tuple[Work, ...]:
        """Nothing beside the taps, which count as weights: the inputs kept are read and written."""
        return recurrence(run, 0.0, self.state())

    def split(self, ranks: int) -> Self:
        return replace(self, inner=share(self.inner, ranks, "channels of the short convolution"))
