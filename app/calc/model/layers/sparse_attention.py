"""The lightning indexer: small heads that score every position, so that attention reads only the best.

Source: DeepSeek-V3.2, technical report of 2025, section 2.1; GLM-5 and MiniMax-M3 have one of their own width.

Grouped attention over positions that an indexer chose one by one: what an index-sparse MLA layer becomes without its
latent.

No published model has it; `app.calc.model.attention_variants` makes it to compare the two.

Block-sparse grouped attention (MiniMax-M3): an indexer chooses blocks of positions; all keys and values are kept.
"""

from dataclasses import dataclass, replace
from typing import Self

from app.calc.broadcast import indicator, maximum, minimum
from app.calc.model.layers.grouped_attention import GroupedAttention
from app.calc.model.layers.parts import (
    FLOPS_PER_MULTIPLY_ADD,
    CacheRows,
    OperatorName,
    Run,
    State,
    WeightGroup,
    Weights,
    Work,
    matrix,
    vector,
)
from app.calc.model.layers.span import FULL, Selection


@dataclass(frozen=True, slots=True)
class Indexer:
    """`heads` queries of `dim` against one key of `dim` a position.

    `weighs_heads` adds a projection of the hidden state to one weight a head.
    """

    heads: int
    dim: int
    weighs_heads: bool = True

    def weights(self, hidden_size: int, query_input: int) -> tuple[Weights, ...]:
        """Queries from `query_input` (the query latent, or the hidden state), keys and weights from the hidden state.

        Worked number: DeepSeek-V3.2 has 1,536 × 64 × 128 + 7,168 × 128 + 256 + 7,168 × 64 = 13,959,424 a layer.
        """
        params = query_input * self.heads * self.dim + hidden_size * self.dim
        if self.weighs_heads:
            params += hidden_size * self.heads
        return (
            matrix(OperatorName.INDEXER, WeightGroup.ATTENTION, params),
            *vector(OperatorName.INDEXER, WeightGroup.ATTENTION, 2 * self.dim),
        )

    def cache(self) -> tuple[CacheRows, ...]:
        """A key of `dim` for every position; it is cache too."""
        return (CacheRows("index keys", self.dim, FULL),)

    def work(self, run: Run, top: int) -> tuple[Work, ...]:
        """Every position scored: 2·heads·dim a pair, every key read; nothing for queries that may see all anyway."""
        context, is_needed = run.context_tokens, indicator(run.context_tokens > top)
        if run.is_decode:
            pairs = run.pairs(FULL) * is_needed
        else:
            unscored = maximum(run.cached_tokens, minimum(context, float(top)))
            pairs = run.sequences * (FULL.pairs(context) - FULL.pairs(unscored))
        flops = FLOPS_PER_MULTIPLY_ADD * self.heads * self.dim * pairs
        return (Work(OperatorName.INDEXER, flops, self.dim * run.rows_read(FULL) * is_needed),)


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
