"""The catalog by HTTP: every row, every item, and nothing that is not finite."""

import math
from collections.abc import Mapping
from typing import Any

import pytest
from starlette.testclient import TestClient

from app.checkpoint.text import loads
from app.web.urls import API
from tests.factories import scenario_document, shipped_catalog
from tests.features.problems import problem
from tests.features.workbench.test_evaluate import numbers

CATALOG = shipped_catalog()


def got(client: TestClient, path: str) -> dict[str, Any]:
    response = client.get(f"{API}{path}")
    assert response.status_code == 200
    body: dict[str, Any] = loads(response.content)
    assert all(math.isfinite(number) for number in numbers(body))
    return body


@pytest.mark.parametrize(("kind", "records"), [("models", CATALOG.models), ("hardware", CATALOG.accelerators)])
def test_the_list_has_every_row_with_the_same_keys(
    calculator: TestClient, kind: str, records: Mapping[str, object]
) -> None:
    body = got(calculator, f"/{kind}")
    assert body["catalog_version"] == CATALOG.version
    rows = body[kind]
    assert [row["id"] for row in rows] == list(records)
    assert len({tuple(row) for row in rows}) == 1


@pytest.mark.parametrize("kind", ["models", "hardware"])
def test_every_item_repeats_its_row_and_names_its_sources(calculator: TestClient, kind: str) -> None:
    for row in got(calculator, f"/{kind}")[kind]:
        item = got(calculator, f"/{kind}/{row['id']}")
        assert {key: item[key] for key in row} == row
        assert item["sources"]
        assert isinstance(item["caveats"], list)


def test_the_reference_model(calculator: TestClient) -> None:
    item = got(calculator, "/models/llama-3.1-8b")
    assert item["params"] == item["parameters"]["total"] == 8_030_261_248
    assert item["weight_bytes"]["bf16"] == 16_060_522_496
    assert item["kv_bytes_per_token_bf16_at_4096"] == 131_072
    assert abs(item["deviation_from_stated"]) < 1e-4


def test_the_reference_card(calculator: TestClient) -> None:
    item = got(calculator, "/hardware/h100-sxm-80gb")
    assert item["bandwidth_bytes_per_s"] == 3.35e12
    assert item["peak_flops_per_s"]["bf16"] == pytest.approx(989e12, rel=1e-3)
    assert item["memory_marketed_bytes"] == 80e9


def test_every_row_of_both_lists_evaluates(calculator: TestClient) -> None:
    scenarios = [scenario_document(id_) for id_ in CATALOG.models]
    scenarios += [scenario_document(hardware=id_) for id_ in CATALOG.accelerators]
    results = calculator.post(f"{API}/evaluate/batch", json={"scenarios": scenarios}).json()["results"]
    for scenario, result in zip(scenarios, results, strict=True):
        if "problem" in result:  # an old card without a 16-bit rate
            assert [error["path"] for error in result["problem"]["errors"]] == ["precision.compute"], scenario
        else:
            assert all(math.isfinite(number) for number in numbers(result))
    assert sum("evaluation" in result for result in results) > 180


def test_engines(calculator: TestClient) -> None:
    engines = got(calculator, "/engines")["engines"]
    assert [engine["id"] for engine in engines] == list(CATALOG.engines)
    assert "vllm" in CATALOG.engines


@pytest.mark.parametrize("kind", ["models", "hardware"])
@pytest.mark.parametrize("unknown", ["nope", "LLAMA-3.1-8B", "%00", "%2e%2e", "a" * 5_000, "<script>", "nöpe"])
def test_an_unknown_item_is_a_problem_that_repeats_nothing(calculator: TestClient, kind: str, unknown: str) -> None:
    response = calculator.get(f"{API}/{kind}/{unknown}")
    body = problem(response, 404)
    assert unknown not in body["detail"]
    assert "errors" not in body
