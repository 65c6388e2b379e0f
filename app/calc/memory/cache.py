"""How many bytes a sequence holds, of key-value cache and of recurrent state, and how many tokens a pool can hold.

What the layers of one GPU keep of a sequence, as an engine's block planner sees it: rates a token, and states.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import lru_cache

from app.calc.broadcast import Quantity
from app.calc.dtypes import Dtype
from app.calc.model.architecture import Architecture, LayerGroup
from app.calc.model.layers.latent_attention import SparseLatentAttention
from app.calc.model.layers.parts import CacheRows, Mixer, State, Working
from app.calc.model.layers.span import Chunk, Span, Window


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


INDEX_SCALE_BYTES = 4  # beside each 128 elements of an index key, which engines keep in 8 bits whatever the cache is
INDEX_SCALE_ELEMENTS = 128
LATENT_SCALES_BYTES = 16  # four scales of a 512-wide latent
ROPE_BYTES = 2  # the rotary part stays 16-bit


@dataclass(frozen=True, slots=True)
class CacheFormat:
    """Element type of the cache, and the bytes of an element as the engine stores it (scales included).

    `is_plain` keeps index keys and latents like anything else, where most engines keep them as their kernels want.
    `state_dtype` is what all states are kept in, where not each in its own.
    """

    dtype: Dtype
    element_bytes: float
    is_plain: bool = False
    state_dtype: Dtype | None = None

    @staticmethod
    def plain(dtype: Dtype) -> "CacheFormat":
        """Elements side by side, nothing besides."""
        return CacheFormat(dtype, dtype.bytes)


@dataclass(frozen=True, slots=True)
class CachedRows:
    """`layers` layers that each keep `bytes_per_token` of every position, or of the last `window` of them.

    A chunked layer is told by `is_chunk`: its window starts again with every chunk. `shape` tells apart rows of equal
    size whose heads differ, because engines keep those in different caches.
    """

    label: str
    layers: int
    bytes_per_token: float
    window: int | None
    is_chunk: bool
    shape: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class CachedState:
    """`layers` recurrent layers that each keep `bytes` of a sequence, guessed tokens included."""

    label: str
    layers: int
    bytes: float


@dataclass(frozen=True, slots=True)
class CachedLayers:
    """All that one GPU keeps, like layers together."""

    rows: tuple[CachedRows, ...]
    states: tuple[CachedState, ...]

    @property
    def bytes_per_token(self) -> float:
        """What one more token adds while every window still has room."""
        return sum(row.layers * row.bytes_per_token for row in self.rows)

    @property
    def full_length(self) -> "CachedLayers":
        """The same for an engine that gives windowed layers the whole length."""
        return CachedLayers(tuple(replace(row, window=None, is_chunk=False) for row in self.rows), self.states)

    @property
    def state_bytes(self) -> float:
        """States of one sequence, all layers."""
        return sum(state.layers * state.bytes for state in self.states)


@lru_cache(maxsize=2048)
def cached_layers(
    part: Architecture, stored: CacheFormat, draft_tokens: int = 0, draft: Architecture | None = None
) -> CachedLayers:
    """What `part` keeps, and a `draft` model beside it.

    Worked numbers: a state of Qwen3.5-35B-A3B is 32 × 128 × 128 × 4 B and 8,192 × 3 × 2 B = 2,146,304 B, and
    2,179,072 B where two tokens are guessed. A layer of DeepSeek-V3.2 in fp8 keeps 656 B and 132 B of a token.
    """
    rows: dict[tuple[str, float, int | None, bool, tuple[int, ...]], int] = {}
    states: dict[tuple[str, float], int] = {}
    for group in _groups(part, draft):
        if group.mixer is None:
            continue
        for row in group.mixer.cache():
            key = _key(row, _bytes_per_token(row, group.mixer, stored))
            rows[key] = rows.get(key, 0) + group.count
        if kept := group.mixer.state():
            state = (group.mixer.label, _state_bytes(kept, draft_tokens, stored.state_dtype))
            states[state] = states.get(state, 0) + group.count
    return CachedLayers(
        tuple(CachedRows(key[0], n, *key[1:]) for key, n in rows.items()),
        tuple(CachedState(label, n, size) for (label, size), n in states.items()),
    )


def _groups(part: Architecture, draft: Architecture | None) -> Iterable[LayerGroup]:
    return (*part.loaded_layers, *(draft.layers if draft else ()))


def _bytes_per_token(row: CacheRows, mixer: Mixer, stored: CacheFormat) -> float:
    """Elements at their size; of index-sparse MLA as its kernels want them.

    Index keys are 8-bit with a scale whatever the cache is; an 8-bit latent keeps its scales and a 16-bit rotary part.
    Source: start-up logs of DeepSeek-V3.2: 656 + 132 B a layer and token.
    """
    if isinstance(mixer, SparseLatentAttention) and not stored.is_plain:
        if mixer.indexer is not None and row in mixer.indexer.cache():
            return row.width + INDEX_SCALE_BYTES * row.width / INDEX_SCALE_ELEMENTS
        if stored.dtype is Dtype.FP8:
            return mixer.latent.kv_rank + LATENT_SCALES_BYTES + ROPE_BYTES * mixer.latent.rope_dim
    return row.width_per_token * stored.element_bytes


def _key(row: CacheRows, bytes_per_token: float) -> tuple[str, float, int | None, bool, tuple[int, ...]]:
    span = row.span
    window = span.tokens if isinstance(span, (Window, Chunk)) else None
    shape = tuple(value for _, _, value in row.working.terms) if row.working else (row.width,)
    return (row.label, bytes_per_token, window, isinstance(span, Chunk), shape)


def _state_bytes(states: Iterable[State], draft_tokens: int, dtype: Dtype | None) -> float:
    kept = (replace(state, dtype=dtype or state.dtype) for state in states)
    return sum(state.bytes_with_drafts(draft_tokens) for state in kept)
