"""POST /benchmarks and /calibrations: results in, overlay and fit out; a calibration kept, read and revoked."""

import json
from typing import Any

import pytest
from starlette.testclient import TestClient

from app.web.urls import API
from tests.features.benchmarks.files import RESULTS, contents
from tests.features.problems import paths

BENCHMARKS_API = f"{API}/benchmarks"
CALIBRATIONS = f"{API}/calibrations"
SCENARIO = {"model": {"id": "llama-3.1-8b"}, "hardware": {"id": "h100-sxm-80gb"}, "precision": {"weights": "bf16"}}


@pytest.fixture(scope="module")
def answers(calculator: TestClient) -> dict[str, str]:
    """What is answered to each file of results, asked for once."""
    bodies = {name: {"text": contents(name).decode(), "scenario": SCENARIO} for name in RESULTS}
    return {name: calculator.post(BENCHMARKS_API, json=body).text for name, body in bodies.items()}


@pytest.fixture(scope="module")
def sweep(answers: dict[str, str]) -> dict[str, Any]:
    """What is answered to a sweep of eight runs."""
    found: dict[str, Any] = json.loads(answers["vllm_serve_appended.jsonl"])
    return found


@pytest.mark.parametrize("name", RESULTS)
def test_each_format_is_answered_whole(answers: dict[str, str], name: str) -> None:
    found = json.loads(answers[name])
    assert found["points"]
    assert len(found["overlay"]["runs"]) + len(found["overlay"]["left_out"]) == len(found["points"])
    assert found["fit"]["words"]


def test_the_fit_is_a_scenario_that_evaluates(calculator: TestClient, sweep: dict[str, Any]) -> None:
    found = sweep
    calibration = found["fit"]["calibration"]
    assert found["scenario"]["calibration"] == calibration
    assert calibration["decode"]["factor"] == pytest.approx(1.29, abs=0.02)
    assert calibration["decode"]["points"] == 8
    held = found["fit"]["held_out"]
    assert held["fitted_error"] < held["default_error"] / 3
    evaluated = calculator.post(f"{API}/evaluate", json=found["scenario"])
    assert evaluated.status_code == 200
    assert evaluated.json()["scenario"]["calibration"] == calibration


def test_runs_stand_beside_the_default_and_beside_the_fit(sweep: dict[str, Any]) -> None:
    found = sweep
    for before, after in zip(found["overlay"]["runs"], found["calibrated"]["runs"], strict=True):
        for plain, fitted in zip(before["figures"], after["figures"], strict=True):
            assert plain["measured"] == fitted["measured"]
            assert plain["ceiling"] == fitted["ceiling"]
            if plain["figure"] in ("tpot_s", "ttft_s"):
                assert abs(fitted["measured_to_expected"] - 1) < abs(plain["measured_to_expected"] - 1)
                assert not fitted["beats_ceiling"]


def test_a_name_is_carried(calculator: TestClient) -> None:
    body = {"text": contents("vllm_serve.json").decode(), "scenario": SCENARIO, "name": "Night run"}
    assert calculator.post(BENCHMARKS_API, json=body).json()["scenario"]["calibration"]["name"] == "Night run"


@pytest.mark.parametrize(
    ("changes", "path"),
    [
        ({"text": "hello"}, "text"),
        ({"text": ""}, "text"),
        ({"text": '{"a": 1}'}, "text"),
        ({"text": '{"n_prompt": 1, "n_gen": 0, "avg_ts": -1}'}, "text"),
        ({"scenario": {"model": {"id": "no-such"}, "hardware": {"id": "l4"}}}, "scenario.model.id"),
        ({"scenario": {"model": {"id": "llama-3.1-8b"}}}, "scenario.hardware"),
        ({"name": ""}, "name"),
        ({"name": "x" * 200}, "name"),
        ({"more": 1}, "more"),
    ],
    ids=range(9),
)
def test_what_is_not_right_is_told_at_its_path(calculator: TestClient, changes: dict[str, Any], path: str) -> None:
    body = {"text": contents("vllm_serve.json").decode(), "scenario": SCENARIO, **changes}
    answer = calculator.post(BENCHMARKS_API, json=body)
    assert answer.status_code == 422, answer.text[:300]
    assert path in paths(answer)


def test_an_answer_repeats_nothing_private(answers: dict[str, str]) -> None:
    for answer in answers.values():
        assert not [word for word in ("secret", "internal", "someone", "somebody", "10.1.2.3") if word in answer]


def calibrated() -> dict[str, Any]:
    side = {"factor": 1.25, "points": 8, "low": 0.9, "high": 1.1}
    return {**SCENARIO, "calibration": {"name": "Mine", "decode": side}}


def test_a_calibration_is_kept_read_and_revoked(calculator: TestClient) -> None:
    made = calculator.post(CALIBRATIONS, json={"title": "Night run", "scenario": calibrated()})
    assert made.status_code == 201, made.text
    slug, token = made.json()["slug"], made.json()["edit_token"]
    address = made.headers["location"]
    assert address == f"{CALIBRATIONS}/{slug}"
    read = calculator.get(address).json()
    assert read["title"] == "Night run"
    assert read["calibration"]["decode"]["factor"] == 1.25
    assert read["scenario"]["calibration"] == read["calibration"]
    assert calculator.post(f"{API}/evaluate", json=read["scenario"]).status_code == 200
    assert calculator.delete(address, headers={"X-Edit-Token": "wrong"}).status_code == 403
    assert calculator.delete(address, headers={"X-Edit-Token": token}).status_code == 204
    assert calculator.get(address).status_code == 404


@pytest.mark.parametrize(
    ("body", "path"),
    [
        ({"title": "x", "scenario": SCENARIO}, "scenario.calibration"),
        ({"title": "x"}, "scenario"),
        ({"title": "x", "scenario": {**calibrated(), "model": {"id": "no-such"}}}, "scenario.model.id"),
        ({"title": "x", "scenario": {**SCENARIO, "calibration": {"name": "a"}}}, "scenario.calibration"),
    ],
    ids=range(4),
)
def test_what_is_no_calibration_is_not_kept(calculator: TestClient, body: dict[str, Any], path: str) -> None:
    answer = calculator.post(CALIBRATIONS, json=body)
    assert answer.status_code == 422, answer.text
    assert path in paths(answer)
