"""vLLM: a share of the card, less weights, less what a profiling pass needed, is the cache; cut into blocks.

    pool = total as torch sees it × gpu_memory_utilization − weights − activation peak − non-torch [− CUDA graphs]

Releases differ in what they charge and in what they print; `VllmRelease` says how.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass

from app.calc.memory.engines.paged_pool import BlockRoom, plan_blocks
from app.calc.memory.engines.parts import Interval, LogLine, Overhead, Rank, Settings, charged, remaining
from app.calc.memory.engines.rules import OverheadLaws, RuledByLaws, activation_peak, mxfp4_padding_bytes, rank_layers
from app.calc.model.architecture import Architecture
from app.calc.model.layers.latent_attention import LatentAttention
from app.calc.model.parameters import WeightPlan
from app.calc.quantity import significant

LATENT_ALIGNMENT = 64
"""Tokens that a block of a model with latent attention and states is a multiple of."""
STATE_ALIGNMENT = 16
CHUNKED_FROM = 32_768
"""Tokens beyond which old releases prefill in chunks by default."""


@dataclass(frozen=True, slots=True)
class VllmRelease:
    """What changed between releases.

    `profiles_model_len`: the profiling pass runs `max_model_len` tokens instead of one step's, as long as that is short
    enough not to be cut in chunks. `is_uniform`: every attention layer is given the whole length, windowed or not.
    `charges_graphs`: captured CUDA graphs come out of the share. `prints_concurrency`: the token line is concurrency ×
    length instead of blocks × block. `logit_bytes`: what the sampler needs for each logit; `least_logit_bytes`: with
    the sampler that does not sort, where an installation may have it.
    """

    profiles_model_len: bool = False
    is_uniform: bool = False
    charges_graphs: bool = True
    prints_concurrency: bool = True
    logit_bytes: float = 10.0
    least_logit_bytes: float = 10.0


@dataclass(frozen=True, slots=True)
class VllmPolicy(RuledByLaws):
    """The rules of one release."""

    name: str
    release: VllmRelease
    laws: OverheadLaws

    def overheads(self, rank: Rank, seen_bytes: float) -> tuple[Overhead, ...]:
        """Activation peak, non-torch memory, and CUDA graphs where they are captured."""
        return self.assumed(rank, *self._peaks(rank), charges_graphs=self.release.charges_graphs)

    def _peaks(self, rank: Rank) -> tuple[float, float]:
        """The profiling pass with the release's usual sampler, and with the one that needs least.

        An old release that cuts its pass in chunks samples nothing in it: no dummy sequence is complete.
        """
        settings, release = rank.settings, self.release
        tokens, sequences = min(settings.step_tokens, settings.max_model_len), settings.sampled_seqs
        if release.profiles_model_len:
            in_chunks = settings.step_tokens < settings.max_model_len > CHUNKED_FROM
            tokens, sequences = (tokens, 0) if in_chunks else (settings.max_model_len, sequences)
        usual, least = (
            activation_peak(rank.architecture, rank.whole, tokens, sequences, size)
            for size in (release.logit_bytes, min(release.least_logit_bytes, release.logit_bytes))
        )
        return usual, least

    def padding_bytes(self, part: Architecture, plan: WeightPlan) -> float:
        """Tiles of MXFP4 experts."""
        return mxfp4_padding_bytes(part, plan)

    def budget_bytes(self, seen_bytes: float, overheads: Iterable[Overhead], settings: Settings) -> float:
        """total × utilization."""
        return seen_bytes * settings.utilization

    def pool(self, seen_bytes: float, weights: Interval, overheads: Iterable[Overhead], settings: Settings) -> Interval:
        return remaining(self.budget_bytes(seen_bytes, overheads, settings), [weights, *charged(overheads)])

    @property
    def pool_formula(self) -> str:
        """What the share leaves, in symbols."""
        return "max(0, M × u − W − A − N − G)" if self.release.charges_graphs else "max(0, M × u − W − A − N)"

    def plan(self, rank: Rank) -> BlockRoom:
        """Blocks of all groups, drawn from one pool."""
        settings = rank.settings
        layers = rank_layers(rank)
        has_latent = any(isinstance(group.mixer, LatentAttention) for group in rank.architecture.layers)
        plan = plan_blocks(
            layers.full_length if self.release.is_uniform else layers,
            block_tokens=settings.block_tokens,
            step_tokens=settings.step_tokens,
            state_alignment=LATENT_ALIGNMENT if has_latent else STATE_ALIGNMENT,
            states=1 + settings.prefix_caching + settings.draft_tokens,
            context_ranks=rank.split.decode_context,
        )
        return BlockRoom(plan, prints_concurrency=self.release.prints_concurrency)

    def log_lines(self, rank: Rank, pool_bytes: float) -> tuple[LogLine, ...]:
        """Available memory, the token line in both forms, and the concurrency at the longest sequence."""
        plan = self.plan(rank)
        length = rank.settings.max_model_len
        gib, blocks = pool_bytes / 2**30, plan.blocks(pool_bytes)
        old, new = plan.block_tokens_line(pool_bytes), plan.concurrency_tokens_line(pool_bytes, length)
        printed, other = (new, old) if self.release.prints_concurrency else (old, new)
        concurrency = plan.concurrency(pool_bytes, length)
        return (
            LogLine("available", "Available KV cache memory", pool_bytes, "B", f"{gib:.2f} GiB"),
            LogLine("blocks", "GPU blocks", blocks, "blocks", f"{blocks:,}"),
            LogLine("tokens", "GPU KV cache size", printed, "tokens", f"{printed:,} tokens"),
            LogLine("other_tokens", self._other_line, other, "tokens", f"{other:,} tokens"),
            LogLine(
                "concurrency",
                f"Maximum concurrency for {length:,} tokens per request",
                concurrency,
                "×",
                f"{concurrency:.2f}x" if math.isfinite(concurrency) else significant(concurrency, 3),
            ),
        )

    @property
    def _other_line(self) -> str:
        if self.release.prints_concurrency:
            return "The same as releases up to 0.20.1 print it: blocks ÷ groups × block"
        return "The same as releases from 0.20.2 print it: concurrency × length"
