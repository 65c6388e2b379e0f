"""RWKV-7 time mixing (Goose): a state of head × head, decayed by channel and corrected along a direction of its own.

Every input is mixed with the one before (token shift), for which a sequence keeps two rows: one for this mixer and one
for the block after it, whose row is counted here. Source: Peng et al., "RWKV-7", arXiv 2503.14456; weight shapes of the
RWKV-7 World models.
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
from app.calc.layers.recurrent import recurrence

_MIXED = 6  # receptance, decay, key, value, rate and gate each have their own mixture with the input before


@dataclass(frozen=True, slots=True)
class Rwkv7:
    """`heads` of `head_dim`; `shifted` elements are in a row of the token shift: the hidden size.

    Decay, rate and gate come from two thin matrices each, and so does the share of the first layer's values that a
    layer takes over: the first layer itself has none (`value_rank`).
    """

    heads: int
    head_dim: int
    shifted: int
    decay_rank: int
    rate_rank: int
    gate_rank: int
    value_rank: int | None = None
    state_dtype: Dtype = Dtype.FP32

    @property
    def label(self) -> str:
        """The name of its kind, and what the first layer goes without."""
        return "RWKV-7" if self.value_rank else "RWKV-7, first layer"

    @property
    def _width(self) -> int:
        return self.heads * self.head_dim

    def weights(self, hidden_size: int) -> tuple[Weights, ...]:
        """3·h·P in, thin matrices of (h + P)·rank, P·h out; biases, mixtures, and a norm with a bias.

        Worked number: a layer of RWKV7-World3-1.5B has 4 × 4,194,304 in the large matrices, 4,096 × 512 in the thin
        ones and 14 × 2,048 in vectors: 18,903,040.
        """
        group, width, ranks = WeightGroup.ATTENTION, self._width, self._ranks
        biases = 3 if self.value_rank else 2  # of decay and rate, and of the value's share
        return (
            matrix(OperatorName.QKV, group, 3 * hidden_size * width),
            *vector(OperatorName.QKV, group, _MIXED * hidden_size),
            matrix(OperatorName.STATE, group, hidden_size * ranks),
            matrix(OperatorName.STATE, group, ranks * width),
            # Biases, two gains on the key, and the weight of a token's own key and value.
            *vector(OperatorName.STATE, group, (biases + 3) * width),
            *vector(OperatorName.NORMS, group, 2 * width, FLOPS_PER_NORM_ELEMENT * width),
            matrix(OperatorName.OUTPUT, group, width * hidden_size),
        )

    @property
    def _ranks(self) -> int:
        return self.decay_rank + self.rate_rank + self.gate_rank + (self.value_rank or 0)

    def cache(self) -> tuple[CacheRows, ...]:
        """None: nothing grows with the context."""
        return ()

    def state(self) -> tuple[State, ...]:
        """Worked number: 32 × 64 × 64 × 4 B and 2 × 2,048 × 2 B are 532,480 B in a layer of RWKV7-World3-1.5B."""
        matrices = State("recurrent state", self._width * self.head_dim, self.state_dtype)
        return (matrices, State("token shift", 2 * self.shifted, Dtype.BF16))

    def work(self, run: Run) -> tuple[Work, ...]:
        """Read along the direction, correct, add, read by receptance: 8 FLOP an element of the state."""
        return recurrence(run, 8 * self._width * self.head_dim, self.state())

    def split(self, ranks: int) -> Self:
        """Heads divided; the thin matrices' inner widths and the rows of the token shift are on every GPU."""
        return replace(self, heads=share(self.heads, ranks, "heads of RWKV-7"))
