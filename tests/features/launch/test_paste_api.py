"""POST /paste and /launch: a text in, a scenario out and back; whatever the text, a problem and never a failure."""

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from starlette.testclient import TestClient

from app.web.urls import API
from tests.engine_io.logs.logs import EVERY_LOG, VLLM_CONSUMED
from tests.factories import scenario_document
from tests.features.problems import paths

PASTE, LAUNCH = f"{API}/paste", f"{API}/launch"


def pasted(calculator: TestClient, text: str, **more: Any) -> dict[str, Any]:
    answer = calculator.post(PASTE, json={"text": text, **more})
    assert answer.status_code == 200, answer.text[:500]
    found: dict[str, Any] = answer.json()
    return found


@pytest.mark.parametrize(("engine", "log"), EVERY_LOG)
def test_a_log_of_every_engine_is_read(calculator: TestClient, engine: str, log: str) -> None:
    found = pasted(calculator, log)
    assert (found["kind"], found["engine"]) == ("log", engine)
    assert found["told"]
    assert (found["scenario"] is None) is bool(found["problems"])


def test_the_scenario_of_a_log_evaluates_to_its_own_pool(calculator: TestClient) -> None:
    chosen = {"hardware": {"id": "h100-sxm-80gb"}}
    found = pasted(calculator, VLLM_CONSUMED, scenario=chosen)
    assert found["scenario"] is not None, found["problems"]
    evaluation = calculator.post(f"{API}/evaluate", json=found["scenario"]).json()
    assert evaluation["memory"]["per_gpu"]["kv_pool_bytes"] == found["scenario"]["engine"]["kv_pool_bytes"]
    assert evaluation["comparison"] == found["comparison"]
    assert {line["id"] for line in found["comparison"]} >= {"weights", "kv_pool"}


def test_a_launch_command_comes_back_as_its_scenario(calculator: TestClient) -> None:
    scenario = scenario_document(engine={"id": "sglang"}, workload={"prompt_tokens": 4321})
    written = calculator.post(LAUNCH, json=scenario).json()
    normalised = calculator.post(f"{API}/evaluate", json=scenario).json()["scenario"]
    assert written["variants"]
    assert written["note"] is None
    for variant in written["variants"]:
        assert pasted(calculator, variant["text"])["scenario"] == normalised


def test_an_engine_without_a_command_says_why(calculator: TestClient) -> None:
    found = calculator.post(LAUNCH, json=scenario_document(engine={"id": "deepinfer"})).json()
    assert found["variants"] == []
    assert "DeepInfer" in found["note"]


@pytest.mark.parametrize(
    ("body", "path"),
    [
        ({}, "text"),
        ({"text": ""}, "text"),
        ({"text": 5}, "text"),
        ({"text": "nothing of the kind"}, "text"),
        ({"text": "vllm serve x --tensor-parallel-size NaN"}, "text"),
        ({"text": "x", "kind": "poem"}, "kind"),
        ({"text": "x", "scenario": 5}, "scenario"),
        ({"text": "x", "more": 1}, "more"),
        ({"text": "x" * (2**20 + 1)}, "text"),
        ({"text": "\n" * 500_000}, "text"),
        ({"text": "# $ " * 200_000}, "text"),
    ],
)
def test_a_wrong_request_is_a_problem_at_its_path(calculator: TestClient, body: dict[str, Any], path: str) -> None:
    assert path in paths(calculator.post(PASTE, json=body), 422)


@pytest.mark.parametrize("value", [5, "x", [], [1], True, {"id": []}, {"id": {}}])
@pytest.mark.parametrize("part", ["model", "hardware", "engine", "workload", "parallelism"])
def test_a_part_of_the_wrong_type_is_a_problem_of_the_scenario(calculator: TestClient, part: str, value: Any) -> None:
    command = "vllm serve meta-llama/Llama-3.1-8B"
    chosen = {"model": {"id": "llama-3.1-8b"}, "hardware": {"id": "l40s"}, part: value}
    found = pasted(calculator, command, scenario=chosen)
    assert found["scenario"] is None
    assert [problem["path"] for problem in found["problems"] if problem["path"].startswith(part)]


@settings(deadline=None, derandomize=True, max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.text(max_size=2000), st.sampled_from(["log", "command", None]))
def test_no_text_is_a_failure(calculator: TestClient, text: str, kind: str | None) -> None:
    answer = calculator.post(PASTE, json={"text": text, "kind": kind})
    assert answer.status_code in (200, 400, 422)
