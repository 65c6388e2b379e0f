"""Block-sparse grouped attention (MiniMax-M3): an indexer chooses blocks of positions; all keys and values are kept."""

from dataclasses import dataclass, replace
from typing import Self

from app.calc.layers.grouped_attention import GroupedAttention
from app.calc.layers.indexer import Indexer
from app.calc.layers.parts import FLOPS_PER_MULTIPLY_ADD, CacheRows, OperatorName, Run, State, Weights, Work
from app.calc.layers.span import Selection


@dataclass(frozen=True, slots=True)
class BlockSparseAttention:
    """Grouped attention over the `top_blocks` best blocks of `block` positions."""

    attention: GroupedAttention
    top_blocks: int
    block: int
    indexer: Indexer

    @property
    def label(self) -> str:
        """The grouping and the selection."""
        return f"{self.attention.kind}, best {self.top_blocks:,} blocks of {self.block:,}"

    def weights(self, hidden_size: int) -> tuple[Weights, ...]:
        """Those of the attention and of the indexer."""
        return (*self.attention.weights(hidden_size), *self.indexer.weights(hidden_size, hidden_size))

    def cache(self) -> tuple[CacheRows, ...]:
        """Keys, values and index keys of every position: sparsity saves reads, not memory."""
        return (*self.attention.cache(), *self.indexer.cache())

    def state(self) -> tuple[State, ...]:
        """None."""
        return ()

    def work(self, run: Run) -> tuple[Work, ...]:
        """The index over everything, attention over the chosen blocks."""
        chosen, grouped = Selection(self.top_blocks * self.block), self.attention
        per_pair = FLOPS_PER_MULTIPLY_ADD * (grouped.query_width + grouped.output_width)
        read = (grouped.key_width + grouped.value_width) * run.rows_read(chosen)
        return (*self.indexer.work(run, chosen.top), Work(OperatorName.ATTENTION, per_pair * run.pairs(chosen), read))

    def split(self, ranks: int) -> Self:
        """The attention is divided; the indexer is on every GPU."""
        return replace(self, attention=self.attention.split(ranks))
