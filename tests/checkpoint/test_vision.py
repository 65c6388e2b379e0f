"""Vision towers: the published total less that of the language model, or nothing and a notice."""

from typing import Any

import pytest

from app.calc.model.parameters import count_parameters
from app.checkpoint.reading import ConfigError, read_config
from tests.checkpoint.published import config

TOWERS = {
    "gemma-3-27b": 423_060_336,
    "qwen3.5-27b": 460_730_096,
    "qwen3.5-397b-a17b": 456_010_480,
    "llama-4-scout": 871_932_416,
    "gemma-4-26b-a4b": 572_792_112,
    "gemma-4-31b": 575_741_232,
    # Counted on an instance of the model's own class.
    "qwen3-vl-8b": 576_388_336,
    "qwen2-vl-7b": 675_759_104,
    "qwen2.5-vl-7b": 676_550_144,
    "llava-1.5-7b": 324_487_168,
}


@pytest.mark.parametrize("name", TOWERS)
def test_a_tower_of_certain_shape_is_counted(name: str) -> None:
    reading = read_config(config(name), name)
    assert reading.architecture.vision_params == TOWERS[name]
    assert not [notice for notice in reading.notices if "vision_config" in notice]


@pytest.mark.parametrize(("name", "params"), [("ministral-3-14b", 438_958_080), ("ministral-3-8b", 428_472_320)])
def test_pixtral_is_the_class_default_of_mistral_3(name: str, params: int) -> None:
    given = config(name) | {"vision_config": {"model_type": "pixtral", "patch_size": 14, "image_size": 1540}}
    assert read_config(given, name).architecture.vision_params == params


def test_an_unknown_tower_is_left_out_with_a_notice() -> None:
    reading = read_config(
        {"model_type": "new_vl", "text_config": config("qwen3-8b"), "vision_config": {"depth": 9}}, "New"
    )
    assert reading.architecture.vision_params == 0
    assert any("vision_config" in notice and "not counted" in notice for notice in reading.notices)


def test_a_size_of_a_tower_is_checked_like_any_other() -> None:
    given = config("gemma-3-27b")
    with pytest.raises(ConfigError) as caught:
        read_config(given | {"vision_config": given["vision_config"] | {"patch_size": 0}}, "Gemma")
    assert caught.value.key == "vision_config.patch_size"


PIXTRAL_12B: dict[str, Any] = {
    "architectures": ["LlavaForConditionalGeneration"],
    "model_type": "llava",
    "text_config": {
        "head_dim": 128,
        "hidden_size": 5120,
        "intermediate_size": 14336,
        "max_position_embeddings": 1024000,
        "model_type": "mistral",
        "num_hidden_layers": 40,
        "num_key_value_heads": 8,
        "sliding_window": None,
        "vocab_size": 131072,
    },
    "vision_config": {"head_dim": 64, "image_size": 1024, "model_type": "pixtral", "patch_size": 16},
}


# Counted on an instance of LlavaForConditionalGeneration with this tower.
@pytest.mark.parametrize(
    ("tower", "total"),
    [
        ({"head_dim": 64, "image_size": 1024, "model_type": "pixtral", "patch_size": 16}, 12_682_739_712),
        ({"model_type": "pixtral"}, 12_682_739_712),
        ({"model_type": "siglip_vision_model"}, 12_370_823_424),
        ({"model_type": "siglip_vision_model", "vision_use_head": False}, 12_363_736_320),
        ({"model_type": "clip_vision_model"}, 12_365_395_200),
        ({}, 12_365_395_200),
    ],
    ids=str,
)
def test_the_tower_s_own_model_type_says_how_it_is_counted(tower: dict[str, Any], total: int) -> None:
    reading = read_config(PIXTRAL_12B | {"vision_config": tower}, "Pixtral")
    assert count_parameters(reading.architecture).total == total


@pytest.mark.parametrize(
    "tower",
    [
        {"model_type": "my_vit", "hidden_size": 1024},
        {"model_type": 5},
        {"model_type": "pixtral", "hidden_size": None},
    ],
    ids=str,
)
def test_a_tower_of_another_kind_or_without_sizes_is_left_out_with_a_notice(tower: dict[str, Any]) -> None:
    reading = read_config(PIXTRAL_12B | {"vision_config": tower}, "Pixtral")
    assert reading.architecture.vision_params == 0
    assert any("vision_config" in notice and "not counted" in notice for notice in reading.notices)


@pytest.mark.parametrize("name", TOWERS)
def test_sizes_that_a_tower_leaves_out_are_its_class_s_own(name: str) -> None:
    given = config(name)
    kind = {key: value for key, value in given["vision_config"].items() if key == "model_type"}
    reading = read_config(given | {"vision_config": kind}, name)
    assert reading.architecture.vision_params > 0
    assert any("sizes of the vision tower" in notice for notice in reading.notices)


# Counted on an instance of the class without any size: all parameters less those of the language model.
@pytest.mark.parametrize(
    ("model_type", "params"),
    [
        ("gemma3", 94_654_464),
        ("qwen2_vl", 675_759_104),
        ("qwen2_5_vl", 3_083_025_152),
        ("qwen3_vl", 566_949_104),
        ("qwen3_5", 453_650_672),
    ],
)
def test_a_tower_without_sizes_is_as_large_as_its_class(model_type: str, params: int) -> None:
    reading = read_config({"model_type": model_type, "text_config": {}, "vision_config": {}}, "Mine")
    assert reading.architecture.vision_params == params


def test_a_projector_may_take_several_layers_side_by_side() -> None:
    one = read_config(PIXTRAL_12B, "Pixtral").architecture.vision_params
    two = read_config(PIXTRAL_12B | {"vision_feature_layer": [-2, -1]}, "Pixtral").architecture.vision_params
    assert two - one == 1024 * 5120
    bare = read_config(PIXTRAL_12B | {"multimodal_projector_bias": False}, "Pixtral").architecture.vision_params
    assert one - bare == 2 * 5120
