"""Multi-head latent attention (MLA): one compressed row a token for all heads, absorbed in decode, expanded in prefill.

Source: DeepSeek-V2, arXiv 2405.04434, sections 2.1 and C; dimensions named as in its config.json.

Index-sparse MLA (DSA): every latent is stored, an indexer chooses, and attention reads only the chosen.

Source: DeepSeek-V3.2, technical report of 2025, section 2. GLM-5.2 computes an index in every fourth layer only; the
layers between reuse it and store no index keys.

MLA that sees a window or a chunk only: what a windowed layer becomes when its heads share a latent.

No published model has it; `app.calc.model.attention_variants` makes it of a grouped layer to compare the two.
"""

from dataclasses import dataclass, replace
from typing import Self

from app.calc.broadcast import Quantity, indicator
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
    Working,
    matrix,
    share,
    vector,
)
from app.calc.model.layers.span import FULL, Chunk, Selection, Span, Window
from app.calc.model.layers.sparse_attention import Indexer


@dataclass(frozen=True, slots=True)
class LatentAttention:
    """`q_rank` None projects queries in one matrix. `gated` multiplies the output by a gate as wide as it."""

    n_heads: int
    kv_rank: int
    nope_dim: int
    rope_dim: int
    v_dim: int
    q_rank: int | None = None
    gated: bool = False

    @property
    def label(self) -> str:
        return "MLA"

    @property
    def row_width(self) -> int:
        """Elements cached for a token: the latent and its rotary part, once for all heads."""
        return self.kv_rank + self.rope_dim

    def weights(self, hidden_size: int) -> tuple[Weights, ...]:
        """Down and up projections of queries and of the latent, and the output projection.

        Worked number: a layer of DeepSeek-V3 has 187,107,328: 11,010,048 + 37,748,736 for the query, 4,128,768 down
        and 16,777,216 up for keys and values, 117,440,512 out, and norms of 1,536 + 512.
        """
        group = WeightGroup.ATTENTION
        per_head = self.nope_dim + self.rope_dim
        if self.q_rank is None:
            query, norm = hidden_size * self.n_heads * per_head, self.kv_rank
        else:
            query = self.q_rank * (hidden_size + self.n_heads * per_head)
            norm = self.kv_rank + self.q_rank
        gate = hidden_size * self.n_heads * self.v_dim if self.gated else 0
        return (
            matrix(OperatorName.QKV, group, query + hidden_size * self.row_width + gate),
            *vector(OperatorName.NORMS, group, norm, FLOPS_PER_NORM_ELEMENT * norm),
            matrix(OperatorName.LATENT_UP, group, self._up_params),
            matrix(OperatorName.OUTPUT, group, self.n_heads * self.v_dim * hidden_size),
        )

    @property
    def _up_params(self) -> int:
        return self.kv_rank * self.n_heads * (self.nope_dim + self.v_dim)

    def cache(self) -> tuple[CacheRows, ...]:
        """One latent row a token. Worked number: 512 + 64 = 576 elements for DeepSeek-V3."""
        parts = (("r", "width of the latent", self.kv_rank), ("p", "width of its rotary part", self.rope_dim))
        return (CacheRows("latent", self.row_width, FULL, working=Working("{L} × (r + p)", parts)),)

    def state(self) -> tuple[State, ...]:
        """None."""
        return ()

    def work(self, run: Run) -> tuple[Work, ...]:
        """Scores and values over everything."""
        return self.attend(run, FULL)

    def attend(self, run: Run, span: Span) -> tuple[Work, ...]:
        """Scores and values over what `span` shows.

        Decode is absorbed: queries are moved into the latent space, so a pair costs 2·H·(r + p) for the score and
        2·H·r for the value, and the latent row is read once for all heads. Prefill is expanded: a pair costs
        2·H·(n + p) and 2·H·v. Pairs with cached latents take the faster of the two: absorbed, or expanded after those
        latents went through the up projection as well.
        """
        heads, read = FLOPS_PER_MULTIPLY_ADD * self.n_heads, self.row_width * run.rows_read(span)
        absorbed, expanded = (
            heads * (self.row_width + self.kv_rank),
            heads * (self.nope_dim + self.rope_dim + self.v_dim),
        )
        pairs = run.pairs(span)
        if run.is_decode:
            return (Work(OperatorName.ATTENTION, absorbed * pairs, read),)
        own = run.sequences * span.pairs(run.new_tokens)
        others = pairs - own
        up: Quantity = FLOPS_PER_MULTIPLY_ADD * self._up_params * run.sequences * span.reach(run.cached_tokens)
        is_expanded = indicator(up / run.matrix_speedup + expanded * others <= absorbed * others)
        per_other = absorbed + (expanded - absorbed) * is_expanded
        return (
            Work(OperatorName.LATENT_UP, up * is_expanded),
            Work(OperatorName.ATTENTION, min(absorbed, expanded) * own + per_other * others, read),
        )

    def split(self, ranks: int) -> Self:
        """Heads divided. Down projections and the cached latent are on every GPU: they belong to no head."""
        return replace(self, n_heads=share(self.n_heads, ranks, "attention heads"))


@dataclass(frozen=True, slots=True)
class SparseLatentAttention:
    """MLA over the `top` positions that the indexer of this layer, or (None) of one before it, has chosen."""

    latent: LatentAttention
    top: int
    indexer: Indexer | None = None

    @property
    def label(self) -> str:
        """MLA over a selection, and whether the layer makes it."""
        return f"MLA, best {self.top:,}" if self.indexer else f"MLA, best {self.top:,} of a neighbour's index"

    def weights(self, hidden_size: int) -> tuple[Weights, ...]:
        """Those of the latent attention, and of the indexer where there is one."""
        if self.indexer is None:
            return self.latent.weights(hidden_size)
        query_input = self.latent.q_rank or hidden_size
        return (*self.latent.weights(hidden_size), *self.indexer.weights(hidden_size, query_input))

    def cache(self) -> tuple[CacheRows, ...]:
        """The latent of every position; and its index key."""
        return (*self.latent.cache(), *(self.indexer.cache() if self.indexer else ()))

    def state(self) -> tuple[State, ...]:
        """None."""
        return ()

    def work(self, run: Run) -> tuple[Work, ...]:
        """The index over everything, attention over the selection."""
        index = self.indexer.work(run, self.top) if self.indexer else ()
        return (*index, *self.latent.attend(run, Selection(self.top)))

    def split(self, ranks: int) -> Self:
        """The latent attention is divided; the indexer is on every GPU."""
        return replace(self, latent=self.latent.split(ranks))


@dataclass(frozen=True, slots=True)
class SpannedLatentAttention:
    """`latent` over `span` in place of everything."""

    latent: LatentAttention
    span: Window | Chunk

    @property
    def label(self) -> str:
        """MLA, and what a layer does not see."""
        kind = "window" if isinstance(self.span, Window) else "chunks"
        return f"MLA, {kind} of {self.span.tokens:,}"

    def weights(self, hidden_size: int) -> tuple[Weights, ...]:
        """Those of the latent attention."""
        return self.latent.weights(hidden_size)

    def cache(self) -> tuple[CacheRows, ...]:
        """One latent row a position, as long as the span keeps it."""
        return tuple(replace(row, span=self.span) for row in self.latent.cache())

    def state(self) -> tuple[State, ...]:
        """None."""
        return ()

    def work(self, run: Run) -> tuple[Work, ...]:
        """Scores and values over the span."""
        return self.latent.attend(run, self.span)

    def split(self, ranks: int) -> Self:
        """The latent attention is divided."""
        return replace(self, latent=self.latent.split(ranks))
