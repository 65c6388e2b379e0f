"""The cache of a sequence and its inverse, over random models with and without windows."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.calc.architecture import Architecture
from app.calc.dtypes import Dtype
from app.calc.kv_cache import cache_shape, kv_bytes_per_sequence, longest_context
from app.calc.rule_of_thumb import decode_step_s, total_latency_s
from tests.calc.strategies import architectures, array, at, catalog_architectures, repeatable
from tests.factories import interleaved, llama_3_1_8b

caches = st.sampled_from([dtype for dtype in Dtype if dtype is not Dtype.TF32])
models = architectures() | catalog_architectures()
tokens = st.integers(0, 10**7)


def cache_layer_by_layer(architecture: Architecture, n: int, kv_cache: Dtype) -> float:
    """Every layer on its own: its rows for each token that is kept, and its state."""
    held = 0.0
    for group in architecture.layers:
        for _ in range(group.count if group.mixer else 0):
            assert group.mixer is not None
            for row in group.mixer.cache():
                held += row.width * kv_cache.bits / 8 * float(row.span.kept(float(n))) / row.compression
            held += sum(state.elements * state.dtype.bits / 8 for state in group.mixer.state())
    return held


@repeatable
@given(models, tokens, caches)
def test_the_cache_is_the_sum_over_the_layers(architecture: Architecture, n: int, kv_cache: Dtype) -> None:
    by_layer = cache_layer_by_layer(architecture, n, kv_cache)
    assert kv_bytes_per_sequence(architecture, n, kv_cache) == pytest.approx(by_layer, rel=1e-12)


@repeatable
@given(models, st.lists(tokens.map(float), min_size=1, max_size=4), caches)
def test_the_cache_of_an_array_is_that_of_its_elements(
    architecture: Architecture, contexts: list[float], kv_cache: Dtype
) -> None:
    table = kv_bytes_per_sequence(architecture, array(contexts).reshape(1, -1), kv_cache)
    for i, n in enumerate(contexts):
        assert at(table, (1, len(contexts)), (0, i)) == kv_bytes_per_sequence(architecture, n, kv_cache)
        for term in cache_shape(architecture).terms:
            assert at(term.span.kept(array(contexts)), (len(contexts),), (i,)) == term.span.kept(n)


@repeatable
@given(models, tokens, tokens, caches)
def test_a_longer_context_never_holds_less_and_a_narrower_cache_never_more(
    architecture: Architecture, n: int, more: int, kv_cache: Dtype
) -> None:
    held = float(kv_bytes_per_sequence(architecture, n, kv_cache))
    assert kv_bytes_per_sequence(architecture, n + more, kv_cache) >= held
    for other in Dtype:
        if other.bits <= kv_cache.bits:
            assert kv_bytes_per_sequence(architecture, n, other) <= held


@repeatable
@given(models, st.integers(1, 2**46), caches)
def test_the_longest_context_holds_at_n_and_not_at_n_plus_1(
    architecture: Architecture, given_bytes: int, kv_cache: Dtype
) -> None:
    limit = longest_context(architecture, given_bytes, kv_cache)
    if limit is None:
        assert all(term.span.saturates_at < 10**12 for term in cache_shape(architecture).terms)
        assert kv_bytes_per_sequence(architecture, 10**12, kv_cache) <= given_bytes
        return
    if given_bytes < cache_shape(architecture).state_bytes:
        assert limit.tokens == 0
        return
    assert kv_bytes_per_sequence(architecture, limit.tokens, kv_cache) <= given_bytes
    assert kv_bytes_per_sequence(architecture, limit.tokens + 1, kv_cache) > given_bytes


@repeatable
@given(architectures(windows=st.none()), st.integers(0, 10**7), caches)
def test_without_windows_the_longest_context_undoes_the_cache(
    architecture: Architecture, n: int, kv_cache: Dtype
) -> None:
    limit = longest_context(architecture, float(kv_bytes_per_sequence(architecture, n, kv_cache)), kv_cache)
    assert limit is not None
    assert (limit.tokens, limit.from_tokens, limit.from_bytes) == (n, 0, 0)


@repeatable
@given(st.integers(1, 5000), st.integers(0, 5), st.integers(1, 20_000), caches)
def test_with_a_window_the_longest_context_undoes_the_cache(
    window: int, full_layers: int, n: int, kv_cache: Dtype
) -> None:
    architecture = interleaved(window, full_layers=full_layers)
    limit = longest_context(architecture, float(kv_bytes_per_sequence(architecture, n, kv_cache)), kv_cache)
    if full_layers == 0 and n >= window:
        assert limit is None
    else:
        assert limit is not None
        assert limit.tokens == n


def test_the_longest_context_tells_where_on_the_line_it_lies() -> None:
    architecture = interleaved(window=512, windowed_layers=5, full_layers=1)
    per_layer = 2 * 4 * 64 * 2  # 1,024 B a token
    limit = longest_context(architecture, 6 * per_layer * 512 + 10 * per_layer, Dtype.BF16)
    assert limit is not None
    assert (limit.tokens, limit.from_tokens, limit.from_bytes) == (522, 512, 6 * per_layer * 512)
    assert limit.bytes_per_token == per_layer
    short = longest_context(architecture, 6 * per_layer * 511, Dtype.BF16)
    assert short is not None
    assert (short.tokens, short.from_tokens, short.bytes_per_token) == (511, 0, 6 * per_layer)


def test_no_memory_holds_no_token() -> None:
    for architecture in (llama_3_1_8b(), interleaved(), interleaved(full_layers=0)):
        limit = longest_context(architecture, 0.0, Dtype.BF16)
        assert limit is not None
        assert limit.tokens == 0


@pytest.mark.parametrize(
    ("kv_cache", "per_token"),
    [("fp32", 262_144), ("bf16", 131_072), ("fp16", 131_072), ("fp8", 65_536), ("int8", 65_536), ("int4", 32_768)],
)
def test_a_token_of_llama_3_1_8b_takes_two_bytes_an_element_or_what_the_format_takes(
    kv_cache: str, per_token: int
) -> None:
    assert kv_bytes_per_sequence(llama_3_1_8b(), 1, Dtype(kv_cache)) == per_token


@repeatable
@given(
    st.lists(st.floats(1, 1e6), min_size=1, max_size=3),
    st.lists(st.floats(0, 1e13), min_size=1, max_size=3),
    st.floats(1e6, 1e13),
)
def test_the_rule_of_thumb_of_arrays_is_that_of_their_elements(
    batches: list[float], kv: list[float], weights: float
) -> None:
    shape = (len(batches), len(kv))
    step = decode_step_s(weights, weights / 2, array(batches)[:, None], 1e15, 3e12, array(kv))
    latency = total_latency_s(array(kv), array(batches)[:, None], 500.0)
    for i, j in np.ndindex(*shape):
        assert at(step, shape, (i, j)) == decode_step_s(weights, weights / 2, batches[i], 1e15, 3e12, kv[j])
        assert at(latency, shape, (i, j)) == total_latency_s(kv[j], batches[i], 500.0)
