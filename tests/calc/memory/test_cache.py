"""What the layers of one GPU keep of a sequence: rates a token, windows and states, as engines store them.

The cache of a sequence and its inverse, over random models with and without windows.
"""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.calc.dtypes import Dtype
from app.calc.memory.cache import (
    CachedLayers,
    CacheFormat,
    cache_shape,
    cached_layers,
    kv_bytes_per_sequence,
    longest_context,
)
from app.calc.model.architecture import Architecture
from app.calc.model.split import Split
from app.calc.time.rule_of_thumb import decode_step_s, total_latency_s
from tests.calc.strategies import architectures, array, at, catalog_architectures, repeatable
from tests.factories import interleaved, llama_3_1_8b, shipped_catalog

CATALOG = shipped_catalog()
BF16, FP8 = CacheFormat.plain(Dtype.BF16), CacheFormat.plain(Dtype.FP8)


def kept(model: str, stored: CacheFormat = BF16, **others: int) -> CachedLayers:
    return cached_layers(CATALOG.architectures[model], stored, **others)


def test_like_layers_stand_together() -> None:
    (rows,) = cached_layers(llama_3_1_8b(), BF16).rows
    assert (rows.layers, rows.bytes_per_token, rows.window, rows.is_chunk) == (32, 4096, None, False)
    assert cached_layers(llama_3_1_8b(), BF16).states == ()
    assert cached_layers(llama_3_1_8b(), BF16).bytes_per_token == 131_072


def test_windows_are_told_apart_and_may_be_left_aside() -> None:
    found = cached_layers(interleaved(window=512), BF16)
    assert sorted((row.layers, row.window or 0) for row in found.rows) == [(1, 0), (5, 512)]
    assert found.bytes_per_token == 6 * 1024
    assert {row.window for row in found.full_length.rows} == {None}
    assert found.full_length.bytes_per_token == found.bytes_per_token


def test_chunks_are_no_windows() -> None:
    found = {row.window: row for row in kept("llama-4-scout").rows}
    assert (found[8192].layers, found[8192].is_chunk) == (36, True)
    assert (found[None].layers, found[None].is_chunk) == (12, False)
    assert not any(row.is_chunk for row in kept("llama-4-scout").full_length.rows)


@pytest.mark.parametrize(
    ("model", "drafts", "size"),
    [
        # 32 × 128 × 128 × 4 B and 8,192 × 3 × 2 B; each guessed token adds 8,192 × 2 B
        ("qwen3.5-35b-a3b", 0, 2_146_304),
        ("qwen3.5-35b-a3b", 2, 2_179_072),
        # 48 × 128 × 128 × 4 B and 10,240 × 3 × 2 B
        ("qwen3.5-27b", 0, 3_207_168),
        ("qwen3.5-27b", 3, 3_268_608),
        ("qwen3.5-27b", 5, 3_309_568),
    ],
)
def test_a_state_keeps_the_inputs_of_guessed_tokens(model: str, drafts: int, size: int) -> None:
    (state,) = kept(model, draft_tokens=drafts).states
    assert state.bytes == size
    assert kept(model, draft_tokens=drafts).state_bytes == state.layers * size


def test_sparse_latents_as_their_kernels_want_them() -> None:
    """61 × (656 + 132) = 48,068 B a token: logs of DeepSeek-V3.2 in SGLang."""
    fp8 = {row.bytes_per_token: row.layers for row in kept("deepseek-v3.2", FP8).rows}
    assert fp8 == {512 + 16 + 2 * 64: 61, 128 + 4: 61}
    assert kept("deepseek-v3.2", FP8).bytes_per_token == 48_068
    bf16 = {row.bytes_per_token for row in kept("deepseek-v3.2").rows}
    assert bf16 == {2 * 576, 132}  # index keys are 8-bit whatever the cache is
    assert kept("deepseek-v3", FP8).bytes_per_token == 61 * 576  # without an indexer a latent is like anything else


def test_latents_are_copied_and_heads_divided() -> None:
    for tensor, heads in ((2, 4), (8, 1), (16, 1)):
        assert cached_layers(llama_3_1_8b().split(Split(tensor)), BF16).bytes_per_token == 32 * 2 * heads * 128 * 2
    latent = CATALOG.architectures["deepseek-v3"].split(Split(8))
    assert cached_layers(latent, BF16).bytes_per_token == 70_272


def test_rows_of_equal_size_and_another_shape_stay_apart() -> None:
    gemma = {(row.layers, row.bytes_per_token, row.window) for row in kept("gemma-4-31b").rows}
    assert gemma == {(10, 2 * 4 * 512 * 2, None), (50, 2 * 16 * 256 * 2, 1024)}


def test_guessing_layers_and_a_draft_model_keep_rows_too() -> None:
    record = CATALOG.models["deepseek-v3"]
    assert cached_layers(record.architecture_with_mtp, BF16).bytes_per_token == 62 * 1152
    beside = cached_layers(llama_3_1_8b(), BF16, 0, CATALOG.architectures["llama-3.2-1b"])
    assert beside.bytes_per_token == 131_072 + 16 * 2 * 8 * 64 * 2


def test_elements_with_scales_take_their_share() -> None:
    stored = CacheFormat(Dtype.INT8, 34 / 32)
    assert cached_layers(llama_3_1_8b(), stored).bytes_per_token == 65_536 * 34 / 32


@repeatable
@given(architectures(), st.sampled_from([Dtype.BF16, Dtype.FP8, Dtype.FP4]), st.integers(1, 100_000))
def test_rows_kept_are_the_cache_of_the_formulas(model: Architecture, dtype: Dtype, tokens: int) -> None:
    found = cached_layers(model, CacheFormat.plain(dtype))
    by_rows = found.state_bytes + sum(
        row.layers * row.bytes_per_token * min(tokens, row.window or tokens) for row in found.rows
    )
    assert by_rows == pytest.approx(float(kv_bytes_per_sequence(model, tokens, dtype)), rel=1e-12)


@pytest.mark.parametrize("model", CATALOG.models)
def test_every_catalog_model_keeps_what_the_formulas_say(model: str) -> None:
    architecture = CATALOG.architectures[model]
    found = cached_layers(architecture, BF16)
    # Index keys of sparse MLA are kept in 8 bits, whatever the cache is.
    indexed = sum(row.layers * (256 - 132) for row in found.rows if row.bytes_per_token == 132)
    for tokens in (100, 5000, 200_000):
        by_rows = found.state_bytes + sum(
            row.layers * row.bytes_per_token * min(tokens, row.window or tokens) for row in found.rows
        )
        counted = float(kv_bytes_per_sequence(architecture, tokens, Dtype.BF16))
        assert by_rows + indexed * tokens == pytest.approx(counted, rel=1e-12)


def test_a_window_decides_nothing_of_the_rate() -> None:
    one = interleaved(window=512)
    assert cached_layers(one, BF16).bytes_per_token == cached_layers(interleaved(window=4096), BF16).bytes_per_token
    assert cached_layers(replace(one, layers=one.layers[:1]), BF16).bytes_per_token == 5 * 1024


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
