"""RWKV-6 time mixing (Finch): a state of head × head, decayed channel by channel as the input says.

Each input is mixed with the one before, in shares that a thin matrix computes; a sequence keeps two such rows, that of
the block after it among them. Source: Peng et al., "Eagle and Finch", arXiv 2404.05892; weight shapes of the RWKV-6
World models.

RWKV-7 time mixing (Goose): a state of head × head, decayed by channel and corrected along a direction of its own.

Every input is mixed with the one before (token shift), for which a sequence keeps two rows: one for this mixer and one
for the block after it, whose row is counted here. Source: Peng et al., "RWKV-7", arXiv 2503.14456; weight shapes of the
RWKV-7 World models.
"""

from dataclasses import dataclass, replace
from typing import Self

from app.calc.dtypes import Dtype
from app.calc.model.layers.parts import (
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
from app.calc.model.layers.recurrent import recurrence

_MIXED = 5  # decay, key, value, receptance and gate each have their own mixture with the input before


@dataclass(frozen=True, slots=True)
class Rwkv6:
    """`heads` of `head_dim`; `shifted` elements are in a row of the token shift: the hidden size.

    `mix_rank` is the inner width, for each of the five mixtures, of what computes their shares; `decay_rank` that of
    the decay.
    """

    heads: int
    head_dim: int
    shifted: int
    mix_rank: int
    decay_rank: int
    state_dtype: Dtype = Dtype.FP32

    @property
    def label(self) -> str:
        """The name of its kind."""
        return "RWKV-6"

    @property
    def _width(self) -> int:
        return self.heads * self.head_dim

    def weights(self, hidden_size: int) -> tuple[Weights, ...]:
        """4·h·P in, 10·h·rank for the mixtures, (h + P)·rank for the decay, P·h out; vectors, a norm with a bias.

        Worked number: a layer of RWKV-6 World 1.6B has 5 × 4,194,304 in the large matrices, 2,048 × 448 in the thin
        ones and 10 × 2,048 in vectors: 21,909,504.
        """
        group, width = WeightGroup.ATTENTION, self._width
        return (
            matrix(OperatorName.QKV, group, 4 * hidden_size * width),
            # Into the mixtures and back, of the hidden state and not of heads; and into the decay.
            matrix(OperatorName.STATE, group, hidden_size * (2 * _MIXED * self.mix_rank + self.decay_rank)),
            matrix(OperatorName.STATE, group, self.decay_rank * width),
            *vector(OperatorName.QKV, group, (_MIXED + 1) * hidden_size),
            # The decay's bias, and the weight of a token's own key and value.
            *vector(OperatorName.STATE, group, 2 * width),
            *vector(OperatorName.NORMS, group, 2 * width, FLOPS_PER_NORM_ELEMENT * width),
            matrix(OperatorName.OUTPUT, group, width * hidden_size),
        )

    def cache(self) -> tuple[CacheRows, ...]:
        """None: nothing grows with the context."""
        return ()

    def state(self) -> tuple[State, ...]:
        """Worked number: 32 × 64 × 64 × 4 B and 2 × 2,048 × 2 B are 532,480 B in a layer of RWKV-6 World 1.6B."""
        matrices = State("recurrent state", self._width * self.head_dim, self.state_dtype)
        return (matrices, State("token shift", 2 * self.shifted, Dtype.BF16))

    def work(self, run: Run) -> tuple[Work, ...]:
        """Add an outer product, read by receptance: 4 FLOP an element of the state."""
        return recurrence(run, 4 * self._width * self.head_dim, self.state())

    def split(self, ranks: int) -> Self:
        """Heads divided; what reads and makes the mixtures, and the rows of the token shift, are on every GPU."""
        return replace(self, heads=share(self.heads, ranks, "heads of RWKV-6"))


_RWKV7_MIXED = 6  # receptance, decay, key, value, rate and gate each have their own mixture with the input before


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
            *vector(OperatorName.QKV, group, _RWKV7_MIXED * hidden_size),
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
