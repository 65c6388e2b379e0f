"""What the policies of real engines have in common: they see what the driver leaves, and assume by their laws."""

from app.calc.architecture import Architecture
from app.calc.cached_layers import CachedLayers, CacheFormat, cached_layers
from app.calc.engines.laws import OverheadLaws, found
from app.calc.engines.parts import CachePlan, Overhead, Part, Rank, WeightSpread
from app.calc.weight_plan import WeightPlan


class RuledByLaws:
    """A policy with laws; each engine says how large its pass is, what it charges, and how it cuts the cache up."""

    __slots__ = ()
    laws: OverheadLaws

    @property
    def sees_all(self) -> bool:
        """No: the driver keeps a part."""
        return False

    @property
    def weights(self) -> WeightSpread:
        """As the logs have it."""
        return self.laws.weights

    def padding_bytes(self, part: Architecture, plan: WeightPlan) -> float:
        """None is known."""
        return 0.0

    def reserved_bytes(self, rank: Rank, plan: CachePlan) -> float:
        """None: a pool is shared by what runs."""
        return 0.0

    def assumed(
        self,
        rank: Rank,
        peak_bytes: float,
        least_bytes: float | None = None,
        *,
        charges_peak: bool = True,
        charges_graphs: bool = False,
    ) -> tuple[Overhead, ...]:
        """Activations, non-framework memory, and graphs where the engine captures any; each as given, or by its law."""
        given, laws = rank.settings.given, self.laws
        peak = found(
            Part.ACTIVATION, given.activation, laws.activation, peak_bytes, least_bytes, is_charged=charges_peak
        )
        rest = laws.non_framework(given.non_framework, rank)
        if laws.graphs is None:
            return peak, rest
        scale = 0.0 if rank.settings.is_eager else 1.0
        graphs = found(Part.GRAPHS, given.graphs, laws.graphs, scale=scale, is_charged=charges_graphs)
        return peak, rest, graphs


def rank_layers(rank: Rank, stored: CacheFormat | None = None) -> CachedLayers:
    """What the layers of one GPU keep, a draft's included; elements side by side unless `stored` says otherwise."""
    draft = rank.draft.architecture if rank.draft else None
    stored = stored or CacheFormat.plain(rank.kv_cache)
    return cached_layers(rank.architecture, stored, rank.settings.draft_tokens, draft)
