"""The vocabulary of memory policies: intervals, overheads with their evidence, one GPU's needs, and its cache plan.

The largest numbers that a scenario may ask for.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from app.calc.derivation import Working
from app.calc.dtypes import Dtype
from app.calc.model.architecture import Architecture
from app.calc.model.parameters import WeightPlan
from app.calc.model.split import Split
from app.calc.quantity import GIB


@dataclass(frozen=True, slots=True)
class Interval:
    """Bytes, most likely and in eight cases of ten between `low` and `high`."""

    low: float
    mid: float
    high: float

    @staticmethod
    def exactly(value: float) -> "Interval":
        """Known: no width."""
        return Interval(value, value, value)

    @property
    def sides(self) -> tuple[float, float, float]:
        return self.low, self.mid, self.high

    @property
    def is_exact(self) -> bool:
        """True where nothing is assumed."""
        return self.low == self.high


def remaining(total: float, taken: Iterable[Interval]) -> Interval:
    """What is left of `total`. The widths of independent parts add as squares, each side for itself."""
    parts = tuple(taken)
    mid = total - sum(part.mid for part in parts)
    below = math.sqrt(sum((part.high - part.mid) ** 2 for part in parts))
    above = math.sqrt(sum((part.mid - part.low) ** 2 for part in parts))
    return Interval(mid - below, mid, mid + above)


class Part(StrEnum):
    """What takes memory beside weights and cache."""

    DRIVER = "driver"
    ACTIVATION = "activation"
    NON_FRAMEWORK = "non_framework"
    GRAPHS = "graphs"


@dataclass(frozen=True, slots=True)
class Overhead:
    """One part: how much, whether it was given or is assumed, and on what that rests.

    `is_charged` parts are taken out of the engine's share before the cache; the others lie outside of it.
    """

    part: Part
    bytes: Interval
    is_given: bool
    is_charged: bool
    evidence: str


@dataclass(frozen=True, slots=True)
class WeightSpread:
    """Loaded ÷ computed weights, in eight logs of ten, and what the allocator adds; `evidence` says which `n` logs."""

    low: float = 1.0
    high: float = 1.0
    evidence: str = ""
    added_gib: float = 0.0
    n: int = 0

    @property
    def words(self) -> str:
        """The evidence with the count of its logs."""
        return self.evidence.replace("{n}", str(self.n))

    def interval(self, computed_bytes: float) -> Interval:
        """The interval in bytes."""
        mid = computed_bytes + self.added_gib * GIB
        return Interval(mid * self.low, mid, mid * self.high)


EXACT_WEIGHTS = WeightSpread()


@dataclass(frozen=True, slots=True)
class Given:
    """Bytes of one GPU that were measured or typed; None where they are to be assumed."""

    total_memory: float | None = None
    weights: float | None = None
    activation: float | None = None
    non_framework: float | None = None
    graphs: float | None = None
    kv_pool: float | None = None


NOTHING_GIVEN = Given()


@dataclass(frozen=True, slots=True)
class Settings:
    """The engine's settings that divide memory. `max_num_seqs` None: buffers are for `profiled_seqs`."""

    utilization: float
    max_model_len: int
    step_tokens: int
    is_length_set: bool = False
    max_num_seqs: int | None = None
    profiled_seqs: int = 256
    block_tokens: int = 16
    prefix_caching: bool = True
    is_eager: bool = False
    draft_tokens: int = 0
    given: Given = NOTHING_GIVEN

    @property
    def sampled_seqs(self) -> int:
        """Sequences that the sampler's buffers are sized for."""
        return self.max_num_seqs or self.profiled_seqs


@dataclass(frozen=True, slots=True)
class Draft:
    """A model that guesses, beside the last stage, and the format of its weights."""

    architecture: Architecture
    weights: WeightPlan


@dataclass(frozen=True, slots=True)
class Rank:
    """One GPU of a stage: its part of the model, and all that decides what it needs beside weights.

    `architecture` is the part, `whole` the model; `weights_bytes` are those the part takes (a draft's included).
    `shares_memory`: the card's memory is that of the machine, of which others hold a part. `is_bus_linked`: peers reach
    each other over the bus of the machine or a bridge, not over a fabric.
    """

    architecture: Architecture
    whole: Architecture
    split: Split
    kv_cache: Dtype
    settings: Settings
    weights_bytes: float
    draft: Draft | None = None
    shares_memory: bool = False
    is_bus_linked: bool = False


class CachePlan(Protocol):
    """How a pool becomes room for sequences. Whole units only: what does not fill one is lost."""

    @property
    def unit_bytes(self) -> float:
        """Bytes of the smallest piece that is handed out; 0 where the GPU keeps nothing."""
        ...

    def sequence_bytes(self, tokens: int) -> float:
        """Bytes of the pool that a sequence of `tokens` takes."""
        ...

    def fitting(self, pool_bytes: float, tokens: int) -> int:
        """Sequences of `tokens` that a pool holds at a time."""
        ...

    def pool_tokens(self, pool_bytes: float, max_model_len: int) -> int:
        """Tokens of a pool, as the engine's log counts them."""
        ...

    def longest(self, pool_bytes: float, sequences: int) -> int | None:
        """The length that each of so many sequences can reach; None where memory sets no limit."""
        ...

    def explain_sequence(self, tokens: int) -> Working | None:
        """The working of `sequence_bytes`; None where the shapes of the cache say it all."""
        ...

    def explain_fitting(self, pool_bytes: float, tokens: int) -> Working:
        """The working of `fitting`."""
        ...

    def explain_tokens(self, pool_bytes: float, max_model_len: int) -> Working:
        """The working of `pool_tokens`."""
        ...

    def explain_longest(self, pool_bytes: float, sequences: int) -> Working:
        """The working of `longest`, where it is not None."""
        ...


@dataclass(frozen=True, slots=True)
class LogLine:
    """A line that the engine prints when it starts, with the value that belongs into it."""

    id: str
    label: str
    value: float
    unit: str
    text: str


class Policy(Protocol):
    """How one engine divides a GPU."""

    @property
    def name(self) -> str:
        """The engine whose rules these are."""
        ...

    @property
    def sees_all(self) -> bool:
        """True where the rules start from all that the driver reports, and not from what is left beside the driver."""
        ...

    @property
    def weights(self) -> "WeightSpread":
        """How far loaded weights lie from what the tensors sum to."""
        ...

    def overheads(self, rank: Rank, seen_bytes: float) -> tuple[Overhead, ...]:
        """What takes memory beside weights and cache."""
        ...

    def padding_bytes(self, part: Architecture, plan: WeightPlan) -> float:
        """What loading adds to the weights of a GPU's part."""
        ...

    def budget_bytes(self, seen_bytes: float, overheads: Iterable[Overhead], settings: Settings) -> float:
        """The engine's share of the memory it sees."""
        ...

    def pool(self, seen_bytes: float, weights: Interval, overheads: Iterable[Overhead], settings: Settings) -> Interval:
        """Bytes for the cache; negative where weights and overheads exceed the share."""
        ...

    def reserved_bytes(self, rank: Rank, plan: CachePlan) -> float:
        """Cache that is allocated when the engine starts, whatever runs."""
        ...

    @property
    def pool_formula(self) -> str:
        """The pool in symbols: M memory seen, u share, W weights, A activations, N non-framework, G graphs."""
        ...

    def plan(self, rank: Rank) -> CachePlan:
        """How the pool is cut up."""
        ...

    def log_lines(self, rank: Rank, pool_bytes: float) -> tuple[LogLine, ...]:
        """What the engine prints of its cache."""
        ...


def charged(overheads: Iterable[Overhead]) -> list[Interval]:
    """The parts that come out of the engine's share."""
    return [overhead.bytes for overhead in overheads if overhead.is_charged]


MOST_CONCURRENT = 1_000_000
"""Requests at a time."""
MOST_TOKENS = 10**8
"""Tokens of a sequence."""
MOST_CARDS = 8
"""GPUs of one node, and so of tensor parallelism."""
