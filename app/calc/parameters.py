"""How many parameters a model has, where they sit, and how many bytes they take."""

from dataclasses import dataclass
from functools import lru_cache

from app.calc.architecture import Architecture, Attention, FeedForward, LayerGroup, QkNorm
from app.calc.dtypes import Dtype, WeightFormat


@dataclass(frozen=True, slots=True)
class ParameterCounts:
    """Parameters by group. `*_vectors` are the biases: they stay 16-bit when the matrices are quantized."""

    embedding: int
    attention: int
    attention_vectors: int
    feed_forward: int
    feed_forward_vectors: int
    norms: int
    head: int
    vision: int

    @property
    def matrices(self) -> int:
        """What a weight quantization applies to: the layers' matrices."""
        return self.attention + self.feed_forward

    @property
    def text(self) -> int:
        """The language model, each stored table counted once."""
        return self.matrices + self.unquantized - self.vision

    @property
    def unquantized(self) -> int:
        """What stays 16-bit in a quantized checkpoint: embedding, head, norms, biases and the vision tower."""
        vectors = self.attention_vectors + self.feed_forward_vectors
        return self.embedding + self.head + self.norms + vectors + self.vision

    @property
    def total(self) -> int:
        """Everything a server loads."""
        return self.text + self.vision


def qk_norm_params(attention: Attention) -> int:
    """Parameters of one layer's query and key norms: 2·d per head-wise pair, or the full widths of both."""
    if attention.qk_norm is QkNorm.PER_HEAD:
        return 2 * attention.head_dim
    if attention.qk_norm is QkNorm.FULL_WIDTH:
        return attention.query_width + attention.kv_width
    return 0


def qkv_matrix_params(hidden_size: int, attention: Attention) -> int:
    """Parameters of one layer's query, key and value projections: h·(H + 2K)·d."""
    return hidden_size * (attention.query_width + 2 * attention.kv_width)


def qkv_bias_params(attention: Attention) -> int:
    """Parameters of their biases, zero where there are none."""
    return attention.query_width + 2 * attention.kv_width if attention.qkv_bias else 0


def output_matrix_params(hidden_size: int, attention: Attention) -> int:
    """Parameters of one layer's output projection: H·d·h."""
    return attention.query_width * hidden_size


def feed_forward_matrix_params(hidden_size: int, feed_forward: FeedForward) -> int:
    """Parameters of one dense block: 3·h·i gated, 2·h·i plain."""
    return (feed_forward.input_matrices + 1) * hidden_size * feed_forward.intermediate_size


def feed_forward_bias_params(hidden_size: int, feed_forward: FeedForward) -> int:
    """Parameters of its biases: one a matrix, as long as the matrix's output."""
    if not feed_forward.bias:
        return 0
    return feed_forward.input_matrices * feed_forward.intermediate_size + hidden_size


def norm_params(architecture: Architecture, group: LayerGroup) -> int:
    """Parameters of one layer's norms, the query and key norms included."""
    width = 2 * architecture.hidden_size if architecture.norm_bias else architecture.hidden_size
    return group.norms * width + qk_norm_params(group.attention)


def final_norm_params(architecture: Architecture) -> int:
    """Parameters of the norm before the head."""
    return 2 * architecture.hidden_size if architecture.norm_bias else architecture.hidden_size


def head_params(architecture: Architecture) -> int:
    """Parameters the head reads: V·h (+ V with a bias), tied to the embedding or not."""
    bias = architecture.vocab_size if architecture.head_bias else 0
    return architecture.vocab_size * architecture.hidden_size + bias


@lru_cache(maxsize=512)
def count_parameters(architecture: Architecture) -> ParameterCounts:
    """Parameters of `architecture` by group.

    Worked number: Llama-3.1-8B has 525,336,576 in the embedding and as many in the head, 1,342,177,280 in attention,
    5,637,144,576 in the feed-forward blocks and 266,240 in norms: 8,030,261,248, the published total.
    """
    hidden = architecture.hidden_size
    attention = attention_vectors = feed_forward = feed_forward_vectors = norms = 0
    for group in architecture.layers:
        attn, ffn, n = group.attention, group.feed_forward, group.count
        attention += n * (qkv_matrix_params(hidden, attn) + output_matrix_params(hidden, attn))
        attention_vectors += n * (qkv_bias_params(attn) + (hidden if attn.output_bias else 0))
        feed_forward += n * feed_forward_matrix_params(hidden, ffn)
        feed_forward_vectors += n * feed_forward_bias_params(hidden, ffn)
        norms += n * norm_params(architecture, group)
    tied_head = architecture.vocab_size if architecture.head_bias else 0
    return ParameterCounts(
        embedding=(architecture.vocab_size + architecture.learned_positions) * hidden,
        attention=attention,
        attention_vectors=attention_vectors,
        feed_forward=feed_forward,
        feed_forward_vectors=feed_forward_vectors,
        norms=norms + final_norm_params(architecture),
        head=tied_head if architecture.tied_embeddings else head_params(architecture),
        vision=architecture.vision_params,
    )


def unquantized_bytes_per_weight(weights: WeightFormat) -> float:
    """Bytes of a weight outside the layers' matrices: 16-bit, unless the whole checkpoint is 32-bit."""
    return Dtype.FP32.bytes if weights is WeightFormat.FP32 else Dtype.BF16.bytes


def weight_bytes(counts: ParameterCounts, weights: WeightFormat) -> float:
    """Bytes of a checkpoint in memory: matrices in `weights` with their scales, the rest 16-bit.

    Worked number: Llama-3.1-8B in bf16 is 8,030,261,248 × 2 = 16,060,522,496 B.
    Limits: checkpoints that leave more layers unquantized than this (ignore lists) are larger.
    """
    return counts.matrices * weights.bytes_per_weight + counts.unquantized * unquantized_bytes_per_weight(weights)
