"""Many scenarios in one request: in order, each with its answer or its own problem."""

from typing import Any

from starlette.testclient import TestClient

from app.features.workbench.schemas import Batch
from app.settings import Settings
from app.web.urls import API
from tests.factories import scenario_document
from tests.features.problems import paths, problem

BATCH = f"{API}/evaluate/batch"


def test_answers_come_in_order_and_problems_stay_inside(calculator: TestClient) -> None:
    posted: list[dict[str, Any]] = [
        scenario_document(workload={"concurrency": 7}),
        scenario_document("no-such-model"),
        {"model": {}},
        scenario_document(workload={"concurrency": 9, "prompt_tokens": 1e3}),
        scenario_document(workload={"concurrency": 8}),
    ]
    response = calculator.post(BATCH, json={"scenarios": posted})
    assert response.status_code == 200
    results = response.json()["results"]
    alone = [calculator.post(f"{API}/evaluate", json=scenario) for scenario in posted]
    assert [one.status_code for one in alone] == [200, 422, 422, 422, 200]
    assert results == [
        {"evaluation": one.json()} if one.status_code == 200 else {"problem": one.json()} for one in alone
    ]
    assert Batch.model_validate(response.json()).model_dump(mode="json", exclude_unset=True) == response.json()


def test_a_thousand_are_answered_and_one_more_refused(calculator: TestClient) -> None:
    small = {"model": {"id": "x"}, "hardware": {"id": "y"}}
    full = calculator.post(BATCH, json={"scenarios": [small] * 1_000})
    assert full.status_code == 200
    assert len(full.json()["results"]) == 1_000
    assert paths(calculator.post(BATCH, json={"scenarios": [small] * 1_001})) == ["scenarios"]


def test_an_empty_or_misspelt_batch_is_refused(calculator: TestClient) -> None:
    assert paths(calculator.post(BATCH, json={"scenarios": []})) == ["scenarios"]
    assert paths(calculator.post(BATCH, json={"scenario": []})) == ["scenarios", "scenario"]
    assert paths(calculator.post(BATCH, json={"scenarios": [1]})) == ["scenarios.0"]


def test_a_batch_may_be_larger_than_another_body_but_not_endless(calculator: TestClient) -> None:
    limits = Settings.model_fields
    plain, batch = limits["max_body_bytes"].default, limits["max_batch_body_bytes"].default
    json = {"content-type": "application/json"}
    padding = b" " * (plain + 1)
    assert calculator.post(BATCH, content=b'{"scenarios":[{}]}' + padding, headers=json).status_code == 200
    problem(calculator.post(BATCH, content=b'{"scenarios":[{}]}' + b" " * batch, headers=json), 413)
