"""TensorRT-LLM: a fraction of what is free once the engine and its buffers stand, in blocks of tokens.

    pool = (total − context − weights − buffers) × free_gpu_memory_fraction

Every attention layer is given the whole length unless windows are set by hand.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from app.calc.memory.engines.paged_pool import BlockRoom, plan_blocks
from app.calc.memory.engines.parts import Interval, LogLine, Overhead, Rank, Settings, charged, remaining
from app.calc.memory.engines.rules import OverheadLaws, RuledByLaws, activation_peak, rank_layers

LOGIT_BYTES = 8.0
"""Bytes for each logit: a 32-bit copy and the sampler's workspace beside it."""


@dataclass(frozen=True, slots=True)
class TensorRtLlmPolicy(RuledByLaws):
    """One set of rules."""

    name: str
    laws: OverheadLaws

    def overheads(self, rank: Rank, seen_bytes: float) -> tuple[Overhead, ...]:
        """Buffers grow with the batch and the step; context and collectives are there before."""
        settings = rank.settings
        tokens = max(1, min(settings.step_tokens, settings.max_model_len))
        peak = activation_peak(rank.architecture, rank.whole, tokens, settings.sampled_seqs, LOGIT_BYTES)
        return self.assumed(rank, peak)

    def budget_bytes(self, seen_bytes: float, overheads: Iterable[Overhead], settings: Settings) -> float:
        """All that the card has: the fraction is of what is left of it."""
        return seen_bytes

    def pool(self, seen_bytes: float, weights: Interval, overheads: Iterable[Overhead], settings: Settings) -> Interval:
        """The fraction of what is free."""
        free = remaining(seen_bytes, [weights, *charged(overheads)])
        return Interval(*(side * settings.utilization if side > 0 else side for side in free.sides))

    @property
    def pool_formula(self) -> str:
        """What the share leaves, in symbols."""
        return "max(0, M − N − A − W) × u"

    def plan(self, rank: Rank) -> BlockRoom:
        layers = rank_layers(rank)
        plan = plan_blocks(
            layers.full_length,
            block_tokens=rank.settings.block_tokens,
            step_tokens=rank.settings.step_tokens,
        )
        return BlockRoom(plan, prints_concurrency=False)

    def log_lines(self, rank: Rank, pool_bytes: float) -> tuple[LogLine, ...]:
        """The pool, its blocks and its tokens."""
        plan = self.plan(rank)
        blocks, tokens = plan.blocks(pool_bytes), plan.block_tokens_line(pool_bytes)
        size = blocks * plan.unit_bytes
        return (
            LogLine("blocks", "blocks in KV cache primary pool", blocks, "blocks", f"{blocks}"),
            LogLine("tokens", "max tokens in paged KV cache", tokens, "tokens", f"{size / 2**30:.2f} GiB for {tokens}"),
        )
