"""The vocabulary that every layer kind is described in: weights, cached rows, state, and work on them.

A kind says what it stores and what one layer of it does in a pass; counting, timing and splitting are the same for all.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol, Self

from app.calc.broadcast import Quantity
from app.calc.dtypes import Dtype
from app.calc.model.layers.span import Span
from app.calc.model.split import Split, SplitError

FLOPS_PER_MULTIPLY_ADD = 2
FLOPS_PER_NORM_ELEMENT = 4  # square, accumulate, scale by the root mean square, multiply by the gain


class OperatorName(StrEnum):
    """Operators of a pass, in the order they run; everything that a drafter does is one."""

    DRAFT = "draft"
    EMBEDDING = "embedding"
    NORMS = "norms"
    SIDE_PATHS = "side_paths"
    QKV = "qkv"
    CONVOLUTION = "convolution"
    COMPRESSOR = "compressor"
    INDEXER = "indexer"
    LATENT_UP = "latent_up"
    ATTENTION = "scores_and_values"
    STATE = "state_update"
    OUTPUT = "attention_output"
    ROUTER = "router"
    EXPERTS = "experts"
    SHARED_EXPERTS = "shared_experts"
    GATE_UP = "gate_up"
    DOWN = "down"
    HEAD = "head"
    ALL_REDUCE = "all_reduce"


class WeightGroup(StrEnum):
    """Weights that a checkpoint stores in one format. Vectors of any group (gains, biases) stay 16-bit."""

    EMBEDDING = "embedding"
    ATTENTION = "attention"
    FEED_FORWARD = "feed_forward"
    SHARED_EXPERTS = "shared_experts"
    ROUTED_EXPERTS = "routed_experts"
    ROUTER = "router"
    NORMS = "norms"
    SIDE_PATHS = "side_paths"
    HEAD = "head"


@dataclass(frozen=True, slots=True)
class Weights:
    """Parameters that one operator of one layer reads.

    `copies` are alternatives (experts) of which each token goes through `chosen`, in expectation. A vector is not
    quantized and costs no arithmetic unless `flops_per_token` says so. A table is not read whole: `gathered` elements
    of it are, for each token. What `is_pooled` works on the tokens of all data-parallel ranks of a replica.
    """

    operator: OperatorName
    group: WeightGroup
    params: int
    copies: int = 1
    chosen: float = 1.0
    is_matrix: bool = True
    flops_per_token: float | None = None
    gathered: int | None = None
    is_pooled: bool = False

    @property
    def is_choice(self) -> bool:
        """True where a token does not go through all copies; of a group of experts even one alone may be passed by."""
        return self.chosen < self.copies

    @property
    def stored(self) -> int:
        return self.params * self.copies

    @property
    def active(self) -> float:
        """Parameters that a token meets."""
        return self.params * self.chosen

    @property
    def flops(self) -> float:
        """FLOP of one token: two for each parameter of a matrix that it meets."""
        if self.flops_per_token is not None:
            return self.flops_per_token
        return FLOPS_PER_MULTIPLY_ADD * self.active if self.is_matrix and self.gathered is None else 0.0

    def touched(self, tokens: Quantity) -> Quantity:
        """Copies that a step of `tokens` reads, in expectation: E(1 − (1 − k/E)^B).

        Worked number: 64 tokens that each choose 8 of 128 experts touch 125.9 of them.
        """
        if self.chosen >= self.copies:
            return float(self.copies)
        return self.copies * (1 - (1 - self.chosen / self.copies) ** tokens)


@dataclass(frozen=True, slots=True)
class Working:
    """The elements of a row over `layers` layers as a formula: `{L}` stands for the layers.

    Each term is a symbol, what it is, and its value.
    """

    formula: str
    terms: tuple[tuple[str, str, int], ...]


@dataclass(frozen=True, slots=True)
class CacheRows:
    """A row of `width` elements for each position (or each `compression` positions) that the span keeps.

    `working` says how the width comes about, for the reader of a derivation.
    """

    label: str
    width: int
    span: Span
    compression: int = 1
    working: Working | None = None

    @property
    def width_per_token(self) -> float:
        """Elements that one more token adds."""
        return self.width / self.compression


@dataclass(frozen=True, slots=True)
class State:
    """What a recurrent layer keeps of a sequence, however long it is; a little more where tokens are guessed."""

    label: str
    elements: int
    dtype: Dtype
    elements_per_draft_token: int = 0

    @property
    def bytes(self) -> float:
        """Bytes of one layer and sequence."""
        return self.elements * self.dtype.bytes

    def bytes_with_drafts(self, draft_tokens: int) -> float:
        """The same where each step also carries guessed tokens, whose inputs the convolution keeps."""
        return self.bytes + draft_tokens * self.elements_per_draft_token * self.dtype.bytes


@dataclass(frozen=True, slots=True)
class Run:
    """One pass: `sequences` that each compute `new_tokens` after `cached_tokens`.

    In decode one token is new and the others of its context are cached, or a few are, where some were guessed: those
    are counted as if all saw the same context, and read it once together. A prefill computes many at once.
    `matrix_speedup` is how much faster the layers' matrices are multiplied than scores and values. The tokens of so
    many data-parallel ranks come `ranks_together` in the experts.
    """

    sequences: Quantity
    new_tokens: Quantity
    cached_tokens: Quantity
    is_decode: bool
    matrix_speedup: float = 1.0
    ranks_together: Quantity = 1.0

    @property
    def tokens(self) -> Quantity:
        return self.sequences * self.new_tokens

    @property
    def pooled_tokens(self) -> Quantity:
        """Tokens of all data-parallel ranks, which share out the experts."""
        return self.tokens * self.ranks_together

    @property
    def context_tokens(self) -> Quantity:
        """Tokens of a sequence once the pass is done; of a decode step, once its first token is."""
        return self.cached_tokens + (1.0 if self.is_decode else self.new_tokens)

    def pairs(self, span: Span) -> Quantity:
        """Query-key pairs of all sequences."""
        if self.is_decode:
            return self.tokens * span.visible(self.context_tokens)
        return self.sequences * (span.pairs(self.context_tokens) - span.pairs(self.cached_tokens))

    def rows_read(self, span: Span) -> Quantity:
        """Positions of the cache that the pass cannot avoid reading, of all sequences."""
        if self.is_decode:
            return self.sequences * span.visible(self.context_tokens)
        return self.sequences * (self.new_tokens + span.reach(self.cached_tokens))


@dataclass(frozen=True, slots=True)
class Work:
    """What one layer does beside its weights: `cache_elements` are read, `state_bytes` read and written."""

    operator: OperatorName
    flops: Quantity
    cache_elements: Quantity = 0.0
    state_bytes: Quantity = 0.0


class Mixer(Protocol):
    """What lets tokens see each other: attention or a recurrence."""

    @property
    def label(self) -> str:
        """The field's name of the kind, with what tells two of a model apart."""
        ...

    def weights(self, hidden_size: int) -> tuple[Weights, ...]:
        """Parameters of one layer."""
        ...

    def cache(self) -> tuple[CacheRows, ...]:
        """What one sequence adds to this layer's cache."""
        ...

    def state(self) -> tuple[State, ...]:
        """What one sequence keeps whatever its length."""
        ...

    def work(self, run: Run) -> tuple[Work, ...]:
        """Arithmetic and reads beside the weights, of one layer and all sequences of the pass."""
        ...

    def split(self, ranks: int) -> Self:
        """The part of one of `ranks` GPUs.

        Raises:
            SplitError: something does not divide.
        """
        ...


class FeedForward(Protocol):
    """What works on each token alone."""

    @property
    def label(self) -> str:
        """The field's name of the kind."""
        ...

    def weights(self, hidden_size: int) -> tuple[Weights, ...]:
        """Parameters of one block."""
        ...

    def live_elements(self, hidden_size: int) -> int:
        """Elements of one token that are alive at a time inside the block; decides the peak of a pass."""
        ...

    def split(self, split: Split) -> "FeedForward":
        """The part of one GPU of a stage.

        Raises:
            SplitError: something does not divide.
        """
        ...


def matrix(operator: OperatorName, group: WeightGroup, params: int) -> Weights:
    """A matrix that every token goes through."""
    return Weights(operator, group, params)


def vector(
    operator: OperatorName, group: WeightGroup, params: int, flops_per_token: float = 0.0
) -> tuple[Weights, ...]:
    """Gains or biases; nothing where there are none."""
    if not params:
        return ()
    return (Weights(operator, group, params, is_matrix=False, flops_per_token=flops_per_token),)


def share(elements: int, ranks: int, what: str) -> int:
    """The part of one of `ranks`.

    Raises:
        SplitError: they do not divide.
    """
    if elements % ranks:
        raise SplitError(f"{elements:,} {what} do not divide among {ranks:,} GPUs.")
    return elements // ranks


def copied_share(elements: int, ranks: int, what: str) -> int:
    """The part of one of `ranks`, of things that are copied where there are fewer of them than GPUs.

    Raises:
        SplitError: neither divides the other.
    """
    if elements >= ranks:
        return share(elements, ranks, what)
    if ranks % elements:
        raise SplitError(f"{elements:,} {what} cannot be copied evenly to {ranks:,} GPUs.")
    return 1
