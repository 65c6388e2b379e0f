"""A calibration of one's own by HTTP: posted, asked by query, compared, swept and documented."""

from copy import deepcopy
from typing import Any

import pytest
from starlette.testclient import TestClient

from app.web.urls import API, query_string
from tests.factories import merge_patch, scenario_document
from tests.features.problems import paths

EVALUATE = f"{API}/evaluate"
CALIBRATION: dict[str, Any] = {
    "name": "Ours <b>&",
    "decode": {"factor": 2.0, "points": 12, "low": 0.9, "high": 1.2},
    "prefill": {"factor": 1.5, "points": 3},
}
QUERY = [
    ("model", "llama-3.1-8b"),
    ("hw", "h100-sxm-80gb"),
    ("cal_name", "Ours <b>&"),
    ("cal_decode", "2"),
    ("cal_decode_low", "0.9"),
    ("cal_decode_high", "1.2"),
    ("cal_decode_n", "12"),
    ("cal_prefill", "1.5"),
    ("cal_prefill_n", "3"),
]


def evaluated(client: TestClient, **sections: Any) -> dict[str, Any]:
    answer = client.post(EVALUATE, json=scenario_document(**sections))
    assert answer.status_code == 200, answer.text
    body: dict[str, Any] = answer.json()
    return body


def test_a_posted_one_moves_the_numbers_and_is_named_with_them(calculator: TestClient) -> None:
    usual, found = evaluated(calculator), evaluated(calculator, calibration=CALIBRATION)
    assert usual["scenario"]["calibration"] is None
    assert usual["expected"]["own_calibration"] is None
    assert found["scenario"]["calibration"]["decode"] == CALIBRATION["decode"]
    assert found["expected"]["own_calibration"] == "Ours <b>&"
    assert found["expected"]["calibration"] == usual["expected"]["calibration"]
    assert found["expected"]["interval_withheld"] == "of prompts, too few points of your own"
    step = found["decode"]["expected_s"]
    assert step["mid"] == pytest.approx(2 * usual["decode"]["expected_s"]["mid"])
    assert (step["low"], step["high"]) == pytest.approx((0.9 * step["mid"], 1.2 * step["mid"]))
    assert found["prefill"]["expected_s"]["mid"] == pytest.approx(1.5 * usual["prefill"]["expected_s"]["mid"])
    assert found["prefill"]["expected_s"]["low"] is None
    for part in ("memory", "roofline", "rule_of_thumb"):
        assert found[part] == usual[part]
    (warning,) = (w["message"] for w in found["warnings"] if w["code"] == "own_calibration")
    assert "«Ours <b>&»: decode × 2 (12 points), prefill × 1.5 (3 points)" in warning
    assert any("«Ours <b>&», decode 12 points, prefill 3 points" in e["source"] for e in found["explanations"])


def test_a_query_gives_the_same(calculator: TestClient) -> None:
    asked = calculator.get(f"{EVALUATE}?{query_string(QUERY)}")
    assert asked.json() == evaluated(calculator, calibration=CALIBRATION)


def test_a_normalised_scenario_gives_the_same_again(calculator: TestClient) -> None:
    found = evaluated(calculator, calibration=CALIBRATION)
    assert calculator.post(EVALUATE, json=found["scenario"]).json() == found


@pytest.mark.parametrize(
    ("patch", "path"),
    [
        ({"decode": {"factor": "2"}}, "calibration.decode.factor"),
        ({"decode": {"factor": -2}}, "calibration.decode.factor"),
        ({"decode": {"low": 1.5}}, "calibration.decode.low"),
        ({"decode": {"high": None}}, "calibration.decode.high"),
        ({"decode": None, "prefill": None}, "calibration"),
        ({"prefill": {"points": 0}}, "calibration.prefill.points"),
        ({"name": None}, "calibration.name"),
        ({"note": "x"}, "calibration.note"),
    ],
    ids=str,
)
def test_a_wrong_one_is_a_problem_at_its_path(calculator: TestClient, patch: dict[str, Any], path: str) -> None:
    document = scenario_document(calibration=merge_patch(deepcopy(CALIBRATION), patch))
    assert paths(calculator.post(EVALUATE, json=document)) == [path]


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e400"])
def test_numbers_that_are_none_are_refused(calculator: TestClient, number: str) -> None:
    body = (
        '{"model": {"id": "llama-3.1-8b"}, "hardware": {"id": "h100-sxm-80gb"}, '
        f'"calibration": {{"name": "x", "decode": {{"factor": {number}, "points": 3}}}}}}'
    )
    answer = calculator.post(EVALUATE, content=body, headers={"content-type": "application/json"})
    assert answer.status_code in (400, 422)
    assert "problem" in answer.headers["content-type"]


def test_the_same_in_a_batch_beside_one_without(calculator: TestClient) -> None:
    scenarios = [scenario_document(), scenario_document(calibration=CALIBRATION)]
    usual, found = calculator.post(f"{EVALUATE}/batch", json={"scenarios": scenarios}).json()["results"]
    assert found["evaluation"] == evaluated(calculator, calibration=CALIBRATION)
    assert usual["evaluation"] == evaluated(calculator)


def test_a_lever_keeps_it(calculator: TestClient) -> None:
    found = evaluated(calculator, calibration=CALIBRATION)
    assert found["levers"]
    for lever in found["levers"]:
        changed = merge_patch(found["scenario"] | {"observed": {}}, lever["change"])
        again = calculator.post(EVALUATE, json=changed).json()
        assert again["scenario"]["calibration"] == found["scenario"]["calibration"]
        assert again["serving"]["tpot_s"]["mid"] == pytest.approx(lever["effect"]["tpot_s"]["after"])


def test_two_plans_that_differ_in_it_alone(calculator: TestClient) -> None:
    links = [query_string(QUERY[:2]), query_string(QUERY)]
    answer = calculator.get(f"{API}/compare?{query_string([('s', link) for link in links])}")
    assert answer.status_code == 200, answer.text
    differing = {one["path"]: one["values"] for one in answer.json()["differences"]}
    assert differing["calibration.decode.factor"] == [None, 2.0]
    assert all(path.startswith("calibration.") for path in differing)


def test_the_documentation_describes_it(calculator: TestClient) -> None:
    schemas = calculator.get(f"{API}/openapi.json").json()["components"]["schemas"]
    assert set(schemas["OwnCalibration"]["properties"]) == {"name", "decode", "prefill"}
    factor = schemas["OwnFactor"]
    assert set(factor["properties"]) == {"factor", "points", "low", "high"}
    assert all(part["description"] for part in factor["properties"].values())
    assert set(factor["required"]) == {"factor", "points"}
