"""How many bytes a sequence holds, of key-value cache and of recurrent state, and how many tokens a pool can hold."""

import math
from dataclasses import dataclass
from functools import lru_cache

from app.calc.architecture import Architecture
from app.calc.broadcast import Quantity
from app.calc.dtypes import Dtype
from app.calc.layers.parts import Working
from app.calc.layers.span import Span


@dataclass(frozen=True, slots=True)
class CacheTerm:
    """`layers` layers that keep `width` elements for each position (or each `compression` of them) in `span`."""

    label: str
    layers: int
    width: int
    compression: int
    span: Span
    working: Working

    @property
    def elements_per_token(self) -> float:
        """Elements that one more token adds, over all its layers."""
        return self.layers * self.width / self.compression

    def elements(self, context_tokens: Quantity) -> Quantity:
        """Elements at a context."""
        return self.elements_per_token * self.span.kept(context_tokens)


@dataclass(frozen=True, slots=True)
class StateTerm:
    """`layers` layers that keep `bytes` of a sequence whatever its length."""

    label: str
    layers: int
    elements: int
    dtype: Dtype

    @property
    def bytes(self) -> float:
        """Bytes of one sequence, all layers."""
        return self.layers * self.elements * self.dtype.bytes


@dataclass(frozen=True, slots=True)
class CacheShape:
    """All that a sequence keeps, like layers together."""

    terms: tuple[CacheTerm, ...]
    states: tuple[StateTerm, ...]

    @property
    def state_bytes(self) -> float:
        """What a sequence keeps whatever its length."""
        return sum(state.bytes for state in self.states)


@lru_cache(maxsize=512)
def cache_shape(architecture: Architecture) -> CacheShape:
    """What one sequence of `architecture` keeps: rows that grow with the context, and states that do not."""
    rows: dict[tuple[str, int, int, Span, Working], int] = {}
    states: dict[tuple[str, int, Dtype], int] = {}
    for group in architecture.loaded_layers:
        if group.mixer is None:
            continue
        for row in group.mixer.cache():
            working = row.working or Working("{L} × w", (("w", "elements of a row", row.width),))
            key = (row.label, row.width, row.compression, row.span, working)
            rows[key] = rows.get(key, 0) + group.count
        for state in group.mixer.state():
            kept = (state.label, state.elements, state.dtype)
            states[kept] = states.get(kept, 0) + group.count
    return CacheShape(
        tuple(CacheTerm(key[0], n, key[1], key[2], key[3], key[4]) for key, n in rows.items()),
        tuple(StateTerm(label, n, elements, dtype) for (label, elements, dtype), n in states.items()),
    )


def kv_bytes_per_sequence(architecture: Architecture, context_tokens: Quantity, kv_cache: Dtype) -> Quantity:
    """Bytes one sequence holds at `context_tokens`: Σ layers · row · b · tokens kept ÷ stride, and Σ states.

    Args:
        architecture: the model.
        context_tokens: tokens in the sequence, any shape.
        kv_cache: element type of the cache; recurrent states have their own.

    Worked numbers: Llama-3.1-8B in bf16, 4,096 tokens: 32 × 2,048 × 2 B × 4,096 = 536,870,912 B (512 MiB).
    DeepSeek-V3: 61 × 576 × 2 B = 70,272 B a token, once for all heads.
    Source: shapes of the keys and values; agrees with engine start-up logs to 0.02 % (median of 35).
    Limits: an ideal engine. Real ones round up to blocks, and some give a sliding-window layer the full length.
    """
    shape = cache_shape(architecture)
    total: Quantity = shape.state_bytes
    for term in shape.terms:
        total = total + term.elements_per_token * kv_cache.bytes * term.span.kept(context_tokens)
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
    """Whole tokens of one sequence that `sequence_bytes` hold; None where the cache is bounded for good.

    The inverse of `kv_bytes_per_sequence`, which is linear between one window and the next. Where not even the states
    fit, no token does.
    """
    terms = cache_shape(architecture).terms
    stops = sorted({term.span.saturates_at for term in terms} | {math.inf})
    reached = 0.0
    for stop in stops:
        held = float(kv_bytes_per_sequence(architecture, reached, kv_cache))
        rate = sum(t.elements_per_token * kv_cache.bytes for t in terms if t.span.saturates_at > reached)
        if rate == 0:
            return None
        tokens = reached + (sequence_bytes - held) / rate
        if tokens < stop:
            return ContextLimit(max(0, math.floor(tokens)), reached, held, rate)
        reached = stop
    return None
