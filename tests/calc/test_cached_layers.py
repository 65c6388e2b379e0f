"""What the layers of one GPU keep of a sequence: rates a token, windows and states, as engines store them."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.calc.architecture import Architecture
from app.calc.cached_layers import CachedLayers, CacheFormat, cached_layers
from app.calc.dtypes import Dtype
from app.calc.kv_cache import kv_bytes_per_sequence
from app.calc.split import Split
from tests.calc.strategies import architectures, repeatable
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
