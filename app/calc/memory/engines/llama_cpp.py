"""llama.cpp: the cache of every slot is allocated when it starts, at the full context; it fits or the start fails.

    cache = slots × context × bytes a token, windows shorter, states once a slot in 32 bits

Slots have a context each, or share the cells of one (`kv_unified`); contexts and windows come in cells of 256 tokens.
There is no share to set: what weights, cache and compute buffers leave of the card stays free.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from types import MappingProxyType

from app.calc.derivation import Term, Working
from app.calc.dtypes import Dtype
from app.calc.memory.cache import CachedLayers, CacheFormat
from app.calc.memory.engines.parts import (
    MOST_CONCURRENT,
    MOST_TOKENS,
    CachePlan,
    Interval,
    LogLine,
    Overhead,
    Rank,
    Settings,
    charged,
    remaining,
)
from app.calc.memory.engines.rules import OverheadLaws, RuledByLaws, forward_bytes, rank_layers

CELL_TOKENS = 256
"""Contexts are rounded up to so many tokens."""
BLOCK_BYTES = MappingProxyType({Dtype.INT8: 34 / 32, Dtype.FP8: 34 / 32, Dtype.INT4: 18 / 32, Dtype.FP4: 18 / 32})
"""An element of q8_0 and of q4_0: 32 of them share a 16-bit scale. There is no 8- or 4-bit float cache."""
FLOAT_BYTES = 4.0
"""Compute buffers hold 32-bit floats."""


@dataclass(frozen=True, slots=True)
class SlotRoom:
    """A cache of one context for each slot; a window layer keeps its window and one step, in cells of 256."""

    layers: CachedLayers
    step_tokens: int

    @property
    def unit_bytes(self) -> float:
        """256 tokens of every layer that keeps everything."""
        return CELL_TOKENS * self.layers.bytes_per_token

    def sequence_bytes(self, tokens: int) -> float:
        """One slot with a context of `tokens`."""
        total = self.layers.state_bytes
        for row in self.layers.rows:
            kept = tokens if row.window is None else min(tokens, row.window + self.step_tokens)
            total += row.layers * row.bytes_per_token * -(-kept // CELL_TOKENS) * CELL_TOKENS
        return total

    def shared_row_bytes(self, context_tokens: int, slots: int) -> float:
        """The cells of one context that all slots share, without states.

        A window layer keeps the window of every slot and one step, and never more than the context. Worked number: 4
        slots that share 8,192 tokens of a window of 1,024 have 4 × 1,024 + 512 = 4,608 cells, as a log of Gemma 4 says.
        """
        total = 0.0
        for row in self.layers.rows:
            kept = context_tokens
            if row.window is not None:
                kept = min(context_tokens, row.window * slots + self.step_tokens)
            total += row.layers * row.bytes_per_token * -(-kept // CELL_TOKENS) * CELL_TOKENS
        return total

    def fitting(self, pool_bytes: float, tokens: int) -> int:
        """Slots of that context that what is left of the card would hold."""
        one = self.sequence_bytes(tokens)
        return math.floor(max(0.0, pool_bytes) / one) if one else MOST_CONCURRENT

    def pool_tokens(self, pool_bytes: float, max_model_len: int) -> int:
        """The longest context of a single slot; where no length needs more, the longest that is looked at."""
        longest = self.longest(pool_bytes, 1)
        return MOST_TOKENS if longest is None else longest

    def longest(self, pool_bytes: float, sequences: int) -> int | None:
        """The most cells that each of so many slots can have."""
        share = max(0.0, pool_bytes) / max(1, sequences)
        if self.sequence_bytes(MOST_TOKENS) <= share:
            return None
        low, high = 0, MOST_TOKENS // CELL_TOKENS
        while high - low > 1:
            middle = (low + high) // 2
            if self.sequence_bytes(middle * CELL_TOKENS) <= share:
                low = middle
            else:
                high = middle
        return low * CELL_TOKENS

    def explain_sequence(self, tokens: int) -> Working | None:
        """Row by row in cells of 256, and the states."""
        parts, terms = ["S"], [Term("S", "states of one slot", self.layers.state_bytes, "B")]
        for place, row in enumerate(self.layers.rows, 1):
            kept = tokens if row.window is None else min(tokens, row.window + self.step_tokens)
            what = "tokens of the slot" if row.window is None else "window and one step"
            parts.append(f"L_{place} × b_{place} × ⌈c_{place} ÷ 256⌉ × 256")
            terms += [
                Term(f"L_{place}", f"layers that keep {row.label}", row.layers, ""),
                Term(f"b_{place}", "bytes of a token in one of them", row.bytes_per_token, "B"),
                Term(f"c_{place}", what, kept, "tokens"),
            ]
        return Working(" + ".join(parts), tuple(terms))

    def explain_fitting(self, pool_bytes: float, tokens: int) -> Working:
        """⌊what is left ÷ one slot⌋."""
        one = self.sequence_bytes(tokens)
        if not one:
            return Working("c", (Term("c", "no limit: the model keeps nothing of a sequence", MOST_CONCURRENT, ""),))
        return Working("⌊pool ÷ KV_slot⌋", (_left(pool_bytes), Term("KV_slot", "cache of one slot", one, "B")))

    def explain_tokens(self, pool_bytes: float, max_model_len: int) -> Working:
        """A single context, in cells."""
        label = f"longest context of a single slot that fits, in cells of {CELL_TOKENS}"
        return Working("c", (Term("c", label, self.pool_tokens(pool_bytes, max_model_len), "tokens"),))

    def explain_longest(self, pool_bytes: float, sequences: int) -> Working:
        """Cells that each slot can have."""
        found = self.longest(pool_bytes, sequences) or 0
        label = f"longest context of which {max(1, sequences):,} slots fit, in cells of {CELL_TOKENS}"
        return Working("c", (Term("c", label, found, "tokens"),))


def _left(pool_bytes: float) -> Term:
    return Term("pool", "what is left for slots", max(0.0, pool_bytes), "B")


@dataclass(frozen=True, slots=True)
class LlamaCppPolicy(RuledByLaws):
    """One set of rules."""

    name: str
    laws: OverheadLaws

    def overheads(self, rank: Rank, seen_bytes: float) -> tuple[Overhead, ...]:
        """The compute buffer of one micro-batch, and the driver's context; nothing is captured.

        Builds until about the middle of 2026 reserve a logit for every token of the micro-batch, later ones do not.
        """
        settings = rank.settings
        step = max(1, min(settings.step_tokens, settings.max_model_len))
        wide = FLOAT_BYTES / Dtype.BF16.bytes
        least = wide * forward_bytes(rank.architecture, step)
        peak = max(least, step * rank.whole.vocab_size * FLOAT_BYTES) if rank.architecture.holds_head else least
        return self.assumed(rank, peak, least)

    def budget_bytes(self, seen_bytes: float, overheads: Iterable[Overhead], settings: Settings) -> float:
        """What the user leaves to it."""
        return seen_bytes * settings.utilization

    def pool(self, seen_bytes: float, weights: Interval, overheads: Iterable[Overhead], settings: Settings) -> Interval:
        """What is left for the slots."""
        return remaining(self.budget_bytes(seen_bytes, overheads, settings), [weights, *charged(overheads)])

    @property
    def pool_formula(self) -> str:
        """What the share leaves, in symbols."""
        return "max(0, M × u − W − A − N)"

    def plan(self, rank: Rank) -> SlotRoom:
        element_bytes = BLOCK_BYTES.get(rank.kv_cache, rank.kv_cache.bytes)
        stored = CacheFormat(rank.kv_cache, element_bytes, is_plain=True, state_dtype=Dtype.FP32)
        return SlotRoom(rank_layers(rank, stored), rank.settings.step_tokens)

    def reserved_bytes(self, rank: Rank, plan: CachePlan) -> float:
        """Every slot at its whole context, where slots and context are set."""
        settings = rank.settings
        if not settings.is_length_set or settings.max_num_seqs is None:
            return 0.0
        return settings.max_num_seqs * plan.sequence_bytes(settings.max_model_len)

    def log_lines(self, rank: Rank, pool_bytes: float) -> tuple[LogLine, ...]:
        """The cache of the slots that were asked for, at the longest sequence."""
        plan = self.plan(rank)
        length, slots = rank.settings.max_model_len, rank.settings.max_num_seqs or 1
        size = slots * plan.sequence_bytes(length)
        context = slots * length
        return (
            LogLine("context", "n_ctx", context, "tokens", f"{context}"),
            LogLine("pool", "KV buffer size of this GPU", size, "B", f"{size / 2**20:.2f} MiB"),
        )
