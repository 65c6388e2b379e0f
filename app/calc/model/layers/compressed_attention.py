"""Compressed attention (DeepSeek V4): a short window of exact rows, and one row for each 4 or 128 positions before.

One row of `head_dim` serves as key and value of all heads. Rows that stand for 4 positions are chosen by an indexer;
rows that stand for 128 are few enough to be read all. Source: the model's published configuration and weight shapes.
"""

from dataclasses import dataclass, replace
from typing import Self

from app.calc.model.layers.parts import (
    FLOPS_PER_MULTIPLY_ADD,
    FLOPS_PER_NORM_ELEMENT,
    CacheRows,
    OperatorName,
    Run,
    State,
    WeightGroup,
    Weights,
    Work,
    matrix,
    share,
    vector,
)
from app.calc.model.layers.span import FULL, Selection, Window
from app.calc.model.layers.sparse_attention import Indexer


@dataclass(frozen=True, slots=True)
class CompressedAttention:
    """`compression` None keeps the window alone. `overlap` is how many strides a compressed row looks back over.

    `top` rows are chosen by `index_heads` queries of `index_dim`; without them every compressed row is read.
    """

    n_heads: int
    head_dim: int
    q_rank: int
    o_rank: int
    o_groups: int
    window: int
    compression: int | None = None
    overlap: int = 1
    top: int | None = None
    index_heads: int = 0
    index_dim: int = 0

    @property
    def label(self) -> str:
        """The window, and what stands for the positions before it."""
        if self.compression is None:
            return f"window of {self.window:,}"
        return f"{self.compression}:1 compressed"

    def weights(self, hidden_size: int) -> tuple[Weights, ...]:
        """Query down and up, the shared row, the grouped output projection, sinks, compressor and indexer.

        Worked number: a window-only layer of DeepSeek-V4-Flash has 106,956,352.
        """
        group, width = WeightGroup.ATTENTION, self.n_heads * self.head_dim
        projections = self.q_rank * (hidden_size + width) + hidden_size * self.head_dim
        norms = self.q_rank + self.head_dim
        output = width * self.o_rank + self.o_groups * self.o_rank * hidden_size
        return (
            matrix(OperatorName.QKV, group, projections),
            *vector(OperatorName.NORMS, group, norms, FLOPS_PER_NORM_ELEMENT * norms),
            *vector(OperatorName.ATTENTION, group, self.n_heads),
            matrix(OperatorName.OUTPUT, group, output),
            *self._compressor(hidden_size, self.head_dim, OperatorName.COMPRESSOR),
            *self._indexer(hidden_size),
        )

    def _compressor(self, hidden_size: int, width: int, operator: OperatorName) -> tuple[Weights, ...]:
        """Values and gates of the pooled positions, the learned places within a stride, and a norm."""
        if self.compression is None:
            return ()
        wide = self.overlap * width
        return (
            matrix(operator, WeightGroup.ATTENTION, 2 * hidden_size * wide),
            *vector(operator, WeightGroup.ATTENTION, self.compression * wide + width),
        )

    def _indexer(self, hidden_size: int) -> tuple[Weights, ...]:
        if self.top is None:
            return ()
        queries = self.q_rank * self.index_heads * self.index_dim + hidden_size * self.index_heads
        return (
            matrix(OperatorName.INDEXER, WeightGroup.ATTENTION, queries),
            *self._compressor(hidden_size, self.index_dim, OperatorName.INDEXER),
        )

    def cache(self) -> tuple[CacheRows, ...]:
        """The window's rows, the compressed rows, and the keys of the index over them."""
        rows = [CacheRows("window", self.head_dim, Window(self.window))]
        if self.compression is not None:
            rows.append(CacheRows(f"{self.compression}:1 rows", self.head_dim, FULL, self.compression))
            if self.top is not None:
                rows.append(CacheRows("index keys", self.index_dim, FULL, self.compression))
        return tuple(rows)

    def state(self) -> tuple[State, ...]:
        """None; the positions that wait for a full stride are left out, as engines hold them in small buffers."""
        return ()

    def work(self, run: Run) -> tuple[Work, ...]:
        """Attention over window and compressed rows: 4·H·d a pair; the index over every compressed row."""
        window, stride = Window(self.window), self.compression
        pairs, rows, found = run.pairs(window), run.rows_read(window), []
        if stride is not None:
            # A row for `stride` positions is a `stride`-th of a pair and of a row for each of them.
            seen = FULL if self.top is None else Selection(self.top * stride)
            pairs, rows = pairs + run.pairs(seen) / stride, rows + run.rows_read(seen) / stride
            if self.top is not None:
                # The same queries and keys as an indexer of every position would have, a `stride`-th of them.
                (index,) = Indexer(self.index_heads, self.index_dim).work(run, self.top * stride)
                found.append(Work(index.operator, index.flops / stride, index.cache_elements / stride))
        per_pair = 2 * FLOPS_PER_MULTIPLY_ADD * self.n_heads * self.head_dim
        found.append(Work(OperatorName.ATTENTION, per_pair * pairs, self.head_dim * rows))
        return tuple(found)

    def split(self, ranks: int) -> Self:
        """Heads and groups of the output divided; rows, compressor and indexer are on every GPU."""
        return replace(
            self,
            n_heads=share(self.n_heads, ranks, "attention heads"),
            o_groups=share(self.o_groups, ranks, "groups of the output projection"),
        )
