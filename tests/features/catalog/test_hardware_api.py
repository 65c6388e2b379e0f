"""The accelerators by HTTP: narrowed and ordered by the page's names, refused as the page refuses."""

import math
from typing import Any
from urllib.parse import urlencode

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from starlette.testclient import TestClient

from app.checkpoint.text import loads
from app.web.urls import API
from tests.factories import shipped_catalog
from tests.features.problems import paths, problem

CATALOG = shipped_catalog()
LIST = f"{API}/hardware"


def ids(client: TestClient, query: str = "") -> list[str]:
    answer = client.get(f"{LIST}?{query}")
    assert answer.status_code == 200, answer.text
    body: dict[str, Any] = loads(answer.content)
    assert (body["catalog_version"], body["total"]) == (CATALOG.version, len(CATALOG.accelerators))
    return [row["id"] for row in body["hardware"]]


def test_nothing_asked_is_every_row(calculator: TestClient) -> None:
    assert ids(calculator) == ids(calculator, "q=&vendor=&sort=") == list(CATALOG.accelerators)


def test_the_query_of_a_page_works_here(calculator: TestClient) -> None:
    assert ids(calculator, "q=h100&vendor=NVIDIA&sort=-bandwidth") == [
        "h100-nvl-94gb",
        "h100-sxm-80gb",
        "h100-pcie-80gb",
    ]
    assert ids(calculator, "vendor=Groq&min_memory=90") == []


def test_a_row_carries_kind_and_ridges(calculator: TestClient) -> None:
    row = calculator.get(f"{LIST}?q=h100+sxm").json()["hardware"][0]
    assert (row["kind"], row["architecture"]) == ("data-center", "Hopper GH100")
    assert row["ridge_flops_per_byte"]["bf16"] == pytest.approx(295.34, abs=0.01)
    assert set(row["ridge_flops_per_byte"]) == set(row["peak_flops_per_s"])
    item = calculator.get(f"{LIST}/h100-sxm-80gb").json()
    assert {key: item[key] for key in row} == row


def test_every_accelerator_has_an_item_whose_ridges_divide(calculator: TestClient) -> None:
    for id_, record in CATALOG.accelerators.items():
        item = calculator.get(f"{LIST}/{id_}").json()
        assert item["name"] == record.name
        for dtype, ridge in item["ridge_flops_per_byte"].items():
            assert math.isclose(ridge, item["peak_flops_per_s"][dtype] / item["bandwidth_bytes_per_s"])


@pytest.mark.parametrize(
    ("query", "named"),
    [
        ("min_memory=nan", ["min_memory"]),
        ("min_bandwidth=1e400", ["min_bandwidth"]),
        ("min_year=1850&sort=up", ["min_year", "sort"]),
        ("min_year=2025&max_year=2020", ["max_year"]),
        ("vendor=Nvidea", ["vendor"]),
        ("vendor=AMD&vendor=AMD", ["vendor"]),
        ("has_fp8=maybe&colour=red", ["colour", "has_fp8"]),
        ("kind=laptop", ["kind"]),
    ],
)
def test_what_is_not_right_is_refused_at_its_name(calculator: TestClient, query: str, named: list[str]) -> None:
    assert paths(calculator.get(f"{LIST}?{query}")) == named


def test_an_absurd_query_is_refused(calculator: TestClient) -> None:
    problem(calculator.get(f"{LIST}?{'q=a&' * 300}"), 422)


def test_an_unknown_id_names_what_is_near(calculator: TestClient) -> None:
    detail = problem(calculator.get(f"{LIST}/h100-sxn-80gb"), 404)["detail"]
    assert "h100-sxm-80gb" in detail
    assert "h100-sxn-80gb" not in detail


def test_the_documented_parameters_are_those_that_are_read(calculator: TestClient) -> None:
    document = calculator.get(f"{API}/openapi.json").json()
    parameters = document["paths"][LIST]["get"]["parameters"]
    assert all(parameter["description"] for parameter in parameters)
    names = [parameter["name"] for parameter in parameters]
    assert ids(calculator, "&".join(f"{name}=" for name in names)) == list(CATALOG.accelerators)
    assert {"q", "vendor", "kind", "min_memory", "min_bandwidth", "min_year", "max_year", "sort"} <= set(names)


NAMES = st.sampled_from(["q", "vendor", "kind", "min_memory", "min_year", "max_year", "has_fp8", "sort", "x"])
VALUES = st.one_of(st.text(max_size=40), st.sampled_from(["nan", "-inf", "1e999", "NVIDIA", "-bandwidth", "80", "yes"]))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(NAMES, VALUES), max_size=6))
def test_no_query_is_a_server_error(calculator: TestClient, items: list[tuple[str, str]]) -> None:
    query = urlencode([(name, value.encode("utf-8", "replace").decode()) for name, value in items])
    api, page = calculator.get(f"{LIST}?{query}"), calculator.get(f"/hardware?{query}")
    assert api.status_code == page.status_code
    assert api.status_code in (200, 422)
