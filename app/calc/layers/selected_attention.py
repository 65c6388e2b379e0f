"""Grouped attention over positions that an indexer chose one by one: what an index-sparse MLA layer becomes without its
latent.

No published model has it; `app.calc.attention_variants` makes it to compare the two.
"""

from dataclasses import dataclass, replace
from typing import Self

from app.calc.layers.grouped_attention import GroupedAttention
from app.calc.layers.indexer import Indexer
from app.calc.layers.parts import FLOPS_PER_MULTIPLY_ADD, CacheRows, OperatorName, Run, State, Weights, Work
from app.calc.layers.span import Selection


@dataclass(frozen=True, slots=True)
class SelectedAttention:
    """Grouped attention over the `top` positions that this layer's indexer, or (None) an earlier one's, has chosen."""

    attention: GroupedAttention
    top: int
    indexer: Indexer | None = None

    @property
    def label(self) -> str:
        """The grouping over a selection, and whether the layer makes it."""
        kind = f"{self.attention.kind}, best {self.top:,}"
        return kind if self.indexer else f"{kind} of a neighbour's index"

    def weights(self, hidden_size: int) -> tuple[Weights, ...]:
        """Those of the attention, and of the indexer where there is one."""
        if self.indexer is None:
            return self.attention.weights(hidden_size)
        query_input = self.attention.query_rank or hidden_size
        return (*self.attention.weights(hidden_size), *self.indexer.weights(hidden_size, query_input))

    def cache(self) -> tuple[CacheRows, ...]:
        """Keys and values of every position; and its index key."""
        return (*self.attention.cache(), *(self.indexer.cache() if self.indexer else ()))

    def state(self) -> tuple[State, ...]:
        """None."""
        return ()

    def work(self, run: Run) -> tuple[Work, ...]:
        """The index over everything, attention over the selection."""
        chosen, grouped = Selection(self.top), self.attention
        index = self.indexer.work(run, self.top) if self.indexer else ()
        per_pair = FLOPS_PER_MULTIPLY_ADD * (grouped.query_width + grouped.output_width)
        read = (grouped.key_width + grouped.value_width) * run.rows_read(chosen)
        return (*index, Work(OperatorName.ATTENTION, per_pair * run.pairs(chosen), read))

    def split(self, ranks: int) -> Self:
        """The attention is divided; the indexer is on every GPU."""
        return replace(self, attention=self.attention.split(ranks))
