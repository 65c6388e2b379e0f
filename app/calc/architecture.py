"""What a model is made of, as the calculators see it: groups of like layers, an embedding and a head.

A layer kind is data. A group says how many layers share the same attention and feed-forward block, so that an
interleaved model is two groups and a uniform one is a single group.
"""

from dataclasses import dataclass
from enum import StrEnum


class QkNorm(StrEnum):
    """Normalisation of queries and keys before the scores."""

    NONE = "none"
    PER_HEAD = "per_head"
    FULL_WIDTH = "full_width"


@dataclass(frozen=True, slots=True)
class Attention:
    """Grouped attention: `n_kv_heads` = `n_heads` is MHA, 1 is MQA, between them GQA.

    `window` tokens are seen and kept by a sliding-window layer; None sees and keeps the whole context.
    """

    n_heads: int
    n_kv_heads: int
    head_dim: int
    window: int | None = None
    qkv_bias: bool = False
    output_bias: bool = False
    qk_norm: QkNorm = QkNorm.NONE

    @property
    def query_width(self) -> int:
        """Elements of one token's queries; need not equal the hidden size."""
        return self.n_heads * self.head_dim

    @property
    def kv_width(self) -> int:
        """Elements of one token's keys; its values have as many."""
        return self.n_kv_heads * self.head_dim

    @property
    def kind(self) -> str:
        """The field's name for this grouping: MHA, GQA or MQA."""
        if self.n_kv_heads == self.n_heads:
            return "MHA"
        return "MQA" if self.n_kv_heads == 1 else "GQA"


@dataclass(frozen=True, slots=True)
class FeedForward:
    """A dense block: gated (gate, up and down matrices) or plain (up and down)."""

    intermediate_size: int
    gated: bool = True
    bias: bool = False

    @property
    def input_matrices(self) -> int:
        """Matrices that read the hidden state: gate and up, or up alone."""
        return 2 if self.gated else 1


@dataclass(frozen=True, slots=True)
class LayerGroup:
    """`count` layers of one kind; `norms` vectors of the hidden size in each."""

    count: int
    attention: Attention
    feed_forward: FeedForward
    norms: int = 2


@dataclass(frozen=True, slots=True)
class Architecture:
    """A decoder-only model. Sizes are elements; `max_position` is the context it was made for, in tokens.

    `learned_positions` are rows of a position table; `norm_bias` doubles every norm vector; `vision_params` are loaded
    beside the text model and stay idle while text is decoded.
    """

    name: str
    hidden_size: int
    vocab_size: int
    layers: tuple[LayerGroup, ...]
    tied_embeddings: bool = False
    max_position: int | None = None
    learned_positions: int = 0
    norm_bias: bool = False
    head_bias: bool = False
    vision_params: int = 0

    @property
    def n_layers(self) -> int:
        """All layers."""
        return sum(group.count for group in self.layers)

    @property
    def attention_kind(self) -> str:
        """MHA, GQA or MQA, with a mark where some layers see a window only."""
        kinds = " + ".join(dict.fromkeys(group.attention.kind for group in self.layers))
        windowed = sum(group.count for group in self.layers if group.attention.window)
        if not windowed:
            return kinds
        return f"{kinds}, sliding window in {windowed} of {self.n_layers} layers"
