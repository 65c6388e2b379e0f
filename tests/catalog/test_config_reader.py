"""Published configurations read as the catalog's architectures; everything else refused by its key."""

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from app.calc.architecture import Architecture, Attention, FeedForward, LayerGroup, QkNorm
from app.calc.parameters import count_parameters
from app.catalog.config_reader import READABLE_TYPES, ConfigError, read_config
from tests.factories import shipped_catalog

# Configurations of the shape in which they are published, worth a look: Qwen2.5 has biases without a key and a window
# that is switched off; 80 heads of Seed-OSS are twice its hidden size; SmolLM3 ties its embeddings by default.
CONFIGS: dict[str, dict[str, Any]] = json.loads((Path(__file__).parents[1] / "data" / "configs.json").read_text())
LLAMA, MISTRAL_V01 = CONFIGS["llama-3.1-8b"], CONFIGS["mistral-7b-v0.1"]


def llama(**changes: Any) -> dict[str, Any]:
    """The Llama configuration with changes; `...` takes a key away."""
    return {key: value for key, value in (LLAMA | changes).items() if value is not ...}


def refused(config: dict[str, Any]) -> ConfigError:
    with pytest.raises(ConfigError) as caught:
        read_config(config, "Mine")
    assert str(caught.value) == f"{caught.value.key}: {caught.value.message}"
    assert caught.value.message.endswith(".")
    return caught.value


@pytest.mark.parametrize("model", CONFIGS)
def test_a_published_configuration_gives_the_architecture_of_the_catalog(model: str) -> None:
    expected = shipped_catalog().architectures[model]
    read = read_config(CONFIGS[model], expected.name)
    assert read == expected
    assert count_parameters(read).total == shipped_catalog().models[model].stated.params


def test_every_family_that_is_readable_is_among_them() -> None:
    assert {config["model_type"] for config in CONFIGS.values()} == set(READABLE_TYPES)


@pytest.mark.parametrize("model_type", READABLE_TYPES)
def test_the_same_numbers_in_every_family(model_type: str) -> None:
    read = read_config(llama(model_type=model_type), "Mine")
    (group,) = read.layers
    assert (read.hidden_size, read.n_layers, group.attention.kind) == (4096, 32, "GQA")
    assert group.attention.qkv_bias is (model_type == "qwen2")
    norms = {"qwen3": QkNorm.PER_HEAD, "olmo2": QkNorm.FULL_WIDTH}
    assert group.attention.qk_norm is norms.get(model_type, QkNorm.NONE)


def test_what_may_be_left_out_takes_the_default_of_the_model_class() -> None:
    least = {
        key: LLAMA[key]
        for key in (
            "model_type",
            "hidden_size",
            "num_attention_heads",
            "num_hidden_layers",
            "intermediate_size",
            "vocab_size",
        )
    }
    assert read_config(least, "Least") == Architecture(
        "Least",
        4096,
        128_256,
        (LayerGroup(32, Attention(32, 32, 128), FeedForward(14_336)),),  # every head its own key and value
    )


def test_null_is_as_good_as_left_out() -> None:
    for key in ("num_key_value_heads", "head_dim", "max_position_embeddings", "tie_word_embeddings", "mlp_bias"):
        assert read_config(llama(**{key: None}), "Mine") == read_config(llama(**{key: ...}), "Mine")


def test_a_head_width_that_is_given_wins_over_the_quotient() -> None:
    (group,) = read_config(llama(head_dim=256), "Mine").layers
    assert group.attention.query_width == 32 * 256


def test_biases_are_read_where_they_are_switched_on() -> None:
    (plain,) = read_config(LLAMA, "Mine").layers
    (biased,) = read_config(llama(attention_bias=True, mlp_bias=True), "Mine").layers
    assert biased.attention == replace(plain.attention, qkv_bias=True, output_bias=True)
    assert biased.feed_forward == replace(plain.feed_forward, bias=True)


def test_only_families_that_honour_a_window_read_it() -> None:
    for model_type in READABLE_TYPES:
        (group,) = read_config(llama(model_type=model_type, sliding_window=4096), "Mine").layers
        assert group.attention.window == (4096 if model_type in ("mistral", "phi3") else None)


@pytest.mark.parametrize(
    "model_type",
    ["mixtral", "deepseek_v3", "gpt2", "gemma3", "qwen3_moe", "Llama", "LLAMA", " llama", "", "llama\n", "x" * 10_000],
)
def test_an_unknown_family_is_refused_and_not_guessed(model_type: str) -> None:
    error = refused(llama(model_type=model_type))
    assert error.key == "model_type"
    assert "llama" in error.message
    assert "x" * 100 not in error.message  # what was sent is not sent back


@pytest.mark.parametrize("model_type", [..., None, 5, True, ["llama"], {"a": 1}])
def test_a_family_is_needed(model_type: Any) -> None:
    assert refused(llama(model_type=model_type)).key == "model_type"


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("num_local_experts", 8),
        ("num_experts", 128),
        ("n_routed_experts", 256),
        ("moe_num_experts", 64),
        ("kv_lora_rank", 512),
        ("q_lora_rank", 1536),
        ("layers_block_type", ["attention", "mamba"]),
        ("hybrid_override_pattern", "M-M*"),
        ("block_configs", [{"attention": {}}]),
        ("linear_attn_config", {"kda_layers": [1]}),
        ("linear_num_value_heads", 32),
        ("mamba_d_state", 128),
        ("ssm_state_size", 128),
        ("num_kv_shared_layers", 10),
        ("attention_chunk_size", 8192),
        ("index_topk", 2048),
        ("text_config", {"model_type": "llama"}),
        ("num_local_experts", "8"),
        ("kv_lora_rank", math.nan),
    ],
)
def test_a_structure_that_is_not_computed_is_refused_by_its_key(key: str, value: Any) -> None:
    assert refused(llama(**{key: value})).key == key


@pytest.mark.parametrize("value", [None, 0, False])
def test_a_structure_that_is_switched_off_is_none(value: Any) -> None:
    assert read_config(llama(num_local_experts=value, kv_lora_rank=value), "Mine") == read_config(LLAMA, "Mine")


@pytest.mark.parametrize(
    "layer_types",
    [
        ["sliding_attention"] * 32,
        ["full_attention"] * 31 + ["sliding_attention"],
        ["full_attention"] * 31 + ["linear_attention"],
        ["full_attention"] * 31,
        ["full_attention"] * 33,
        [],
        "full_attention",
        {"0": "full_attention"},
        5,
        [None] * 32,
        [["full_attention"]] * 32,
    ],
    ids=repr,
)
def test_layers_of_other_or_missing_kinds_are_refused(layer_types: Any) -> None:
    assert refused(llama(layer_types=layer_types)).key == "layer_types"


def test_layers_of_one_kind_are_read() -> None:
    assert read_config(llama(layer_types=["full_attention"] * 32), "Mine") == read_config(LLAMA, "Mine")


def test_a_window_in_some_layers_is_refused() -> None:
    assert refused(CONFIGS["qwen2.5-7b"] | {"use_sliding_window": True}).key == "use_sliding_window"


NEEDED = ("hidden_size", "num_attention_heads", "num_hidden_layers", "intermediate_size", "vocab_size")
NUMBERS = (*NEEDED, "num_key_value_heads", "head_dim")
WRONG = [
    True,
    False,
    "4096",
    "",
    1.5,
    4096.0,
    -1,
    0,
    1e30,
    10**30,
    math.nan,
    float("inf"),
    [4096],
    {},
    {"a": 1},
    [],
]


@pytest.mark.parametrize("key", NEEDED)
@pytest.mark.parametrize("value", [..., None])
def test_a_number_that_is_needed_is_missed_by_name(key: str, value: Any) -> None:
    error = refused(llama(**{key: value}))
    assert (error.key, error.message) == (key, "is missing.")


@pytest.mark.parametrize("key", NUMBERS)
@pytest.mark.parametrize("value", WRONG, ids=repr)
def test_what_is_no_whole_number_in_range_is_refused(key: str, value: Any) -> None:
    error = refused(llama(**{key: value}))
    assert error.key == key
    assert error.message.startswith("must be a whole number from 1 to ")


@pytest.mark.parametrize("value", WRONG, ids=repr)
def test_a_context_that_is_no_whole_number_is_refused(value: Any) -> None:
    assert refused(llama(max_position_embeddings=value)).key == "max_position_embeddings"


@pytest.mark.parametrize("value", WRONG, ids=repr)
def test_a_window_that_is_no_whole_number_is_refused(value: Any) -> None:
    assert refused(MISTRAL_V01 | {"sliding_window": value}).key == "sliding_window"


@pytest.mark.parametrize("key", ["attention_bias", "mlp_bias", "tie_word_embeddings", "use_sliding_window"])
@pytest.mark.parametrize("value", [1, 0, "true", "false", "", 1.0, [], {}, [True]], ids=repr)
def test_a_switch_is_true_or_false(key: str, value: Any) -> None:
    error = refused(llama(**{key: value}))
    assert (error.key, error.message) == (key, "must be true or false.")


def test_a_bias_that_the_family_is_not_computed_with_is_refused() -> None:
    # Seed-OSS can have a bias on its output projection; to leave it out in silence would count too few parameters.
    assert refused(CONFIGS["seed-oss-36b"] | {"attention_out_bias": True}).key == "attention_out_bias"


@pytest.mark.parametrize(
    ("changes", "key"),
    [
        ({"num_key_value_heads": 5}, "num_key_value_heads"),
        ({"num_key_value_heads": 64}, "num_key_value_heads"),
        ({"num_attention_heads": 31, "num_key_value_heads": None}, "head_dim"),
        ({"num_attention_heads": 5000, "num_key_value_heads": 5000}, "head_dim"),
    ],
)
def test_heads_that_contradict_are_refused(changes: dict[str, Any], key: str) -> None:
    assert refused(llama(**changes)).key == key


@pytest.mark.parametrize(
    ("key", "most"),
    [
        ("hidden_size", 10**6),
        ("num_hidden_layers", 10**4),
        ("num_attention_heads", 10**5),
        ("head_dim", 10**5),
        ("intermediate_size", 10**7),
        ("vocab_size", 10**8),
        ("max_position_embeddings", 10**8),
    ],
)
def test_sizes_have_an_upper_end(key: str, most: int) -> None:
    sound = llama(head_dim=128, num_key_value_heads=1)
    read_config(sound | {key: most}, "Mine")
    for value in (most + 1, 10**30, 10**400):
        assert refused(sound | {key: value}).key == key


def test_an_empty_or_foreign_object_is_refused_by_the_first_key_that_is_needed() -> None:
    assert refused({}).key == "model_type"
    assert refused({"a": 1}).key == "model_type"
    assert refused({"model_type": "llama"}).key == "hidden_size"


def test_keys_that_change_no_size_are_passed_over() -> None:
    extra: dict[str, Any] = {
        "rope_theta": "?",
        "quantization_config": {"bits": 4},
        "torch_dtype": None,
        "dtype": "bfloat16",
        "é": [[]],
    }
    assert read_config(llama(**extra), "Mine") == read_config(LLAMA, "Mine")
