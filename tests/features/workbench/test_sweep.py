"""The sweep: the same numbers as point by point, in the shape that was asked, within limits."""

import json
from collections import Counter
from typing import Any

import pytest
from starlette.testclient import TestClient

from app.features.workbench.routes import METRICS, MOST_ON_AXIS, SweepResponse
from app.web.urls import API
from tests.factories import scenario_document
from tests.features.problems import paths, problem

SWEEP, EVALUATE = f"{API}/sweep", f"{API}/evaluate"


def sweep(client: TestClient, axes: dict[str, Any], **more: Any) -> dict[str, Any]:
    response = client.post(SWEEP, json={"scenario": scenario_document(), "axes": axes, **more})
    assert response.status_code == 200, response.text
    assert SweepResponse.model_validate(response.json()).model_dump(mode="json") == response.json()
    body: dict[str, Any] = response.json()
    return body


@pytest.mark.parametrize(
    ("model", "hardware", "precision"),
    [
        ("llama-3.1-8b", "h100-sxm-80gb", {}),
        ("llama-3.1-70b", "rtx-4090", {"weights": "int4", "kv_cache": "fp8"}),
        ("gemma-3-27b", "h200-sxm", {"weights": "fp8"}),
    ],
)
def test_each_point_is_that_of_an_evaluation(
    calculator: TestClient, model: str, hardware: str, precision: dict[str, Any]
) -> None:
    batches, contexts = [1, 7, 64, 513], [2, 4096, 131_072]
    scenario = scenario_document(model, hardware, precision=precision)
    body = {"scenario": scenario, "axes": {"concurrency": batches, "context": contexts}}
    grid = calculator.post(SWEEP, json=body).json()["metrics"]
    for i, batch in enumerate(batches):
        for j, context in enumerate(contexts):
            # Half-way through one answer of two tokens the cache holds prompt + 1.
            workload = {"prompt_tokens": context - 1, "output_tokens": 2, "concurrency": batch}
            point = calculator.post(EVALUATE, json=scenario | {"workload": workload}).json()
            step = point["decode"]["ceiling_s"]
            assert point["decode"]["context_tokens"] == context
            assert grid["decode_step_s"][i][j] == pytest.approx(step, rel=1e-12)
            assert grid["decode_tokens_per_s"][i][j] == pytest.approx(batch / step, rel=1e-12)
            at_length = scenario | {"workload": workload | {"prompt_tokens": max(context - 2, 1)}}
            held = calculator.post(EVALUATE, json=at_length).json()["memory"]
            if context > 2:
                assert grid["kv_bytes"][i][j] == pytest.approx(batch * held["kv_bytes_per_sequence"], rel=1e-12)
                assert grid["fits"][i][j] == float(batch <= held["max_concurrency"])


def test_an_axis_left_out_stays_at_the_value_of_the_scenario(calculator: TestClient) -> None:
    body = sweep(calculator, {})
    point = calculator.post(EVALUATE, json=scenario_document()).json()
    assert body["axes"] == {"concurrency": [64], "context": [1250]}
    assert body["shape"] == [1, 1]
    assert body["metrics"]["decode_step_s"] == [[pytest.approx(point["decode"]["ceiling_s"], rel=1e-12)]]


@pytest.mark.parametrize(
    "workload",
    [{"concurrency": None}, {"output_tokens": 501}],
    ids=["as many as fit", "an answer of odd length"],
)
def test_no_axis_at_all_is_the_step_of_the_evaluation(calculator: TestClient, workload: dict[str, Any]) -> None:
    scenario = scenario_document(workload=workload)
    step = calculator.post(SWEEP, json={"scenario": scenario, "axes": {}}).json()["metrics"]["decode_step_s"]
    point = calculator.post(EVALUATE, json=scenario).json()
    assert step == [[pytest.approx(point["decode"]["ceiling_s"], rel=1e-9)]]


def test_shape_is_concurrency_by_context(calculator: TestClient) -> None:
    body = sweep(calculator, {"concurrency": [1, 2, 3], "context": [10, 20]})
    assert body["shape"] == [3, 2]
    assert set(body["metrics"]) == set(body["units"]) == set(METRICS)
    for rows in body["metrics"].values():
        assert [len(row) for row in rows] == [2, 2, 2]


@pytest.mark.parametrize(
    ("axis", "values"),
    [
        ({"start": 1, "stop": 5, "steps": 5}, [1, 2, 3, 4, 5]),
        ({"start": 1, "stop": 1024, "steps": 11, "scale": "log"}, [2**n for n in range(11)]),
        ({"start": 1, "stop": 3, "steps": 100, "scale": "log"}, [1, 2, 3]),
        ({"start": 7, "stop": 7, "steps": 9}, [7]),
        ({"start": 3, "stop": 9, "steps": 1}, [3]),
        ({"start": 1, "stop": 10**8, "steps": 2, "scale": "log"}, [1, 10**8]),
        ([64, 1, 64], [64, 1, 64]),
    ],
)
def test_ranges_and_lists(calculator: TestClient, axis: Any, values: list[int]) -> None:
    assert sweep(calculator, {"concurrency": axis}, metrics=["fits"])["axes"]["concurrency"] == values


def test_only_the_metrics_asked_for(calculator: TestClient) -> None:
    body = sweep(calculator, {}, metrics=["fits", "kv_bytes"])
    assert list(body["metrics"]) == ["fits", "kv_bytes"]
    assert list(body["units"]) == ["fits", "kv_bytes"]


def test_a_metric_named_twice_makes_no_twin_key(calculator: TestClient) -> None:
    body = {"scenario": scenario_document(), "axes": {}, "metrics": ["fits", "fits"]}
    response = calculator.post(SWEEP, json=body)
    seen: Counter[str] = Counter()

    def count(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        seen.update(key for key, _ in pairs)
        return dict(pairs)

    json.loads(response.content, object_pairs_hook=count)
    assert response.status_code == 422 or seen["fits"] == 2  # once among the units, once among the metrics


@pytest.mark.parametrize("name", ["tensor", "pipeline", "expert", "data"])
def test_an_axis_that_is_not_computed_is_refused_by_name(calculator: TestClient, name: str) -> None:
    response = calculator.post(SWEEP, json={"scenario": scenario_document(), "axes": {name: [1, 2]}})
    (error,) = problem(response, 422)["errors"]
    assert error["path"].startswith("axes")
    assert name in error["path"] + error["message"]


def test_an_unknown_axis_or_metric_is_refused(calculator: TestClient) -> None:
    posted = {"scenario": scenario_document(), "axes": {"batch": [1]}, "metrics": ["speed"]}
    assert paths(calculator.post(SWEEP, json=posted)) == ["axes.batch", "metrics.0"]


def test_limits(calculator: TestClient) -> None:
    most = {"start": 1, "stop": 10**8, "steps": MOST_ON_AXIS}
    posted: dict[str, Any] = {"scenario": scenario_document(), "axes": {"concurrency": most, "context": most}}
    assert paths(calculator.post(SWEEP, json=posted)) == ["axes"]
    for wrong in ({"steps": MOST_ON_AXIS + 1}, {"start": 0}, {"stop": 10**8 + 1}, {"steps": 0}, {"scale": "cubic"}):
        response = calculator.post(SWEEP, json=posted | {"axes": {"context": most | wrong}})
        assert any(path.endswith(next(iter(wrong))) for path in paths(response))
    assert paths(calculator.post(SWEEP, json=posted | {"metrics": []})) == ["metrics"]
    assert paths(calculator.post(SWEEP, json={"axes": {}})) == ["scenario"]


def test_the_largest_sweep_is_answered(calculator: TestClient) -> None:
    body = sweep(
        calculator,
        {
            "concurrency": {"start": 1, "stop": 1000, "steps": 1000},
            "context": {"start": 1, "stop": 10**8, "steps": 200},
        },
        metrics=["decode_step_s"],
    )
    assert body["shape"] == [1000, 200]
    rows = body["metrics"]["decode_step_s"]
    assert rows[0][0] < rows[-1][0] < rows[-1][-1]


@pytest.mark.parametrize(
    ("axis", "path"),
    [
        ([0], "axes.context.0"),
        ([1, "2"], "axes.context.1"),
        ([], "axes.context"),
        ({"start": 1, "stop": 2, "steps": 0}, "axes.context.steps"),
        ({"start": 1, "stop": 2}, "axes.context.steps"),
        (3, "axes.context"),
    ],
)
def test_a_refusal_stands_at_a_path_of_what_was_sent(calculator: TestClient, axis: Any, path: str) -> None:
    response = calculator.post(SWEEP, json={"scenario": scenario_document(), "axes": {"context": axis}})
    assert set(paths(response)) == {path}


def test_a_refused_scenario_stands_at_a_path_of_what_was_sent(calculator: TestClient) -> None:
    malformed = calculator.post(SWEEP, json={"scenario": scenario_document("No Id"), "axes": {}})
    assert paths(malformed) == ["scenario.model.id"]
    unknown = calculator.post(SWEEP, json={"scenario": scenario_document("no-such-model"), "axes": {}})
    assert paths(unknown) == ["scenario.model.id"]
