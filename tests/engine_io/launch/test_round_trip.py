"""A text that was written gives the scenario back, exactly; without its comment line, all that flags can say."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.engine_io.launch.carried import MARK
from app.engine_io.launch.command import read_command
from app.engine_io.launch.findings import get
from app.engine_io.launch.variants import launch_variants, why_no_variant
from app.scenario.scenario import Scenario
from tests.engine_io.launch.strategies import ENGINES, scenarios
from tests.factories import scenario, shipped_catalog


@pytest.mark.parametrize("engine", ENGINES)
def test_every_text_gives_its_scenario_back(engine: str) -> None:
    @settings(max_examples=60)
    @given(scenarios(engine))
    def check(asked: Scenario) -> None:
        variants = launch_variants(asked, shipped_catalog())
        assert variants
        for variant in variants:
            reading = read_command(variant.text, shipped_catalog())
            assert Scenario.model_validate(reading.document) == asked
            assert reading.variant == variant.id
            assert reading.missing == ()
            assert variant.text.startswith(MARK)

    check()


@pytest.mark.parametrize("engine", ENGINES)
def test_without_the_comment_line_the_flags_still_say_theirs(engine: str) -> None:
    asked = scenario(
        "llama-3.1-8b",
        {"id": "h100-sxm-80gb", "count": 2},
        precision={"weights": "bf16", "kv_cache": "int8" if engine == "llama.cpp" else "fp8"},
        parallelism={"tensor": 2},
        engine={
            "id": engine,
            "underneath": "vllm" if engine == "llm-d" else None,
            "max_model_len": 8192,
            "max_num_seqs": 128,
            "max_batched_tokens": 2048,
        }
        | ({} if engine == "llama.cpp" else {"memory_utilization": 0.85, "block_size": 32, "enforce_eager": True}),
        techniques={"speculative": {"draft_tokens": 4, "draft": {"id": "llama-3.2-1b"}}},
    )
    for variant in launch_variants(asked, shipped_catalog()):
        text = variant.text.partition("\n")[2]
        reading = read_command(text, shipped_catalog())
        document = asked.document()
        said = [told.path for told in reading.told]
        assert all(get(reading.document, path) == get(document, path) for path in said if path != "engine.version")
        assert {
            "model.id",
            "precision.weights",
            "precision.kv_cache",
            "parallelism.tensor",
            "engine.max_model_len",
            "engine.max_num_seqs",
            "engine.max_batched_tokens",
            "techniques.speculative.draft_tokens",
            "techniques.speculative.draft.id",
        } <= set(said)
        assert set(reading.missing) == {"hardware", "workload"}


@given(st.sampled_from(ENGINES).flatmap(scenarios))
def test_writing_is_repeatable(asked: Scenario) -> None:
    assert launch_variants(asked, shipped_catalog()) == launch_variants(asked, shipped_catalog())


@pytest.mark.parametrize("engine", ["deepinfer", "ideal"])
def test_an_engine_without_a_command_says_why(engine: str) -> None:
    asked = scenario(engine={"id": engine})
    assert launch_variants(asked, shipped_catalog()) == ()
    assert why_no_variant(asked)
    assert why_no_variant(scenario()) is None
    other = scenario(engine={"id": "llm-d", "underneath": "llama.cpp"})
    assert (launch_variants(other, shipped_catalog()), why_no_variant(other)) == ((), "llm-d serves vLLM or SGLang.")


def test_a_scenario_that_was_not_normalised_comes_back_too() -> None:
    for engine in ENGINES:
        asked = scenario(engine={"id": engine}, precision={"weights": "native"})
        for variant in launch_variants(asked, shipped_catalog()):
            reading = read_command(variant.text, shipped_catalog())
            assert Scenario.model_validate(reading.document) == asked


def test_a_config_too_long_for_the_comment_is_left_out_and_said() -> None:
    asked = Scenario.model_validate(
        {"model": {"config": {"model_type": "llama", "note": "x" * 30_000}}, "hardware": {"id": "h100-sxm-80gb"}}
    )
    for variant in launch_variants(asked, shipped_catalog()):
        assert any("too long" in note for note in variant.notes)
        reading = read_command(variant.text, shipped_catalog())
        assert reading.missing == ("model",)
        assert reading.document["hardware"]["id"] == "h100-sxm-80gb"
