"""What a nested block leaves out is its class's own; what it gives as null is null."""

from typing import Any

import pytest

from app.calc.dtypes import Dtype
from app.calc.memory.cache import kv_bytes_per_sequence
from app.calc.model.layers.grouped_attention import GroupedAttention
from app.calc.model.layers.latent_attention import LatentAttention
from app.calc.model.parameters import count_parameters
from app.checkpoint.keys import Origin
from app.checkpoint.nesting import CLASS_DEFAULTS
from app.checkpoint.reading import ConfigError, Reading, read_config
from tests.checkpoint.published import config, nested

KIMI_VL: dict[str, Any] = {
    "model_type": "deepseek_v3",
    "max_position_embeddings": 131_072,
    "first_k_dense_replace": 1,
    "hidden_size": 2048,
    "intermediate_size": 11264,
    "kv_lora_rank": 512,
    "moe_intermediate_size": 1408,
    "n_routed_experts": 64,
    "n_shared_experts": 2,
    "num_attention_heads": 16,
    "num_experts_per_tok": 6,
    "num_hidden_layers": 27,
    "num_key_value_heads": 16,
    "q_lora_rank": None,
    "qk_nope_head_dim": 128,
    "qk_rope_head_dim": 64,
    "v_head_dim": 128,
    "vocab_size": 163840,
}


def inside(kind: str, **keys: Any) -> Reading:
    return read_config({"model_type": "some_vl", "text_config": {"model_type": kind} | keys}, "Mine")


def attention(reading: Reading) -> GroupedAttention:
    mixer = reading.architecture.layers[0].mixer
    assert isinstance(mixer, GroupedAttention)
    return mixer


def test_one_projection_of_queries_is_said_by_null_inside_as_outside() -> None:
    outside = read_config(KIMI_VL, "Kimi")
    reading = read_config({"model_type": "kimi_vl", "text_config": KIMI_VL}, "Kimi")
    assert reading.architecture == outside.architecture
    assert count_parameters(reading.architecture).total == 15_960_110_208
    mixer = reading.architecture.layers[0].mixer
    assert isinstance(mixer, LatentAttention)
    assert mixer.q_rank is None


def test_a_rank_that_is_absent_is_the_class_s_own() -> None:
    reading = inside("deepseek_v3", **{key: value for key, value in KIMI_VL.items() if key != "q_lora_rank"})
    field = next(field for field in reading.fields if field.name == "q_rank")
    assert (field.value, field.origin) == (1536, Origin.DEFAULT)
    mixer = reading.architecture.layers[0].mixer
    assert isinstance(mixer, LatentAttention)
    assert mixer.q_rank == 1536


@pytest.mark.parametrize("model_type", ["llama", "qwen2", "qwen3", "cohere", "granite", "mistral"])
def test_no_number_of_kv_heads_is_one_for_each_head(model_type: str) -> None:
    mixer = attention(inside(model_type, hidden_size=8192, num_attention_heads=64, num_key_value_heads=None))
    assert mixer.n_kv_heads == 64


def test_a_null_that_the_class_cannot_do_without_is_missing() -> None:
    with pytest.raises(ConfigError) as caught:
        inside("llama", num_hidden_layers=None)
    assert (caught.value.key, caught.value.message) == ("text_config.num_hidden_layers", "is missing.")


@pytest.mark.parametrize(
    ("given", "key"),
    [
        (config("gemma-2-2b", sliding_window=None), "sliding_window"),
        (config("gpt-oss-20b", sliding_window=None), "sliding_window"),
        (nested("gemma-3-27b", sliding_window=None), "text_config.sliding_window"),
        (
            {"model_type": "some_vl", "text_config": {"model_type": "gemma3_text", "sliding_window": None}},
            "text_config.sliding_window",
        ),
    ],
)
def test_a_window_of_null_is_refused_where_layers_of_the_class_need_one(given: dict[str, Any], key: str) -> None:
    with pytest.raises(ConfigError) as caught:
        read_config(given, "Mine")
    assert caught.value.key == key
    assert caught.value.message.startswith("is null, but ")


def test_a_window_of_null_is_none_where_every_layer_sees_everything() -> None:
    layers = {"num_hidden_layers": 2, "layer_types": ["full_attention"] * 2}
    assert attention(inside("gemma3_text", sliding_window=None, **layers)).window is None


@pytest.mark.parametrize("kind", ["qwen2", "qwen3", "smollm3"])
def test_windows_that_are_switched_on_and_null_are_none(kind: str) -> None:
    assert attention(inside(kind, use_sliding_window=True, max_window_layers=0, sliding_window=None)).window is None


def test_chunks_of_null_are_none_in_llama_4() -> None:
    assert attention(inside("llama4_text")).chunk == 8192
    assert attention(inside("llama4_text", attention_chunk_size=None)).chunk is None
    with pytest.raises(ConfigError) as caught:
        inside("llama4_text", attention_chunk_size=None, layer_types=["chunked_attention"] * 48)
    assert caught.value.key == "text_config.attention_chunk_size"


def test_mistral_s_class_has_a_window_unless_the_file_says_null() -> None:
    assert attention(inside("mistral")).window == 4096
    assert attention(inside("mistral", sliding_window=None)).window is None
    assert attention(inside("mistral", sliding_window=1024)).window == 1024


def test_tiny_llava_has_heads_of_hidden_over_heads() -> None:
    reading = inside("llama", hidden_size=2048, num_attention_heads=32, num_key_value_heads=4, num_hidden_layers=22)
    assert attention(reading).head_dim == 64
    for length in (1, 4096, 100_000):
        assert kv_bytes_per_sequence(reading.architecture, length, Dtype.BF16) == 22_528 * length


def test_a_nested_llama_shares_no_kv_heads_unless_it_says_so() -> None:
    mixer = attention(inside("llama", hidden_size=8192, num_attention_heads=64))
    assert (mixer.n_kv_heads, mixer.head_dim) == (64, 128)
    assert attention(inside("mistral", hidden_size=8192, num_attention_heads=64)).n_kv_heads == 8


@pytest.mark.parametrize(
    ("model_type", "key", "value"),
    [
        ("llama", "head_dim", None),
        ("llama", "num_key_value_heads", None),
        ("mistral", "head_dim", None),
        ("mistral", "num_key_value_heads", 8),
        ("ministral3", "head_dim", 128),
        ("mixtral", "num_key_value_heads", 8),
        ("qwen2", "head_dim", None),
        ("qwen2", "num_key_value_heads", 32),
        ("qwen3", "head_dim", 128),
        ("qwen3_moe", "head_dim", None),
        ("qwen3_vl_moe_text", "head_dim", None),
        ("qwen3_vl_moe_text", "num_key_value_heads", 16),
        ("gemma", "num_key_value_heads", 16),
        ("gemma2", "head_dim", 256),
        ("cohere", "num_key_value_heads", None),
        ("cohere2", "num_key_value_heads", None),
        ("cohere2", "head_dim", None),
        ("phi3", "num_key_value_heads", None),
        ("granite", "num_key_value_heads", None),
        ("deepseek_v2", "num_key_value_heads", None),
    ],
)
def test_defaults_are_those_of_the_classes(model_type: str, key: str, value: int | None) -> None:
    assert CLASS_DEFAULTS[model_type].get(key) == value
