"""SGLang: a static fraction of what is free before loading holds weights and cache; the rest is for the running pass.

    pool = free after the weights − free before them × (1 − mem_fraction_static) = free before × fraction − weights

Nothing is profiled: activations and CUDA graphs must find room in what the fraction leaves.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from app.calc.dtypes import Dtype
from app.calc.memory.cache import CacheFormat
from app.calc.memory.engines.parts import Interval, LogLine, Overhead, Part, Rank, Settings, remaining
from app.calc.memory.engines.rules import OverheadLaws, RuledByLaws, forward_bytes, rank_layers
from app.calc.memory.engines.slot_pool import TokenRoom
from app.calc.model.architecture import Architecture, LayerGroup
from app.calc.model.layers.grouped_attention import GroupedAttention

FP4_BYTES = 9 / 16
"""An element of a 4-bit float cache: 16 of them share an 8-bit scale."""


@dataclass(frozen=True, slots=True)
class SglangPolicy(RuledByLaws):
    """One set of rules; releases differ in their default fraction, which the scenario writes out."""

    name: str
    laws: OverheadLaws

    def overheads(self, rank: Rank, seen_bytes: float) -> tuple[Overhead, ...]:
        """Context and collectives come before loading; activations and graphs lie in what the fraction leaves."""
        settings = rank.settings
        peak = forward_bytes(rank.architecture, max(1, min(settings.step_tokens, settings.max_model_len)))
        return self.assumed(rank, peak, charges_peak=False)

    def free_before(self, seen_bytes: float, overheads: Iterable[Overhead]) -> Interval:
        """What is free when loading begins."""
        return remaining(seen_bytes, [o.bytes for o in overheads if o.part is Part.NON_FRAMEWORK])

    def budget_bytes(self, seen_bytes: float, overheads: Iterable[Overhead], settings: Settings) -> float:
        """fraction × free before loading."""
        return self.free_before(seen_bytes, overheads).mid * settings.utilization

    def pool(self, seen_bytes: float, weights: Interval, overheads: Iterable[Overhead], settings: Settings) -> Interval:
        """What the fraction leaves beside the weights."""
        free, share = self.free_before(seen_bytes, overheads), settings.utilization
        spread = Interval(*(share * (free.mid - side) for side in (free.high, free.mid, free.low)))
        return remaining(share * free.mid, [weights, spread])

    @property
    def pool_formula(self) -> str:
        """What the share leaves, in symbols."""
        return "max(0, (M − N) × u − W)"

    def plan(self, rank: Rank) -> TokenRoom:
        """Tokens one by one, or in pages."""
        stored = CacheFormat(rank.kv_cache, FP4_BYTES if rank.kv_cache is Dtype.FP4 else rank.kv_cache.bytes)
        layers = rank_layers(replace(rank, architecture=with_own_caches(rank.architecture)), stored)
        return TokenRoom(layers, rank.settings.block_tokens)

    def log_lines(self, rank: Rank, pool_bytes: float) -> tuple[LogLine, ...]:
        """The pool and its tokens; sizes are printed as GB and are GiB."""
        plan = self.plan(rank)
        tokens = plan.tokens(pool_bytes)
        size = tokens * plan.cell_bytes
        return (
            LogLine("pool", "KV Cache is allocated", size, "B", f"{size / 2**30:.2f} GB"),
            LogLine("tokens", "max_total_num_tokens", tokens, "tokens", f"{tokens}"),
        )


def with_own_caches(part: Architecture) -> Architecture:
    """`part`, every layer with a cache of its own: the engine allocates one even for a layer that reads another's.

    Worked number: Gemma 4 E4B has 35 windowed layers of 2,048 B and 7 full ones of 4,096 B; 997,846 tokens of the full
    pool and 0.8 times as many of the other are 79.94 GiB, as a log prints.
    """
    return replace(part, layers=tuple(_with_own_cache(group) for group in part.layers))


def _with_own_cache(group: LayerGroup) -> LayerGroup:
    mixer = group.mixer
    if not isinstance(mixer, GroupedAttention) or not mixer.shares_cache:
        return group
    return replace(group, mixer=replace(mixer, shares_cache=False))
