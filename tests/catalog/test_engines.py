"""The engines that a scenario can name: their defaults, releases, laws, and what is refused."""

from pathlib import Path

import pytest

from app.calc.memory.engines.ideal import IdealPolicy
from app.calc.memory.engines.llama_cpp import LlamaCppPolicy
from app.calc.memory.engines.rules import Law
from app.calc.memory.engines.sglang import SglangPolicy
from app.calc.memory.engines.tensorrt_llm import TensorRtLlmPolicy
from app.calc.memory.engines.vllm import VllmPolicy
from app.catalog.engines import DATA_FILE, EngineRecord, Rules, load_engines, release_number
from app.catalog.rows import CatalogError
from app.scenario.scenario import Scenario

ENGINES = load_engines()
OWN = [record for record in ENGINES.values() if record.laws is not None]
SOUND = """\
[[engine]]
id = "one"
name = "One"
policy = "ideal"
memory_setting = "share"
default_memory_utilization = 0.9
fraction_of = "the card's memory"
sources = ["its documentation"]
"""
WITH_RULES = """\
[[engine]]
id = "one"
name = "One"
policy = "vllm"
memory_setting = "share"
default_memory_utilization = 0.9
fraction_of = "the card's memory"
sources = ["its documentation"]

[engine.laws]
activation = { fixed_gib = 0.05, low = 0.6, high = 1.5, evidence = "Logs." }
alone = { fixed_gib = 0.13, low = 0.15, high = 2.3, evidence = "Logs." }
with_peers = { fixed_gib = 0.75, low = 0.27, high = 2.4, evidence = "Logs." }
weights = { low = 0.98, high = 1.05, evidence = "Logs." }

[[engine.release]]
from = "0"
profiles_model_len = true

[[engine.release]]
from = "0.8.0"
"""


def test_seven_engines_in_the_order_of_the_file() -> None:
    assert list(ENGINES) == ["vllm", "sglang", "tensorrt-llm", "llama.cpp", "llm-d", "deepinfer", "ideal"]


def test_the_memory_setting_has_the_name_that_the_engine_gives_it() -> None:
    assert ENGINES["vllm"].memory_setting == "gpu_memory_utilization"
    assert ENGINES["sglang"].memory_setting == "mem_fraction_static"
    assert ENGINES["tensorrt-llm"].memory_setting == "kv_cache_free_gpu_memory_fraction"


@pytest.mark.parametrize("engine", ENGINES)
def test_a_scenario_can_name_the_engine_with_its_default(engine: str) -> None:
    record = ENGINES[engine]
    settings = {"id": engine, "memory_utilization": record.default_memory_utilization}
    asked = {"model": {"id": "x"}, "hardware": {"id": "y"}, "engine": settings}
    assert Scenario.model_validate(asked).engine.id == engine
    assert record.sources
    assert record.fraction_of.strip()


def test_the_default_of_the_form_is_an_engine_whose_own_defaults_are_left_to_it() -> None:
    default = Scenario.model_validate({"model": {"id": "x"}, "hardware": {"id": "y"}}).engine
    assert ENGINES[default.id].policy is Rules.VLLM
    assert (default.memory_utilization, default.max_batched_tokens, default.block_size) == (None, None, None)


@pytest.mark.parametrize(
    ("engine", "policy"),
    [
        ("vllm", VllmPolicy),
        ("sglang", SglangPolicy),
        ("tensorrt-llm", TensorRtLlmPolicy),
        ("llama.cpp", LlamaCppPolicy),
        ("ideal", IdealPolicy),
    ],
)
def test_each_engine_divides_a_card_by_its_own_module(engine: str, policy: type) -> None:
    made = ENGINES[engine].make_policy(None)
    assert isinstance(made, policy)
    assert made.name in (ENGINES[engine].name, "an ideal engine")


@pytest.mark.parametrize("engine", ["llm-d", "deepinfer"])
def test_an_engine_without_rules_of_its_own_makes_no_policy(engine: str) -> None:
    with pytest.raises(ValueError, match="has no rules of its own"):
        ENGINES[engine].make_policy(None)


def test_deepinfer_is_treated_as_the_engine_that_it_grew_from() -> None:
    assert ENGINES["deepinfer"].treated_as == "vllm"
    assert ENGINES["llm-d"].policy is Rules.UNDERNEATH


@pytest.mark.parametrize("record", OWN, ids=lambda record: record.id)
def test_laws_are_sound_and_say_on_what_they_rest(record: EngineRecord) -> None:
    laws = record.laws
    assert laws is not None
    for law in (laws.activation, laws.alone, laws.with_peers, laws.graphs):
        if law is None:
            continue
        assert isinstance(law, Law)
        assert 0 <= law.low <= 1 <= law.high
        assert law.fixed_gib >= 0
        assert law.factor >= 0
        assert law.evidence.strip()
    assert 0 < laws.weights.low <= 1 <= laws.weights.high
    assert laws.weights.evidence.strip()


@pytest.mark.parametrize(
    ("version", "number"),
    [
        ("0.11.0", (0, 11, 0)),
        ("v0.8", (0, 8, 0)),
        ("1", (1, 0, 0)),
        ("0.20.1rc1.dev16", (0, 20, 1)),
        ("0.9.2.dev1+gabc", (0, 9, 2)),
        ("0.1.dev1+gabc1234", None),  # no tag was known to the build: it is a recent one
        ("b6123", None),
        ("main", None),
        ("", None),
        (None, None),
    ],
)
def test_the_number_of_a_release(version: str | None, number: tuple[int, int, int] | None) -> None:
    assert release_number(version) == number


def vllm_rules(version: str | None) -> tuple[bool, bool, bool, bool]:
    made = ENGINES["vllm"].make_policy(version)
    assert isinstance(made, VllmPolicy)
    release = made.release
    return release.profiles_model_len, release.is_uniform, release.charges_graphs, release.prints_concurrency


@pytest.mark.parametrize(
    ("version", "rules"),
    [
        # Source: kv-truth 1.1 and 1.4: V0 profiled the longest sequence; hybrid groups from 0.10; the token line
        # changed after 0.20.1; graphs are charged since 0.21.
        ("0.6.3", (True, True, False, False)),
        ("0.8.5.dev169", (False, True, False, False)),
        ("0.11.0", (False, False, False, False)),
        ("0.19.0", (False, False, False, False)),
        ("0.20.1rc1.dev16", (False, False, False, False)),
        ("0.20.2", (False, False, False, True)),
        ("0.21.0", (False, False, True, True)),
        ("0.25.1", (False, False, True, True)),
        ("nightly", (False, False, True, True)),
        (None, (False, False, True, True)),
    ],
)
def test_what_holds_in_a_release_of_vllm(version: str | None, rules: tuple[bool, bool, bool, bool]) -> None:
    assert vllm_rules(version) == rules


def test_states_are_cached_for_reuse_by_default_from_a_release_on() -> None:
    caches = [release.caches_states for release in ENGINES["vllm"].releases]
    assert caches == sorted(caches)  # never switched off again
    assert (caches[0], caches[-1]) == (False, True)


def test_an_engine_without_releases_has_none() -> None:
    assert ENGINES["sglang"].release("0.5.4") is None
    assert ENGINES["llama.cpp"].release(None) is None


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("0.9", "0", "default_memory_utilization: must be finite and above zero"),
        ("0.9", '"0.9"', "default_memory_utilization: must be a number"),
        ('sources = ["its documentation"]', "sources = []", "sources: no number without a source"),
        ('fraction_of = "the card\'s memory"\n', "", "fraction_of: missing key"),
        ('name = "One"', 'name = "One"\nspeed = 9', "speed: unknown key"),
        ('policy = "ideal"', 'policy = "magic"', "policy: "),
        ('policy = "ideal"', 'policy = "sglang"', "laws: an engine with rules of its own has laws"),
        ('name = "One"', 'name = "One"\ntreated_as = "two"', "treated_as: there is no engine 'two'"),
    ],
)
def test_a_bad_row_is_refused(tmp_path: Path, old: str, new: str, message: str) -> None:
    file = tmp_path / "engines.toml"
    file.write_text(SOUND)
    assert load_engines(file)["one"].name == "One"
    file.write_text(SOUND.replace(old, new))
    with pytest.raises(CatalogError, match=f"row one, {message}"):
        load_engines(file)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('from = "0.8.0"', 'from = "next"', "release: releases are numbered, and stand in their order"),
        ('from = "0"', 'from = "0.9"', "release: releases are numbered, and stand in their order"),
        (WITH_RULES[WITH_RULES.index("[[engine.release]]") :], "", "release: there is at least one"),
        (', evidence = "Logs." }\nalone', " }\nalone", "laws.activation.evidence: missing key"),
        ("low = 0.6", 'low = "0.6"', "laws.activation.low: must be a number"),
    ],
)
def test_bad_rules_are_refused(tmp_path: Path, old: str, new: str, message: str) -> None:
    file = tmp_path / "engines.toml"
    file.write_text(WITH_RULES)
    assert load_engines(file)["one"].release("0.7.3") == load_engines(file)["one"].releases[0]
    file.write_text(WITH_RULES.replace(old, new))
    with pytest.raises(CatalogError, match=f"row one, {message}"):
        load_engines(file)


def test_the_file_ships_with_the_product() -> None:
    assert DATA_FILE.is_file()
