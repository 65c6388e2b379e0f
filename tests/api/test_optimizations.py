"""The optimizations by HTTP: the documented form, both ways of asking, evidence with its source, and refusals."""

from typing import Any
from urllib.parse import urlencode

import pytest
from starlette.testclient import TestClient

from app.api.optimizations_schema import DoorsAnswer, OptimizationsAnswer
from app.calc.optimize.registry import SPECS
from app.strict_json import loads
from app.web.urls import API
from tests.api.problems import paths
from tests.factories import merge_patch
from tests.optimization_scenarios import REFERENCE, SCENARIOS, answers

DOORS, OPTIMIZATIONS = f"{API}/doors", f"{API}/optimizations"


def told(client: TestClient, name: str) -> dict[str, Any]:
    answer = client.get(f"{DOORS}?{urlencode(SCENARIOS[name])}")
    assert answer.status_code == 200, answer.text
    body: dict[str, Any] = loads(answer.content)
    return body


@pytest.mark.parametrize("name", SCENARIOS)
def test_the_answer_has_the_documented_form(calculator: TestClient, name: str) -> None:
    body = told(calculator, name)
    DoorsAnswer.model_validate(body)
    assert set(body) == set(DoorsAnswer.model_fields)
    assert [door["id"] for door in body["doors"]] == [spec.id for spec in SPECS]
    for door, found in zip(body["doors"], answers()[name].evaluation.optimizations, strict=True):
        assert (door["open"], door["sentence"], door["refused"]) == (found.is_used, found.sentence, found.refused)
        assert [(f["before"], f["after"], f["ratio"]) for f in door["figures"]] == [
            (f.before, f.after, f.ratio) for f in found.figures
        ]
    assert (body["goodput"] is None) == (answers()[name].evaluation.goodput is None)


def test_a_posted_scenario_gives_the_same(calculator: TestClient) -> None:
    body = told(calculator, "experts on eight cards")
    assert calculator.post(DOORS, json=body["scenario"]).json() == body


def test_a_change_is_a_merge_patch_on_the_scenario(calculator: TestClient) -> None:
    body = told(calculator, "reference")
    door = next(door for door in body["doors"] if door["id"] == "quantization")
    changed = calculator.post(DOORS, json=merge_patch(body["scenario"], door["change"])).json()
    again = next(door for door in changed["doors"] if door["id"] == "quantization")
    assert (door["open"], again["open"]) == (False, True)
    assert again["figures"] == door["figures"]


def test_published_evidence_states_its_numbers_and_its_source(calculator: TestClient) -> None:
    evidence = {door["id"]: door["evidence"] for door in told(calculator, "reference")["doors"]}
    for findings in evidence.values():
        for found in findings:
            assert found["source"]
            assert found["values"]
            assert all(value["text"] in found["text"] for value in found["values"])
            assert "{" not in found["text"]
    values = {value["id"]: value["value"] for findings in evidence.values() for f in findings for value in f["values"]}
    assert (values["published.paging.used_low"], values["published.paging.used_high"]) == (0.204, 0.382)
    assert values["published.batching.gain"] == 23
    assert values["evidence.speculative.eagle2"] == 244
    assert values["published.deepseek.decode"] == 14_800
    slopes = values["evidence.quantization.slope_fp8"] / values["evidence.quantization.slope_bf16"]
    assert values["evidence.quantization.slope_ratio"] == pytest.approx(slopes, abs=5e-4)


@pytest.mark.parametrize(
    ("items", "path"),
    [({"prompt": "many"}, "workload.prompt_tokens"), ({"colour": "red"}, "colour"), ({"hw": "none"}, "hardware.id")],
)
def test_bad_input_is_a_problem(calculator: TestClient, items: dict[str, str], path: str) -> None:
    assert path in paths(calculator.get(f"{DOORS}?{urlencode({**REFERENCE, **items})}"))


def test_nothing_asked_is_a_problem(calculator: TestClient) -> None:
    assert paths(calculator.get(DOORS))
    assert paths(calculator.post(DOORS, json={}))


def test_the_new_name_answers_the_same_under_its_own_key(calculator: TestClient) -> None:
    body = told(calculator, "reference")
    found = calculator.get(f"{OPTIMIZATIONS}?{urlencode(SCENARIOS['reference'])}").json()
    OptimizationsAnswer.model_validate(found)
    assert found.pop("optimizations") == body.pop("doors")
    assert found == body
    posted = calculator.post(OPTIMIZATIONS, json=body["scenario"])
    assert set(posted.json()) == {*body, "optimizations"}
