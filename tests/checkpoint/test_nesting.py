"""The language model is found wherever a file keeps it, and Mistral's own keys are turned into the usual ones."""

from typing import Any

import pytest

from app.calc.model.layers.grouped_attention import GroupedAttention
from app.calc.model.layers.latent_attention import LatentAttention
from app.checkpoint.keys import Origin
from app.checkpoint.reading import ConfigError, read_config
from tests.checkpoint.published import config

PARAMS: dict[str, Any] = {
    "dim": 4096,
    "n_layers": 36,
    "head_dim": 128,
    "hidden_dim": 12_288,
    "n_heads": 32,
    "n_kv_heads": 8,
    "vocab_size": 131_072,
    "max_seq_len": 131_072,
}


@pytest.mark.parametrize("block", ["text_config", "llm_config", "language_config"])
def test_a_model_inside_a_block_is_the_same_model(block: str) -> None:
    inside = config("qwen3-8b")
    reading = read_config({"model_type": "some_vl", block: inside}, "Qwen3 8B")
    assert reading.architecture == read_config(inside, "Qwen3 8B").architecture
    assert (reading.model_type, reading.family) == ("qwen3", "qwen3")


def test_a_thinker_has_its_language_model_one_block_further_in() -> None:
    inside = config("qwen3-30b-a3b", model_type="qwen3_omni_moe_text")
    reading = read_config({"model_type": "qwen3_omni_moe", "thinker_config": {"text_config": inside}}, "Omni")
    assert reading.family == "qwen3_moe"
    assert {f.key for f in reading.fields} >= {"thinker_config.text_config.hidden_size"}


@pytest.mark.parametrize(
    ("given", "key"),
    [
        ({"model_type": "gemma3"}, "text_config"),
        ({"model_type": "gemma3", "text_config": []}, "text_config"),
        ({"model_type": "mine", "text_config": {"hidden_size": 5}}, "text_config.model_type"),
        ({"model_type": "mine", "text_config": {"model_type": 5}}, "text_config.model_type"),
        ({"model_type": "omni", "thinker_config": {"a": 1}}, "thinker_config.text_config"),
    ],
)
def test_a_block_that_is_none_is_refused_by_its_path(given: dict[str, Any], key: str) -> None:
    with pytest.raises(ConfigError) as caught:
        read_config(given, "Mine")
    assert caught.value.key == key


def test_a_class_can_say_more_than_the_model_type() -> None:
    reading = read_config(config("grok-2"), "Grok 2")
    assert (reading.family, reading.model_type) == ("grok-2", "grok-2")


def test_mistrals_own_keys_are_read_and_named_as_the_file_has_them() -> None:
    reading = read_config(PARAMS, "Mistral")
    (group,) = reading.architecture.layers
    assert group.mixer == GroupedAttention(32, 8, 128)
    field = next(field for field in reading.fields if field.name == "hidden_size")
    assert (field.origin, field.key) == (Origin.READ, "dim")
    assert reading.unread == ()


def test_a_list_of_windows_is_one_round_of_layers() -> None:
    reading = read_config(PARAMS | {"sliding_window": [None, 32_768, 32_768, 32_768]}, "Ministral")
    windows = [reading.architecture.layers[number].mixer for number in reading.architecture.order]
    found = [mixer.window for mixer in windows if isinstance(mixer, GroupedAttention)]
    assert found == [None, 32_768, 32_768, 32_768] * 9


@pytest.mark.parametrize("windows", [[], [1, 2], [True], ["a"], [None], [None, -5], [[1]]], ids=repr)
def test_a_list_of_windows_has_one_width(windows: list[Any]) -> None:
    with pytest.raises(ConfigError) as caught:
        read_config(PARAMS | {"sliding_window": windows}, "Ministral")
    assert caught.value.key.endswith("sliding_window")


def test_experts_and_latents_of_mistrals_own_keys() -> None:
    mixtral = read_config(PARAMS | {"moe": {"num_experts": 8, "num_experts_per_tok": 2}}, "Mixtral")
    assert mixtral.family == "mixtral"
    assert mixtral.architecture.has_experts
    large = read_config(config("mistral-large-3"), "Large 3")
    assert isinstance(large.architecture.layers[0].mixer, LatentAttention)
    assert {f.key for f in large.fields} >= {"moe.num_experts", "moe.expert_hidden_dim"}


def test_fp8_of_mistrals_own_keys() -> None:
    plan = read_config(
        PARAMS | {"quantization": {"qformat_weight": "fp8_e4m3", "qscheme_act": "TENSOR"}}, "Mistral"
    ).plan
    assert {layout.element for _, layout in plan.narrow} == {"fp8"}


OUTSIDE: dict[str, Any] = {
    "model_type": "llava",
    "num_hidden_layers": 22,
    "num_key_value_heads": 8,
    "vocab_size": 128_256,
    "text_config": {"model_type": "llama", "hidden_size": 4096},
}


def test_a_size_outside_the_block_is_taken_where_the_block_has_none() -> None:
    reading = read_config(OUTSIDE, "LLaVA")
    architecture = reading.architecture
    (group,) = architecture.layers
    assert (architecture.n_layers, architecture.vocab_size) == (22, 128_256)
    assert group.mixer == GroupedAttention(32, 8, 128)
    read = {field.name: field for field in reading.fields}
    for name, key in (("n_layers", "num_hidden_layers"), ("n_kv_heads", "num_key_value_heads")):
        assert (read[name].origin, read[name].key) == (Origin.READ, key)
    (notice,) = [notice for notice in reading.notices if "outside" in notice]
    assert all(key in notice for key in ("num_hidden_layers", "num_key_value_heads", "vocab_size"))


def test_a_size_outside_that_the_family_has_no_use_for_is_told_once() -> None:
    inner = config("rwkv7-1.5b") | {"intermediate_size": ...}
    inner = {key: value for key, value in inner.items() if value is not ...}
    reading = read_config({"model_type": "some_vl", "num_layers": 3, "text_config": inner}, "Mine")
    assert reading.unread.count("num_layers") == 1


@pytest.mark.parametrize(
    ("outside", "key"),
    [
        ({"hidden_size": 8192.0}, "hidden_size"),
        ({"hidden_size": "4096"}, "hidden_size"),
        ({"hidden_size": True}, "hidden_size"),
        ({"hidden_size": 5120}, "hidden_size"),
    ],
)
def test_a_size_outside_may_not_contradict_the_block(outside: dict[str, Any], key: str) -> None:
    with pytest.raises(ConfigError) as caught:
        read_config(OUTSIDE | outside, "LLaVA")
    assert (caught.value.key, caught.value.message) == (key, "contradicts text_config.hidden_size.")
    assert read_config(OUTSIDE | {"hidden_size": 4096.0}, "LLaVA").architecture.hidden_size == 4096


def test_a_null_inside_and_a_size_outside_contradict_each_other() -> None:
    inner = OUTSIDE["text_config"] | {"num_key_value_heads": None}
    with pytest.raises(ConfigError) as caught:
        read_config(OUTSIDE | {"text_config": inner}, "LLaVA")
    assert caught.value.key == "num_key_value_heads"
    assert "null" in caught.value.message


def test_another_spelling_inside_is_compared_with_the_usual_one_outside() -> None:
    inner = OUTSIDE["text_config"] | {"num_layers": 30}
    with pytest.raises(ConfigError) as caught:
        read_config(OUTSIDE | {"text_config": inner}, "LLaVA")
    assert (caught.value.key, caught.value.message) == ("num_hidden_layers", "contradicts text_config.num_layers.")


def test_two_blocks_that_differ_are_refused_and_two_that_agree_are_one() -> None:
    inner = config("qwen3-8b")
    both = {"model_type": "some_vl", "text_config": inner, "llm_config": dict(inner)}
    assert read_config(both, "Mine").architecture == read_config(inner, "Mine").architecture
    with pytest.raises(ConfigError) as caught:
        read_config(both | {"llm_config": config("llama-3.1-8b")}, "Mine")
    assert caught.value.key == "llm_config"
    assert "text_config" in caught.value.message
