"""The ideal engine: inside its share of the card nothing but weights and cache, and pages of one token.

No engine does better, so this is the yardstick: the most that a card can hold.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass

from app.calc.broadcast import scalar
from app.calc.derivation import Term, Working
from app.calc.dtypes import Dtype
from app.calc.memory.cache import kv_bytes_per_sequence, longest_context
from app.calc.memory.engines.parts import (
    EXACT_WEIGHTS,
    MOST_CONCURRENT,
    CachePlan,
    Interval,
    LogLine,
    Overhead,
    Rank,
    Settings,
    WeightSpread,
    remaining,
)
from app.calc.model.architecture import Architecture
from app.calc.model.parameters import WeightPlan


@dataclass(frozen=True, slots=True)
class IdealRoom:
    """Exactly the bytes of the formulas; `context_ranks` share out what grows with the context."""

    architecture: Architecture
    kv_cache: Dtype
    context_ranks: int = 1

    @property
    def unit_bytes(self) -> float:
        return self.sequence_bytes(1)

    def sequence_bytes(self, tokens: int) -> float:
        return scalar(kv_bytes_per_sequence(self.architecture, -(-tokens // self.context_ranks), self.kv_cache))

    def fitting(self, pool_bytes: float, tokens: int) -> int:
        """⌊pool ÷ bytes of one⌋; a model that keeps nothing sets no limit of its own."""
        one = self.sequence_bytes(tokens)
        return math.floor(max(0.0, pool_bytes) / one) if one else MOST_CONCURRENT

    def pool_tokens(self, pool_bytes: float, max_model_len: int) -> int:
        """⌊pool ÷ bytes a token of one sequence of that length⌋."""
        one = self.sequence_bytes(max_model_len)
        return math.floor(max(0.0, pool_bytes) / (one / max_model_len)) if one else MOST_CONCURRENT * max_model_len

    def longest(self, pool_bytes: float, sequences: int) -> int | None:
        """The inverse of `sequence_bytes`."""
        limit = longest_context(self.architecture, max(0.0, pool_bytes) / max(1, sequences), self.kv_cache)
        return None if limit is None else limit.tokens * self.context_ranks

    def explain_sequence(self, tokens: int) -> Working | None:
        return None

    def explain_fitting(self, pool_bytes: float, tokens: int) -> Working:
        """⌊pool ÷ cache of one⌋."""
        one = self.sequence_bytes(tokens)
        if not one:
            return Working("c", (Term("c", "no limit: the model keeps nothing of a sequence", MOST_CONCURRENT, ""),))
        return Working("⌊pool ÷ KV_one⌋", (_pool(pool_bytes), _one(one)))

    def explain_tokens(self, pool_bytes: float, max_model_len: int) -> Working:
        """⌊pool ÷ bytes a token⌋."""
        one = self.sequence_bytes(max_model_len)
        if not one:
            most = MOST_CONCURRENT * max_model_len
            return Working("c", (Term("c", "no limit: the model keeps nothing of a sequence", most, "tokens"),))
        return Working(
            "⌊pool ÷ (KV_one ÷ n)⌋", (_pool(pool_bytes), _one(one), Term("n", "its tokens", max_model_len, "tokens"))
        )

    def explain_longest(self, pool_bytes: float, sequences: int) -> Working:
        """Linear between one window and the next."""
        limit = longest_context(self.architecture, max(0.0, pool_bytes) / max(1, sequences), self.kv_cache)
        if limit is None:
            return Working("c", (Term("c", "every layer has a window", 0, "tokens"),))
        ranks = self.context_ranks
        times = " × k" if ranks > 1 else ""
        terms: tuple[Term, ...] = (
            _pool(pool_bytes),
            Term("B", "sequences that share it", max(1, sequences), ""),
            Term("r", "cache that one more token adds", limit.bytes_per_token, "B"),
            *((Term("k", "context ranks", ranks, ""),) if ranks > 1 else ()),
        )
        if limit.from_tokens:
            terms += (
                Term("c_w", "where the last window is full", limit.from_tokens, "tokens"),
                Term("KV_w", "cache held there", limit.from_bytes, "B"),
            )
            return Working(f"max(0, ⌊c_w + (pool ÷ B − KV_w) ÷ r⌋){times}", terms)
        if limit.from_bytes:
            terms += (Term("S", "states, which a sequence holds before its first token", limit.from_bytes, "B"),)
            return Working(f"max(0, ⌊(pool ÷ B − S) ÷ r⌋){times}", terms)
        return Working(f"⌊pool ÷ B ÷ r⌋{times}", terms)


def _pool(pool_bytes: float) -> Term:
    return Term("pool", "cache pool", max(0.0, pool_bytes), "B")


def _one(size: float) -> Term:
    return Term("KV_one", "cache of one full-length sequence", size, "B")


@dataclass(frozen=True, slots=True)
class IdealPolicy:
    """A share of the card for weights and cache alone."""

    name: str = "an ideal engine"
    sees_all: bool = True
    weights: WeightSpread = EXACT_WEIGHTS

    def overheads(self, rank: Rank, seen_bytes: float) -> tuple[Overhead, ...]:
        """None."""
        return ()

    def padding_bytes(self, part: Architecture, plan: WeightPlan) -> float:
        """None is known."""
        return 0.0

    def budget_bytes(self, seen_bytes: float, overheads: Iterable[Overhead], settings: Settings) -> float:
        """memory × utilization."""
        return seen_bytes * settings.utilization

    def pool(self, seen_bytes: float, weights: Interval, overheads: Iterable[Overhead], settings: Settings) -> Interval:
        """budget − weights. Worked number: 0.9 of an H100 SXM's 81,559 MiB less 16.06 GB leaves 60.91 GB."""
        return remaining(self.budget_bytes(seen_bytes, overheads, settings), [weights])

    def reserved_bytes(self, rank: Rank, plan: CachePlan) -> float:
        """None."""
        return 0.0

    @property
    def pool_formula(self) -> str:
        """What the share leaves, in symbols."""
        return "max(0, M × u − W)"

    def plan(self, rank: Rank) -> IdealRoom:
        """The bytes of the formulas."""
        return IdealRoom(rank.architecture, rank.kv_cache, rank.split.decode_context)

    def log_lines(self, rank: Rank, pool_bytes: float) -> tuple[LogLine, ...]:
        return ()
