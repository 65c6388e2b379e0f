"""The models by HTTP: narrowed and ordered by the page's names, refused as the page refuses, every number finite."""

import math
from typing import Any
from urllib.parse import urlencode

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from starlette.testclient import TestClient

from app.calc.model.layers.parts import WeightGroup
from app.catalog.architecture_document import read_architecture
from app.catalog.facts import ModelShelf
from app.checkpoint.text import loads
from app.web.urls import API
from tests.factories import shipped_catalog
from tests.features.problems import paths, problem
from tests.features.workbench.test_evaluate import numbers

CATALOG = shipped_catalog()
SHELF = ModelShelf(CATALOG)
LIST = f"{API}/models"


def ids(client: TestClient, query: str = "") -> list[str]:
    answer = client.get(f"{LIST}?{query}")
    assert answer.status_code == 200, answer.text
    body: dict[str, Any] = loads(answer.content)
    assert (body["catalog_version"], body["total"]) == (CATALOG.version, len(CATALOG.models))
    return [row["id"] for row in body["models"]]


def item(client: TestClient, id_: str) -> dict[str, Any]:
    answer = client.get(f"{LIST}/{id_}")
    assert answer.status_code == 200, answer.text[:500]
    body: dict[str, Any] = loads(answer.content)
    assert all(math.isfinite(number) for number in numbers(body))
    return body


def test_nothing_asked_is_every_row(calculator: TestClient) -> None:
    assert ids(calculator) == ids(calculator, "q=&kind=&sort=") == list(CATALOG.models)


def test_the_query_of_a_page_works_here(calculator: TestClient) -> None:
    assert ids(calculator, "q=llama&attention=chunk&sort=-params") == ["llama-4-maverick", "llama-4-scout"]
    assert ids(calculator, "family=Falcon&kind=experts") == []


@pytest.mark.parametrize("id_", CATALOG.models)
def test_every_model_has_an_item_that_adds_up(calculator: TestClient, id_: str) -> None:
    body, facts = item(calculator, id_), SHELF.facts[id_]
    counts, record = facts.counts, facts.record
    groups = body["parameters"]["groups"]
    assert set(groups) <= set(WeightGroup)
    assert sum(group["total"] for group in groups.values()) + body["parameters"]["vision"] == counts.total
    assert body["params"] == body["parameters"]["total"] == counts.total
    assert body["active"]["all_weights"] == body["active_params"] == counts.active
    assert body["active"]["read_per_token"] == counts.read_per_token
    assert body["recounted_params"] == record.stated_parts
    assert [at["context_tokens"] for at in body["kv"]] == [1_024, 8_192, 131_072]
    assert body["kv"][1]["bytes_per_token"] == body["kv_bytes_per_token_bf16_at_8192"]
    assert body["shipped_bytes"] == body["checkpoints"][0]["loaded_bytes"] == facts.shipped.loaded_bytes
    assert body["held_by"]["weights"][0]["weight_bytes"] == body["shipped_bytes"]
    assert set(body["held_by"]["weights"][0]["accelerators"]) == set(CATALOG.accelerators)
    assert len(body["order"]) == body["layers_count"] == facts.architecture.n_layers
    assert body["sources"]


@pytest.mark.parametrize("id_", CATALOG.models)
def test_the_architecture_can_be_read_back(calculator: TestClient, id_: str) -> None:
    document = item(calculator, id_)["architecture"]
    assert read_architecture(document, CATALOG.models[id_].name) == CATALOG.architectures[id_]


def test_the_reference_model(calculator: TestClient) -> None:
    body = item(calculator, "llama-3.1-8b")
    assert body["params"] == 8_030_261_248
    assert body["weight_bytes"]["bf16"] == body["shipped_bytes"] == 16_060_522_496
    assert body["kv_bytes_per_token_bf16_at_4096"] == 131_072
    assert body["kv"][2] == {
        "context_tokens": 131_072,
        "sequence_bytes": 17_179_869_184,
        "multi_head_bytes": 68_719_476_736,
        "beyond_limit": False,
        "bytes_per_token": 131_072,
    }
    shipped, card = SHELF.facts["llama-3.1-8b"].loads[0], "h100-sxm-80gb"
    users = shipped.shares[0].users(CATALOG.devices[card])  # worked out by hand in tests/catalog/test_facts.py
    assert body["held_by"]["weights"][0]["accelerators"][card] == {"gpus": 1, "users": users}
    assert body["held_by"]["weights"][0]["per_gpu"][1] == {
        "gpus": 2,
        "weight_bytes": 8_030_527_488,  # half of all matrices, and 65 norms of 4,096 copied
        "sequence_bytes": 8_192 * 65_536,
    }
    assert body["state_bytes"] == 0


def test_files_of_a_model_with_multi_token_prediction(calculator: TestClient) -> None:
    (files,) = item(calculator, "deepseek-v3")["checkpoints"]
    assert files["computed_bytes"] == files["loaded_bytes"] + files["mtp_bytes"] + files["duplicate_bytes"]
    assert files["difference_bytes"] == files["file_bytes"] - files["computed_bytes"] == 11_925_545


@pytest.mark.parametrize(
    ("query", "named"),
    [
        ("min_params=nan", ["min_params"]),
        ("max_kv=1e400", ["max_kv"]),
        ("min_year=1850&sort=up", ["min_year", "sort"]),
        ("min_params=10&max_params=1", ["max_params"]),
        ("family=Lama", ["family"]),
        ("kind=dense&kind=dense", ["kind"]),
        ("attention=none&colour=red", ["attention", "colour"]),
    ],
)
def test_what_is_not_right_is_refused_at_its_name(calculator: TestClient, query: str, named: list[str]) -> None:
    assert sorted(paths(calculator.get(f"{LIST}?{query}"))) == named


def test_an_unknown_id_names_what_is_near(calculator: TestClient) -> None:
    detail = problem(calculator.get(f"{LIST}/deepseek-v33"), 404)["detail"]
    assert "deepseek-v3" in detail
    assert "deepseek-v33" not in detail


def test_the_documented_parameters_are_those_that_are_read(calculator: TestClient) -> None:
    document = calculator.get(f"{API}/openapi.json").json()
    parameters = document["paths"][LIST]["get"]["parameters"]
    assert all(parameter["description"] for parameter in parameters)
    names = [parameter["name"] for parameter in parameters]
    assert ids(calculator, "&".join(f"{name}=" for name in names)) == list(CATALOG.models)
    assert {"q", "kind", "attention", "family", "min_params", "max_params", "max_kv", "min_context", "sort"} < set(
        names
    )


NAMES = st.sampled_from(["q", "kind", "attention", "family", "min_params", "max_kv", "max_year", "sort", "x"])
VALUES = st.one_of(st.text(max_size=40), st.sampled_from(["nan", "-inf", "1e999", "dense", "-params", "80", "mla"]))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], derandomize=True, deadline=None)
@given(st.lists(st.tuples(NAMES, VALUES), max_size=6))
def test_no_query_is_a_server_error(calculator: TestClient, items: list[tuple[str, str]]) -> None:
    query = urlencode([(name, value.encode("utf-8", "replace").decode()) for name, value in items])
    api, page = calculator.get(f"{LIST}?{query}"), calculator.get(f"/models?{query}")
    assert api.status_code == page.status_code
    assert api.status_code in (200, 422)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], derandomize=True, deadline=None, max_examples=50)
@given(st.text(min_size=1, max_size=80))
def test_no_id_is_a_server_error(calculator: TestClient, given_id: str) -> None:
    path = urlencode({"": given_id.encode("utf-8", "replace").decode()})[1:]
    if given_id in CATALOG.models or given_id.strip("./") == "":
        return
    assert calculator.get(f"{LIST}/{path}").status_code == calculator.get(f"/models/{path}").status_code == 404
