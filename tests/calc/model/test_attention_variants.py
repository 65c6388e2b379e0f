"""The same model as MHA, GQA, MQA and MLA: cache and weights by hand, what stays, and what is refused by name.

The yardstick of the cache: plain multi-head attention, by hand and for every model of the catalog.
"""

import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.calc.dtypes import Dtype
from app.calc.memory.cache import cache_shape, kv_bytes_per_sequence
from app.calc.model.architecture import (
    Architecture,
    LayerGroup,
    MixerKind,
    MultiTokenPrediction,
    mixer_kind,
    model_kind,
)
from app.calc.model.attention_variants import (
    AttentionVariant,
    VariantError,
    as_variant,
    multi_head_bytes_per_sequence,
    multi_head_elements_per_token,
    own_variant,
)
from app.calc.model.layers.dense import DenseFeedForward
from app.calc.model.layers.grouped_attention import GroupedAttention
from app.calc.model.layers.latent_attention import LatentAttention, SparseLatentAttention
from app.calc.model.layers.mamba import Mamba2, ParallelMamba2
from app.calc.model.layers.recurrent import GatedDeltaNet
from app.calc.model.layers.sparse_attention import SelectedAttention
from app.calc.model.parameters import count_parameters
from tests.calc.strategies import architectures, repeatable
from tests.factories import interleaved, llama_3_1_8b, shipped_catalog

MHA, GQA, MQA, MLA = AttentionVariant
CATALOG = shipped_catalog().architectures


def elements(architecture: Architecture) -> float:
    return sum(term.elements_per_token for term in cache_shape(architecture).terms)


@pytest.mark.parametrize(
    ("variant", "bytes_per_token"),
    [(MHA, 524_288), (GQA, 131_072), (MQA, 16_384), (MLA, 32 * 576 * 2)],
)
def test_cache_of_llama_3_1_8b(variant: AttentionVariant, bytes_per_token: int) -> None:
    told = as_variant(llama_3_1_8b(), variant)
    assert kv_bytes_per_sequence(told, 1, Dtype.BF16) == bytes_per_token


@pytest.mark.parametrize(
    ("variant", "attention"),
    [
        (MHA, 4 * 4096 * 4096),
        (GQA, 2 * 4096 * 4096 + 2 * 4096 * 1024),
        (MQA, 2 * 4096 * 4096 + 2 * 4096 * 128),
        # Query with its rotary part, latent down, norm, keys and values up, output.
        (MLA, 4096 * 32 * 192 + 4096 * 576 + 512 + 512 * 32 * 256 + 4096 * 4096),
    ],
)
def test_projections_follow_what_is_cached(variant: AttentionVariant, attention: int) -> None:
    rest = 8_030_261_248 - 32 * (2 * 4096 * 4096 + 2 * 4096 * 1024)
    assert count_parameters(as_variant(llama_3_1_8b(), variant)).total == rest + 32 * attention


@pytest.mark.parametrize(
    ("model", "variant", "expected"),
    [
        ("deepseek-v3", MHA, 2_498_560),
        ("deepseek-v3", GQA, 61 * 8 * 320),
        ("deepseek-v3", MQA, 61 * 320),
        ("deepseek-v3", MLA, 61 * 576),
        ("qwen2.5-7b", MHA, 28 * 28 * 256),  # 4 KV heads of its own
        ("qwen2.5-7b", GQA, 28 * 4 * 256),
        ("llama-2-7b", GQA, 32 * 8 * 256),
        ("qwen3-next-80b-a3b", MLA, 12 * (1024 + 128)),  # heads of 256, in 12 of 48 layers
        ("gpt-oss-120b", MQA, 36 * 128),
        ("minimax-m3", MHA, 60 * 64 * 256 + 57 * 128),  # index keys stay
        ("deepseek-v3.2", MQA, 61 * (320 + 128)),
    ],
)
def test_cache_by_hand(model: str, variant: AttentionVariant, expected: int) -> None:
    assert elements(as_variant(CATALOG[model], variant)) == expected


@pytest.mark.parametrize("model", CATALOG)
def test_every_model_is_told_or_refused_by_name(model: str) -> None:
    architecture = CATALOG[model]
    for variant in AttentionVariant:
        told = told_or_none(architecture, variant)
        if told is None:
            with pytest.raises(VariantError, match=re.escape(architecture.name)):
                as_variant(architecture, variant)
            continue
        assert own_variant(told) is variant or all(_one_head(group) for group in architecture.layers)
        assert told.n_layers == architecture.n_layers
        assert cache_shape(told).states == cache_shape(architecture).states
        assert as_variant(told, variant) is told
        assert model_kind(told) is not MixerKind.NONE


def told_or_none(architecture: Architecture, variant: AttentionVariant) -> Architecture | None:
    try:
        return as_variant(architecture, variant)
    except VariantError:
        return None


def _one_head(group: LayerGroup) -> bool:
    return isinstance(group.mixer, GroupedAttention) and group.mixer.n_heads == 1


@pytest.mark.parametrize("model", CATALOG)
def test_what_a_model_is_comes_back_unchanged(model: str) -> None:
    architecture = CATALOG[model]
    try:
        own = own_variant(architecture)
    except VariantError:
        assert "compressed" in architecture.attention_kind
    else:
        assert as_variant(architecture, own) is architecture


@repeatable
@given(architectures())
def test_less_is_kept_from_all_heads_to_one(architecture: Architecture) -> None:
    most, least = (as_variant(architecture, variant) for variant in (MHA, MQA))
    assert elements(least) <= elements(architecture) <= elements(most) == multi_head_elements_per_token(architecture)
    assert count_parameters(least).total <= count_parameters(architecture).total <= count_parameters(most).total


@repeatable
@given(architectures(st.integers(1, 5000)), st.integers(1, 20_000))
def test_windows_are_kept(architecture: Architecture, tokens: int) -> None:
    widest = max(group.mixer.window or 0 for group in architecture.layers if isinstance(group.mixer, GroupedAttention))
    for variant in AttentionVariant:
        told = told_or_none(architecture, variant)
        if told is None:
            assert variant is GQA  # heads that fall into no groups
            continue
        at_window, beyond = (kv_bytes_per_sequence(told, n, Dtype.BF16) for n in (widest, widest + tokens))
        assert at_window == beyond


def test_chunks_and_windows_stay_in_a_latent() -> None:
    scout, model = (as_variant(architecture, MLA) for architecture in (CATALOG["llama-4-scout"], interleaved()))
    assert {mixer_kind(group.mixer) for group in scout.layers} == {MixerKind.CHUNK, MixerKind.LATENT}
    assert {mixer_kind(group.mixer) for group in model.layers} == {MixerKind.WINDOW, MixerKind.LATENT}
    # 5 windowed layers of 512 tokens and a full one: rows of 4 × 64 + 32.
    assert kv_bytes_per_sequence(model, 1000, Dtype.BF16) == (5 * 512 + 1000) * 288 * 2


def test_recurrent_layers_stay() -> None:
    told = as_variant(CATALOG["qwen3-next-80b-a3b"], MHA)
    assert sum(group.count for group in told.layers if isinstance(group.mixer, GatedDeltaNet)) == 36


def test_layers_of_multi_token_prediction_change_too() -> None:
    group = LayerGroup(1, GroupedAttention(32, 8, 128), (DenseFeedForward(14_336),))
    told = as_variant(replace(llama_3_1_8b(), mtp=MultiTokenPrediction((group,), 1)), MHA)
    assert elements(told) == 33 * 2 * 32 * 128


def test_a_selection_is_kept_both_ways() -> None:
    sparse = as_variant(CATALOG["deepseek-v3.2"], GQA)
    mixers = [group.mixer for group in sparse.layers]
    assert all(isinstance(mixer, SelectedAttention) and mixer.top == 2048 for mixer in mixers)
    chosen = [group.mixer for group in as_variant(CATALOG["minimax-m3"], MLA).layers]
    tops = [mixer.top for mixer in chosen if isinstance(mixer, SparseLatentAttention)]
    assert tops == [2048]  # 16 blocks of 128


def test_a_gate_is_kept_and_a_factorised_query_too() -> None:
    gated = LatentAttention(16, 512, 128, 64, 128, q_rank=1536, gated=True)
    model = Architecture("gated", 2048, 1000, (LayerGroup(1, gated, (DenseFeedForward(64),)),))
    plain = as_variant(model, MHA)
    # The projections of the latent, down and up, and its norm give way to keys and values from the hidden state.
    latent = 2048 * 576 + 512 * 16 * 256 + 512
    keys_and_values = 2048 * 16 * (192 + 128)
    difference = count_parameters(plain).total - count_parameters(model).total
    assert difference == keys_and_values - latent


@pytest.mark.parametrize(
    ("model", "variant", "reason"),
    [
        ("falcon-7b", GQA, "71 heads"),
        ("gemma-3n-e4b", MLA, "share the cache"),
        ("deepseek-v4-pro", MHA, "none of MHA, GQA, MQA and MLA"),
    ],
)
def test_what_cannot_be_told_is_refused(model: str, variant: AttentionVariant, reason: str) -> None:
    with pytest.raises(VariantError, match=reason):
        as_variant(CATALOG[model], variant)


def test_without_attention_there_is_no_variant() -> None:
    mixer = next(g.mixer for g in CATALOG["qwen3-next-80b-a3b"].layers if isinstance(g.mixer, GatedDeltaNet))
    model = Architecture("recurrent", 512, 1000, (LayerGroup(4, mixer, (DenseFeedForward(64),)),))
    with pytest.raises(VariantError, match="recurrent has no attention"):
        as_variant(model, MHA)


ARCHITECTURES = shipped_catalog().architectures


@pytest.mark.parametrize(
    ("model", "elements"),
    [
        ("llama-3.1-8b", 32 * 32 * (128 + 128)),
        ("llama-2-7b", 32 * 32 * (128 + 128)),
        ("deepseek-v3", 61 * 128 * (128 + 64 + 128)),
        ("deepseek-v3.2", 61 * 128 * (128 + 64 + 128)),
        ("gemma-3-27b", 62 * 32 * 2 * 128),
        ("qwen3-next-80b-a3b", 48 * 16 * 2 * 256),  # 36 recurrent layers count as the 12 of attention
        ("nemotron-3-super-120b-a12b", 48 * 32 * 2 * 128),  # 40 layers of experts mix nothing
    ],
)
def test_by_hand(model: str, elements: int) -> None:
    assert multi_head_elements_per_token(ARCHITECTURES[model]) == elements


@pytest.mark.parametrize("model", ARCHITECTURES)
def test_no_model_keeps_more_than_the_yardstick_once_its_states_are_paid(model: str) -> None:
    architecture = ARCHITECTURES[model]
    plain = multi_head_bytes_per_sequence(architecture, 8_192, Dtype.BF16)
    assert plain is not None
    assert kv_bytes_per_sequence(architecture, 8_192, Dtype.BF16) <= plain


def test_plain_attention_is_its_own_yardstick() -> None:
    group = LayerGroup(4, GroupedAttention(8, 8, 64), (DenseFeedForward(512),))
    architecture = Architecture("plain", 512, 1_000, (group,))
    assert multi_head_bytes_per_sequence(architecture, 100, Dtype.FP8) == kv_bytes_per_sequence(
        architecture, 100, Dtype.FP8
    )


def test_without_attention_there_is_nothing_to_measure_by() -> None:
    group = LayerGroup(4, Mamba2(8, 64, 64, 1), (DenseFeedForward(512),))
    architecture = Architecture("recurrent", 512, 1_000, (group,))
    assert multi_head_elements_per_token(architecture) is None
    assert multi_head_bytes_per_sequence(architecture, 100, Dtype.BF16) is None


def test_attention_beside_a_state_is_measured_by_its_own_heads() -> None:
    mixer = ParallelMamba2(GroupedAttention(8, 2, 64), Mamba2(24, 64, 128, 1))
    architecture = Architecture("parallel", 512, 1_000, (LayerGroup(36, mixer, (DenseFeedForward(512),)),))
    assert multi_head_elements_per_token(architecture) == 36 * 8 * 2 * 64


def test_it_grows_with_every_token() -> None:
    one = multi_head_bytes_per_sequence(llama_3_1_8b(), 1, Dtype.BF16)
    assert one == 524_288
    assert multi_head_bytes_per_sequence(llama_3_1_8b(), 1_000, Dtype.BF16) == 524_288_000
