"""Real-gated linear recurrent unit (RecurrentGemma, Griffin): one number a channel, decayed by a gate of its own.

Source: De et al., "Griffin", arXiv 2402.19427; weight shapes of RecurrentGemma. The gates' matrices are diagonal in
blocks, small, and no part of what quantization touches.
"""

from dataclasses import dataclass, replace
from typing import Self

from app.calc.dtypes import Dtype
from app.calc.model.layers.parts import (
    FLOPS_PER_MULTIPLY_ADD,
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
from app.calc.model.layers.recurrent import convolution_weights, recurrence, recurrent_state


@dataclass(frozen=True, slots=True)
class RgLru:
    """`inner` channels in `heads` blocks, within which the gates mix them."""

    inner: int
    heads: int
    conv_width: int = 4
    state_dtype: Dtype = Dtype.FP32

    @property
    def label(self) -> str:
        return "RG-LRU"

    def weights(self, hidden_size: int) -> tuple[Weights, ...]:
        """2·h·D in, convolution of D, two gates of D²/heads, D of decay, D·h out; a bias everywhere but at the decay.

        Worked number: a layer of RecurrentGemma-2B has 13,107,200 + 5,120 in, 12,800 of convolution, 1,310,720 + 5,120
        in the gates, 2,560 of decay and 6,553,600 + 2,560 out: 20,999,680.
        """
        group, inner = WeightGroup.ATTENTION, self.inner
        gates = 2 * inner * inner // self.heads
        return (
            matrix(OperatorName.QKV, group, 2 * hidden_size * inner),
            *vector(OperatorName.QKV, group, 2 * inner),
            *convolution_weights(inner, self.conv_width, bias=True),
            *vector(OperatorName.STATE, group, gates, FLOPS_PER_MULTIPLY_ADD * gates),
            *vector(OperatorName.STATE, group, 2 * inner + inner),
            matrix(OperatorName.OUTPUT, group, inner * hidden_size),
            *vector(OperatorName.OUTPUT, group, hidden_size),
        )

    def cache(self) -> tuple[CacheRows, ...]:
        """None: nothing grows with the context."""
        return ()

    def state(self) -> tuple[State, ...]:
        """Worked number: 2,560 × 4 B and 2,560 × 3 × 2 B are 25,600 B in a layer of RecurrentGemma-2B."""
        return recurrent_state(self.inner, self.state_dtype, self.inner, self.conv_width)

    def work(self, run: Run) -> tuple[Work, ...]:
        """Decay and add: 2 FLOP a channel."""
        return recurrence(run, 2 * self.inner, self.state())

    def split(self, ranks: int) -> Self:
        """Blocks divided, and their channels with them."""
        return replace(
            self,
            inner=share(self.inner, ranks, "channels of the RG-LRU"),
            heads=share(self.heads, ranks, "blocks of the RG-LRU"),
        )
