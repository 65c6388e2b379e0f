"""POST /benchmarks and /calibrations: results in, overlay and fit out; a calibration kept, read and revoked."""

from typing import Any

import pytest
from starlette.testclient import TestClient

from app.web.urls import API
from tests.api.problems import paths
from tests.bench.files import RESULTS, contents

BENCHMARKS_API = f"{API}/benchmarks"
CALIBRATIONS = f"{API}/calibrations"
SCENARIO = {"model": {"id": "llama-3.1-8b"}, "hardware": {"id": "h100-sxm-80gb"}, "precision": {"weights": "bf16"}}


def brought(calculator: TestClient, name: str = "vllm_serve_appended.jsonl", **more: Any) -> dict[str, Any]:
    body = {"text": contents(name).decode(), "scenario": SCENARIO, **more}
    answer = calculator.post(BENCHMARKS_API, json=body)
    assert answer.status_code == 200, answer.text[:500]
    found: dict[str, Any] = answer.json()
    return found


@pytest.mark.parametrize("name", RESULTS)
def test_each_format_is_answered_whole(calculator: TestClient, name: str) -> None:
    found = brought(calculator, name)
    assert found["points"]
    assert len(found["overlay"]["runs"]) + len(found["overlay"]["left_out"]) == len(found["points"])
    assert found["fit"]["words"]


def test_the_fit_is_a_scenario_that_evaluates(calculator: TestClient) -> None:
    found = brought(calculator)
    calibration = found["fit"]["calibration"]
    assert found["scenario"]["calibration"] == calibration
    assert calibration["decode"]["factor"] == pytest.approx(1.29, abs=0.02)
    assert calibration["decode"]["points"] == 8
    held = found["fit"]["held_out"]
    assert held["fitted_error"] < held["default_error"] / 3
    evaluated = calculator.post(f"{API}/evaluate", json=found["scenario"])
    assert evaluated.status_code == 200
    assert evaluated.json()["scenario"]["calibration"] == calibration


def test_runs_stand_beside_the_default_and_beside_the_fit(calculator: TestClient) -> None:
    found = brought(calculator)
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


def test_an_answer_repeats_nothing_private(calculator: TestClient) -> None:
    for name in RESULTS:
        answer = calculator.post(BENCHMARKS_API, json={"text": contents(name).decode(), "scenario": SCENARIO}).text
        assert not [word for word in ("secret", "internal", "someone", "somebody", "10.1.2.3") if word in answer]


def calibrated() -> dict[str, Any]:
    side = {"factor": 1.25, "points": 8, "low": 0.9, "high": 1.1}
    return {**SCENARIO, "calibration": {"name": "Mine", "decode": side}}


def test_a_calibration_is_kept_read_and_revoked(client: TestClient) -> None:
    made = client.post(CALIBRATIONS, json={"title": "Night run", "scenario": calibrated()})
    assert made.status_code == 201, made.text
    slug, token = made.json()["slug"], made.json()["edit_token"]
    address = made.headers["location"]
    assert address == f"{CALIBRATIONS}/{slug}"
    read = client.get(address).json()
    assert read["title"] == "Night run"
    assert read["calibration"]["decode"]["factor"] == 1.25
    assert read["scenario"]["calibration"] == read["calibration"]
    assert client.post(f"{API}/evaluate", json=read["scenario"]).status_code == 200
    assert client.delete(address, headers={"X-Edit-Token": "wrong"}).status_code == 403
    assert client.delete(address, headers={"X-Edit-Token": token}).status_code == 204
    assert client.get(address).status_code == 404


@pytest.mark.parametrize(
    ("body", "path"),
    [
        ({"title": "x", "scenario": SCENARIO}, "scenario.calibration"),
        ({"title": "", "scenario": calibrated()}, "title"),
        ({"title": "x"}, "scenario"),
        ({"title": "x", "scenario": calibrated(), "expires_in_days": 0}, "expires_in_days"),
        ({"title": "x", "scenario": {**calibrated(), "model": {"id": "no-such"}}}, "scenario.model.id"),
        ({"title": "x", "scenario": {**SCENARIO, "calibration": {"name": "a"}}}, "scenario.calibration"),
    ],
    ids=range(6),
)
def test_what_is_no_calibration_is_not_kept(client: TestClient, body: dict[str, Any], path: str) -> None:
    answer = client.post(CALIBRATIONS, json=body)
    assert answer.status_code == 422, answer.text
    assert path in paths(answer)


def test_links_of_other_kinds_are_not_found(client: TestClient) -> None:
    snapshot = client.post(f"{API}/snapshots", json={"title": "x"}).json()
    assert client.get(f"{CALIBRATIONS}/{snapshot['slug']}").status_code == 404
