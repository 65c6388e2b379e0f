"""Grouped attention: MHA, GQA and MQA, over everything, a window or a chunk; with the gates, sinks and sharing of
the models that have them."""

from dataclasses import dataclass, replace
from enum import StrEnum
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
    Working,
    copied_share,
    matrix,
    share,
    vector,
)
from app.calc.model.layers.span import FULL, Chunk, Span, Window


class QkNorm(StrEnum):
    """Normalisation of queries and keys before the scores."""

    NONE = "none"
    PER_HEAD = "per_head"
    FULL_WIDTH = "full_width"
    QUERY_PER_HEAD = "query_per_head"


class OutputGate(StrEnum):
    """A sigmoid gate on the attention's output: one for each element (a second query), or one for each head."""

    NONE = "none"
    PER_ELEMENT = "per_element"
    PER_HEAD = "per_head"


class KvProjection(StrEnum):
    """Which of keys and values a layer projects: both, keys that serve as values too, or neither."""

    BOTH = "both"
    SHARED = "shared"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class GroupedAttention:
    """`n_kv_heads` = `n_heads` is MHA, 1 is MQA, between them GQA.

    `head_dim` is the width of queries and keys, `v_head_dim` that of values where it differs. A layer that
    `shares_cache` reads the cache of an earlier one and stores nothing. `query_rank` factorises the query projection.
    """

    n_heads: int
    n_kv_heads: int
    head_dim: int
    v_head_dim: int | None = None
    window: int | None = None
    chunk: int | None = None
    qkv_bias: bool = False
    output_bias: bool = False
    qk_norm: QkNorm = QkNorm.NONE
    sinks: bool = False
    output_gate: OutputGate = OutputGate.NONE
    kv_projection: KvProjection = KvProjection.BOTH
    shares_cache: bool = False
    query_rank: int | None = None

    @property
    def kind(self) -> str:
        """The field's name for this grouping: MHA, GQA or MQA."""
        if self.n_kv_heads == self.n_heads:
            return "MHA"
        return "MQA" if self.n_kv_heads == 1 else "GQA"

    @property
    def label(self) -> str:
        """The grouping, and what a layer does not see or store."""
        marks = [self.kind]
        if self.window is not None:
            marks.append(f"window of {self.window:,}")
        if self.chunk is not None:
            marks.append(f"chunks of {self.chunk:,}")
        if self.shares_cache:
            marks.append("shared cache")
        return ", ".join(marks)

    @property
    def span(self) -> Span:
        """What a query attends to."""
        if self.window is not None:
            return Window(self.window)
        return FULL if self.chunk is None else Chunk(self.chunk)

    @property
    def query_width(self) -> int:
        """Elements of one token's queries; need not equal the hidden size."""
        return self.n_heads * self.head_dim

    @property
    def key_width(self) -> int:
        """Elements of one token's keys."""
        return self.n_kv_heads * self.head_dim

    @property
    def value_width(self) -> int:
        """Elements of one token's values."""
        return self.n_kv_heads * self._value_dim

    @property
    def output_width(self) -> int:
        """Elements that the output projection reads."""
        return self.n_heads * self._value_dim

    @property
    def _value_dim(self) -> int:
        return self.head_dim if self.v_head_dim is None else self.v_head_dim

    def weights(self, hidden_size: int) -> tuple[Weights, ...]:
        """Projections h·(H·d + K·d + K·d_v) and H·d_v·h, with biases, norms, gate and sinks.

        Worked number: a layer of Llama-3.1-8B has 4,096 × (4,096 + 2 × 1,024) + 4,096 × 4,096 = 41,943,040.
        """
        group, projected = WeightGroup.ATTENTION, self._kv_projected
        if self.query_rank is None:
            query, query_norm = hidden_size * self.query_width, 0
        else:
            query, query_norm = self.query_rank * (hidden_size + self.query_width), self.query_rank
        if self.output_gate is OutputGate.PER_ELEMENT:
            query += hidden_size * self.output_width
        elif self.output_gate is OutputGate.PER_HEAD:
            query += hidden_size * self.n_heads
        gate_bias = self.output_width if self.output_gate is OutputGate.PER_ELEMENT else 0
        biases = self.query_width + gate_bias + projected if self.qkv_bias else 0
        return (
            matrix(OperatorName.QKV, group, query + hidden_size * projected),
            *vector(OperatorName.QKV, group, biases),
            *vector(OperatorName.NORMS, group, query_norm, FLOPS_PER_NORM_ELEMENT * query_norm),
            *self._qk_norm(),
            *vector(OperatorName.ATTENTION, group, self.n_heads if self.sinks else 0),
            matrix(OperatorName.OUTPUT, group, self.output_width * hidden_size),
            *vector(OperatorName.OUTPUT, group, hidden_size if self.output_bias else 0),
        )

    @property
    def _kv_projected(self) -> int:
        if self.kv_projection is KvProjection.NONE:
            return 0
        return self.key_width if self.kv_projection is KvProjection.SHARED else self.key_width + self.value_width

    def _qk_norm(self) -> tuple[Weights, ...]:
        if self.qk_norm is QkNorm.NONE:
            return ()
        width = self.query_width + (0 if self.qk_norm is QkNorm.QUERY_PER_HEAD else self.key_width)
        per_head = {QkNorm.PER_HEAD: 2 * self.head_dim, QkNorm.QUERY_PER_HEAD: self.head_dim}
        gains = per_head.get(self.qk_norm, width)
        return vector(OperatorName.NORMS, WeightGroup.ATTENTION, gains, FLOPS_PER_NORM_ELEMENT * width)

    def cache(self) -> tuple[CacheRows, ...]:
        """A key and a value for each KV head. Worked number: 2 × 8 × 128 = 2,048 elements for Llama-3.1-8B."""
        if self.shares_cache:
            return ()
        heads, width = ("H_kv", "KV heads", self.n_kv_heads), ("d", "width of a head", self.head_dim)
        if self.v_head_dim is None:
            working = Working("2 × {L} × H_kv × d", (heads, width))
        else:
            values = ("d_v", "width of a head's values", self.v_head_dim)
            working = Working("{L} × H_kv × (d + d_v)", (heads, width, values))
        return (CacheRows("keys and values", self.key_width + self.value_width, self.span, working=working),)

    def state(self) -> tuple[State, ...]:
        """None."""
        return ()

    def work(self, run: Run) -> tuple[Work, ...]:
        """Scores 2·H·d and values 2·H·d_v for each query-key pair; every visible row read once."""
        per_pair = FLOPS_PER_MULTIPLY_ADD * (self.query_width + self.output_width)
        read = (self.key_width + self.value_width) * run.rows_read(self.span)
        return (Work(OperatorName.ATTENTION, per_pair * run.pairs(self.span), read),)

    def split(self, ranks: int) -> Self:
        """Heads divided; KV heads too, or copied where there are fewer of them than GPUs."""
        return replace(
            self,
            n_heads=share(self.n_heads, ranks, "attention heads"),
            n_kv_heads=copied_share(self.n_kv_heads, ranks, "KV heads"),
        )
