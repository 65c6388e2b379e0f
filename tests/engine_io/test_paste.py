"""A pasted text becomes a scenario or a sentence: logs, commands, what is missing, and nothing else of the text."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.checkpoint.text import dumps
from app.engine_io.launch.variants import launch_variants
from app.engine_io.paste import PasteError, PasteRequest, launch_document, paste_document, read_paste
from app.scenario.answer import answer
from tests.calc.strategies import repeatable
from tests.engine_io.logs.logs import EVERY_LOG
from tests.factories import answer_to, shipped_catalog

CATALOG = shipped_catalog()
CHOSEN = {"model": {"id": "llama-3.1-8b"}, "hardware": {"id": "h100-sxm-80gb"}}


@pytest.mark.parametrize(("engine", "log"), EVERY_LOG)
def test_a_log_is_taken_for_a_log_and_makes_a_scenario_with_what_it_lacks_chosen(engine: str, log: str) -> None:
    bare = read_paste(PasteRequest(text=log), CATALOG)
    assert bare.kind == "log"
    assert bare.reading.engine == engine
    lacking = {part: value for part, value in CHOSEN.items() if not (bare.document.get(part) or {}).get("id")}
    if lacking:
        assert bare.scenario is None
        assert {refusal.path for refusal in bare.refusals} == {f"{part}.id" for part in lacking}
    # A card that the catalog has is chosen where the log names none; a model likewise.
    pasted = read_paste(PasteRequest(text=log, scenario=lacking), CATALOG)
    if pasted.scenario is None:
        assert pasted.refusals
        return
    lines = answer(pasted.scenario, CATALOG).evaluation.comparison
    measured = pasted.scenario.engine.kv_pool_bytes or pasted.scenario.observed.kv_tokens
    assert bool(lines) is bool(measured or pasted.scenario.engine.weights_bytes)
    assert pasted.scenario.workload.concurrency is None  # what is asked is how many fit
    dumps(paste_document(pasted, lines))


@pytest.mark.parametrize("engine", ["vllm", "sglang", "tensorrt-llm", "llama.cpp", "llm-d"])
def test_a_written_command_is_taken_for_one_and_gives_its_scenario_back(engine: str) -> None:
    scenario = answer_to(engine={"id": engine}, workload={"prompt_tokens": 777}).scenario
    variants = launch_variants(scenario, CATALOG)
    assert variants
    for variant in variants:
        pasted = read_paste(PasteRequest(text=variant.text), CATALOG)
        assert pasted.kind == "command"
        assert pasted.scenario == scenario
        dumps(paste_document(pasted, ()))


def test_a_command_without_a_card_asks_for_it_and_takes_the_one_that_is_chosen() -> None:
    text = "vllm serve meta-llama/Llama-3.1-8B --max-model-len 16384"
    bare = read_paste(PasteRequest(text=text), CATALOG)
    assert bare.scenario is None
    assert [refusal.path for refusal in bare.refusals] == ["hardware.id"]
    chosen = read_paste(PasteRequest(text=text, scenario={"hardware": {"id": "l40s"}}), CATALOG)
    assert chosen.scenario is not None
    assert (chosen.scenario.hardware.id, chosen.scenario.engine.max_model_len) == ("l40s", 16384)
    assert launch_document(launch_variants(chosen.scenario, CATALOG), None)["variants"]


def test_what_is_chosen_wins_over_the_text_and_what_it_gets_wrong_is_told_at_its_path() -> None:
    text = "vllm serve meta-llama/Llama-3.1-8B --tensor-parallel-size 2"
    asked = {"hardware": {"id": "l40s"}, "parallelism": {"tensor": 4}}
    pasted = read_paste(PasteRequest(text=text, scenario=asked), CATALOG)
    assert pasted.scenario is not None
    assert pasted.scenario.parallelism.tensor == 4
    wrong = read_paste(PasteRequest(text=text, scenario={"hardware": {"id": "no-such"}}), CATALOG)
    assert [refusal.path for refusal in wrong.refusals] == ["hardware.id"]
    assert "no-such" in wrong.refusals[0].message
    typed = read_paste(PasteRequest(text=text, scenario={"hardware": {"id": 5}}), CATALOG)
    assert typed.refusals[0].path == "hardware.id"


@pytest.mark.parametrize("kind", ["log", "command", None])
@pytest.mark.parametrize(
    "text",
    [
        "hello",
        "{}",
        "\x00\x01",
        "<script>alert(1)</script>",
        "vllm serve 'unclosed",
        "&a [*a, *a]",
        "INFO 01-01 nothing",
    ],
)
def test_what_is_neither_is_refused_in_a_sentence(text: str, kind: str | None) -> None:
    with pytest.raises(PasteError) as refused:
        read_paste(PasteRequest.model_validate({"text": text, "kind": kind}), CATALOG)
    assert str(refused.value)[:1].isupper()
    assert str(refused.value).endswith((".", "?"))
    assert "<script>" not in str(refused.value)


@repeatable
@given(st.text(min_size=1, max_size=3000), st.sampled_from(["log", "command", None]))
def test_no_text_makes_it_fail_in_another_way(text: str, kind: str | None) -> None:
    try:
        pasted = read_paste(PasteRequest.model_validate({"text": text, "kind": kind}), CATALOG)
    except PasteError:
        return
    assert pasted.scenario is not None or pasted.refusals


@pytest.mark.parametrize(("engine", "log"), EVERY_LOG)
def test_a_log_cut_anywhere_is_read_or_refused(engine: str, log: str) -> None:
    for end in range(1, len(log), max(1, len(log) // 60)):
        try:
            pasted = read_paste(PasteRequest(text=log[:end], scenario=CHOSEN), CATALOG)
        except PasteError:
            continue
        if pasted.scenario is not None:
            answer(pasted.scenario, CATALOG)
