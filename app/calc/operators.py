"""What a forward pass computes and moves, operator by operator.

Counted bytes are the ones no kernel can avoid: every weight once a pass, the embedding rows gathered, each new key and
value written, each cached key and value of the sequence read. Activations between operators are left out, because a
fused kernel or the on-chip cache keeps them from memory; so are softmax, activation functions, rotary and residual
additions. That makes the result a floor: a real pass moves more.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from app.calc.architecture import Architecture, LayerGroup, QkNorm
from app.calc.broadcast import Quantity, maximum, minimum
from app.calc.deployment import Deployment
from app.calc.dtypes import Dtype
from app.calc.kv_cache import layer_kv_bytes_per_token
from app.calc.parameters import (
    feed_forward_bias_params,
    final_norm_params,
    head_params,
    norm_params,
    output_matrix_params,
    qkv_bias_params,
    qkv_matrix_params,
    unquantized_bytes_per_weight,
)

FLOPS_PER_MULTIPLY_ADD = 2
FLOPS_PER_NORM_ELEMENT = 4  # square, accumulate, scale by the root mean square, multiply by the gain


class OperatorName(StrEnum):
    """Operators of a pass, in the order they run."""

    EMBEDDING = "embedding"
    NORMS = "norms"
    QKV = "qkv"
    ATTENTION = "scores_and_values"
    OUTPUT = "attention_output"
    GATE_UP = "gate_up"
    DOWN = "down"
    HEAD = "head"


@dataclass(frozen=True, slots=True)
class Operator:
    """All layers of one group together: FLOPs, bytes, and the type whose peak applies."""

    name: OperatorName
    flops: Quantity
    bytes: Quantity
    dtype: Dtype


@dataclass(frozen=True, slots=True)
class _Pass:
    """Size of one pass: tokens through the matrices, positions that need logits, and what attention touches."""

    tokens: Quantity
    logits: Quantity
    pairs: Callable[[LayerGroup], Quantity]
    read_tokens: Callable[[LayerGroup], Quantity]


def decode_operators(deployment: Deployment, batch: Quantity, context_tokens: Quantity) -> list[Operator]:
    """Operators of one decode step of `batch` sequences that each hold `context_tokens`.

    Args:
        deployment: model, card and precision; its workload is not read.
        batch: sequences in the step, any shape.
        context_tokens: tokens in each sequence's cache, any shape that broadcasts with `batch`.

    Worked number: Llama-3.1-8B in bf16 at batch 1 and 4,096 tokens moves 15.01 GB of weights and 0.537 GB of cache.
    """

    def pairs(group: LayerGroup) -> Quantity:
        window = group.attention.window
        return batch * (context_tokens if window is None else minimum(context_tokens, float(window)))

    return _operators(deployment, _Pass(batch, batch, pairs, pairs))


def prefill_operators(deployment: Deployment, new_tokens: Quantity, cached_tokens: Quantity = 0.0) -> list[Operator]:
    """Operators of one request's prefill: `new_tokens` computed after `cached_tokens` found in the prefix cache.

    Causal: token i attends to itself and to what is before it, so n tokens make n·c + n(n+1)/2 pairs. The head runs
    once, for the position that gives the first output token.

    Worked number: 1,000 tokens of Llama-3.1-8B: 13.96e12 FLOP in matrices, 0.262e12 in attention, 1.05e9 in the head.
    """

    def pairs(group: LayerGroup) -> Quantity:
        return causal_pairs(new_tokens, cached_tokens, group.attention.window)

    def read_tokens(group: LayerGroup) -> Quantity:
        window = group.attention.window
        reach = cached_tokens if window is None else minimum(cached_tokens, float(window - 1))
        return new_tokens + reach

    return _operators(deployment, _Pass(new_tokens, 1.0, pairs, read_tokens))


def causal_pairs(new_tokens: Quantity, cached_tokens: Quantity, window: int | None) -> Quantity:
    """Query-key pairs of a causal prefill: Σ over the new tokens of min(position, window).

    Worked number: 1,000 tokens after none make 500,500 pairs.
    """
    everything = new_tokens * cached_tokens + new_tokens * (new_tokens + 1) / 2
    if window is None:
        return everything
    limited = maximum(0.0, new_tokens - maximum(0.0, window - cached_tokens))  # queries that see a full window
    beyond = maximum(0.0, cached_tokens - window)
    return everything - (limited * beyond + limited * (limited + 1) / 2)


def _operators(deployment: Deployment, size: _Pass) -> list[Operator]:
    architecture = deployment.architecture
    wide, other = deployment.wide_dtype, unquantized_bytes_per_weight(deployment.precision.weights)
    rows = 2 if architecture.learned_positions else 1  # of the table, and of the position table where there is one
    result = [Operator(OperatorName.EMBEDDING, 0.0, size.tokens * (rows * architecture.hidden_size * other), wide)]
    for group in architecture.layers:
        result += _layer_operators(deployment, group, size)
    final_norm = FLOPS_PER_NORM_ELEMENT * size.logits * architecture.hidden_size
    result.append(Operator(OperatorName.NORMS, final_norm, final_norm_params(architecture) * other, wide))
    head = head_params(architecture)
    result.append(Operator(OperatorName.HEAD, FLOPS_PER_MULTIPLY_ADD * size.logits * head, head * other, wide))
    return result


def _layer_operators(deployment: Deployment, group: LayerGroup, size: _Pass) -> list[Operator]:
    architecture, precision = deployment.architecture, deployment.precision
    attention, feed_forward, n = group.attention, group.feed_forward, group.count
    hidden, matrix, other = (
        architecture.hidden_size,
        precision.weights.bytes_per_weight,
        unquantized_bytes_per_weight(precision.weights),
    )
    kv_bytes = n * layer_kv_bytes_per_token(group, precision.kv_cache)
    flops_per_token = n * FLOPS_PER_MULTIPLY_ADD  # times the parameters of a matrix

    def gemm(name: OperatorName, matrix_params: int, bias_params: int, cache_bytes: Quantity = 0.0) -> Operator:
        flops = flops_per_token * matrix_params * size.tokens
        weights = n * (matrix_params * matrix + bias_params * other)
        return Operator(name, flops, weights + cache_bytes, precision.compute)

    biases = feed_forward_bias_params(hidden, feed_forward)
    inner = feed_forward.input_matrices * hidden * feed_forward.intermediate_size
    scores_and_values = n * 2 * FLOPS_PER_MULTIPLY_ADD * attention.query_width * size.pairs(group)
    return [
        Operator(
            OperatorName.NORMS,
            n * FLOPS_PER_NORM_ELEMENT * _normed_elements(architecture, group) * size.tokens,
            n * norm_params(architecture, group) * other,
            deployment.wide_dtype,
        ),
        gemm(
            OperatorName.QKV,
            qkv_matrix_params(hidden, attention),
            qkv_bias_params(attention),
            kv_bytes * size.tokens,
        ),
        Operator(
            OperatorName.ATTENTION, scores_and_values, kv_bytes * size.read_tokens(group), deployment.attention_dtype
        ),
        gemm(OperatorName.OUTPUT, output_matrix_params(hidden, attention), hidden if attention.output_bias else 0),
        gemm(OperatorName.GATE_UP, inner, biases - hidden if biases else 0),
        gemm(OperatorName.DOWN, hidden * feed_forward.intermediate_size, hidden if biases else 0),
    ]


def _normed_elements(architecture: Architecture, group: LayerGroup) -> int:
    attention = group.attention
    queries_and_keys = attention.query_width + attention.kv_width if attention.qk_norm is not QkNorm.NONE else 0
    return group.norms * architecture.hidden_size + queries_and_keys
