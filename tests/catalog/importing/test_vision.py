"""Vision towers: the published total less that of the language model, or nothing and a notice."""

import pytest

from app.catalog.importing.reading import ConfigError, read_config
from tests.catalog.importing.published import config

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
