"""How many bytes of key-value cache a sequence holds, and how many tokens a pool can hold."""

import math
from dataclasses import dataclass

from app.calc.architecture import Architecture, LayerGroup
from app.calc.broadcast import Quantity, minimum
from app.calc.dtypes import Dtype


def layer_kv_bytes_per_token(group: LayerGroup, kv_cache: Dtype) -> float:
    """Bytes that one token adds to one layer: 2·K·d·b, a key and a value for each KV head.

    Worked number: 2 × 8 × 128 × 2 B = 4,096 B for a layer of Llama-3.1-8B in 16 bits.
    """
    return 2 * group.attention.kv_width * kv_cache.bytes


def cached_tokens(group: LayerGroup, context_tokens: Quantity) -> Quantity:
    """Tokens that a layer of the group keeps at a context: all of them, or its window."""
    window = group.attention.window
    return context_tokens if window is None else minimum(context_tokens, float(window))


def kv_bytes_per_sequence(architecture: Architecture, context_tokens: Quantity, kv_cache: Dtype) -> Quantity:
    """Bytes of cache one sequence holds at `context_tokens`: Σ layers · 2·K·d·b · min(context, window).

    Args:
        architecture: the model.
        context_tokens: tokens in the sequence, any shape.
        kv_cache: element type of the cache.

    Worked number: Llama-3.1-8B in bf16, 4,096 tokens: 32 × 4,096 B × 4,096 = 536,870,912 B (512 MiB).
    Source: shapes of the keys and values; agrees with engine start-up logs to 0.02 % (median of 35).
    Limits: an ideal engine. Real ones round up to blocks, and some give a sliding-window layer the full length.
    """
    total: Quantity = 0.0
    for group in architecture.layers:
        per_token = group.count * layer_kv_bytes_per_token(group, kv_cache)
        total = total + per_token * cached_tokens(group, context_tokens)
    return total


@dataclass(frozen=True, slots=True)
class ContextLimit:
    """The longest context of a sequence, and where on the piecewise-linear cache it lies.

    From `from_tokens` on, where the sequence holds `from_bytes`, each further token adds `bytes_per_token`.
    """

    tokens: int
    from_tokens: float
    from_bytes: float
    bytes_per_token: float


def longest_context(architecture: Architecture, sequence_bytes: float, kv_cache: Dtype) -> ContextLimit | None:
    """Whole tokens of one sequence that `sequence_bytes` of cache hold; None where windows bound the cache for good.

    The inverse of `kv_bytes_per_sequence`, which is linear between one window and the next.
    """
    windows = sorted({float(group.attention.window) for group in architecture.layers if group.attention.window})
    reached = 0.0
    for stop in [*windows, math.inf]:
        held = float(kv_bytes_per_sequence(architecture, reached, kv_cache))
        rate = sum(
            group.count * layer_kv_bytes_per_token(group, kv_cache)
            for group in architecture.layers
            if group.attention.window is None or group.attention.window > reached
        )
        if rate == 0:
            return None
        tokens = reached + (sequence_bytes - held) / rate
        if tokens < stop:
            return ContextLimit(math.floor(tokens), reached, held, rate)
        reached = stop
    return None
