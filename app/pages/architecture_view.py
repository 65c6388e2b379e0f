"""An architecture in numbers for a page: parameters, bytes, cache, and its strip."""

from dataclasses import dataclass
from functools import cached_property

from app.calc.architecture import Architecture
from app.calc.dtypes import Dtype
from app.calc.kv_cache import cache_shape, kv_bytes_per_sequence
from app.calc.parameters import ParameterCounts, count_parameters, weight_bytes
from app.calc.weight_plan import WeightPlan
from app.pages.editor_tree import spelling
from app.pages.layer_strip import Strip, layer_strip
from app.pages.layer_table import LayerTable, layer_table

CONTEXTS = (1_024, 8_192, 131_072)
USUAL_CONTEXT = 8_192
MOST_DRAWN = 1_000


@dataclass(frozen=True)
class ArchitectureView:
    """What a page says of a model that is not in the catalog."""

    architecture: Architecture
    plan: WeightPlan
    kv_cache: Dtype = Dtype.BF16

    @cached_property
    def counts(self) -> ParameterCounts:
        """Parameters by group."""
        return count_parameters(self.architecture)

    @cached_property
    def weight_bytes(self) -> float:
        """Bytes of everything loaded, under the plan."""
        return weight_bytes(self.counts, self.plan)

    @cached_property
    def strip(self) -> Strip | None:
        """The model layer by layer; None where there are more layers than anyone can look at."""
        if self.architecture.n_layers > MOST_DRAWN:
            return None
        return layer_strip(self.architecture, spelling(self.architecture.order) or None)

    @cached_property
    def layers(self) -> LayerTable:
        """The groups of like layers."""
        return layer_table(self.architecture)

    def kv_bytes_per_token(self, context_tokens: int = USUAL_CONTEXT) -> float:
        """Bytes of cache and state of one sequence, divided by its tokens."""
        return float(kv_bytes_per_sequence(self.architecture, context_tokens, self.kv_cache)) / context_tokens

    @property
    def cache_rows(self) -> list[tuple[int, float, float]]:
        """Context, bytes of a sequence, bytes a token; for three contexts."""
        return [
            (tokens, self.kv_bytes_per_token(tokens) * tokens, self.kv_bytes_per_token(tokens)) for tokens in CONTEXTS
        ]

    @property
    def state_bytes(self) -> float:
        """What a sequence keeps whatever its length."""
        return cache_shape(self.architecture).state_bytes

    @property
    def active_rows(self) -> list[tuple[str, float]]:
        """Parameters of one token by the three ways of counting that vendors have."""
        counts = self.counts
        return [
            ("all weights", counts.active),
            ("without the input embedding", counts.active_without_embedding),
            ("without embedding and head", counts.active_without_embeddings),
        ]
