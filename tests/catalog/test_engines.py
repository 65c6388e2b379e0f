"""The engines that a scenario can name."""

from pathlib import Path

import pytest

from app.catalog.engines import DATA_FILE, load_engines
from app.catalog.errors import CatalogError
from app.scenario import Scenario

SOUND = """\
[[engine]]
id = "one"
name = "One"
memory_setting = "share"
default_memory_utilization = 0.9
fraction_of = "the card's memory"
sources = ["its documentation"]
"""


def test_six_engines_in_the_order_of_the_file() -> None:
    assert list(load_engines()) == ["vllm", "sglang", "tensorrt-llm", "llama.cpp", "llm-d", "deepinfer"]


def test_the_memory_setting_has_the_name_that_the_engine_gives_it() -> None:
    found = load_engines()
    assert found["vllm"].memory_setting == "gpu_memory_utilization"
    assert found["sglang"].memory_setting == "mem_fraction_static"
    assert found["tensorrt-llm"].memory_setting == "kv_cache_free_gpu_memory_fraction"


@pytest.mark.parametrize("engine", load_engines())
def test_a_scenario_can_name_the_engine_with_its_default(engine: str) -> None:
    record = load_engines()[engine]
    settings = {"id": engine, "memory_utilization": record.default_memory_utilization}
    asked = {"model": {"id": "x"}, "hardware": {"id": "y"}, "engine": settings}
    assert Scenario.model_validate(asked).engine.id == engine
    assert record.sources
    assert record.fraction_of.strip()


def test_the_default_of_the_form_is_an_engine_with_its_own_default() -> None:
    default = Scenario.model_validate({"model": {"id": "x"}, "hardware": {"id": "y"}}).engine
    assert default.memory_utilization == load_engines()[default.id].default_memory_utilization


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("0.9", "0", "default_memory_utilization: must be finite and above zero"),
        ("0.9", '"0.9"', "default_memory_utilization: must be a number"),
        ('sources = ["its documentation"]', "sources = []", "sources: no number without a source"),
        ('fraction_of = "the card\'s memory"\n', "", "fraction_of: missing key"),
        ('name = "One"', 'name = "One"\nspeed = 9', "speed: unknown key"),
    ],
)
def test_a_bad_row_is_refused(tmp_path: Path, old: str, new: str, message: str) -> None:
    file = tmp_path / "engines.toml"
    file.write_text(SOUND)
    assert load_engines(file)["one"].name == "One"
    file.write_text(SOUND.replace(old, new))
    with pytest.raises(CatalogError, match=f"row one, {message}"):
        load_engines(file)


def test_the_file_ships_with_the_product() -> None:
    assert DATA_FILE.is_file()
