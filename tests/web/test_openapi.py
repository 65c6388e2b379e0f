"""The OpenAPI document against the app it describes."""

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.routing import APIRoute
from starlette.routing import BaseRoute
from starlette.testclient import TestClient

from app.store.links import new_token
from app.web.problem import MEDIA_TYPE
from app.web.urls import API

PAGES = {
    ("GET", "/"),
    ("GET", "/compare"),
    ("GET", "/production"),
    ("GET", "/compare/{chart}.{extension}"),
    ("GET", "/docs"),
    ("GET", "/doors"),
    ("GET", "/optimizations"),
    ("GET", "/import"),
    ("POST", "/import"),
    ("GET", "/paste"),
    ("POST", "/paste"),
    ("GET", "/launch"),
    ("GET", "/models/custom"),
    ("POST", "/models/custom"),
    ("GET", "/hardware/custom"),
    ("GET", "/models"),
    ("GET", "/models/{model_id}"),
    ("GET", "/hardware"),
    ("GET", "/hardware/{hardware_id}"),
    ("GET", "/validation"),
    ("GET", "/learn"),
    ("GET", "/live"),
    ("GET", "/live/stream"),
    ("POST", "/live/server"),
    ("POST", "/live/roofs"),
    ("GET", "/live/recorded"),
    ("POST", "/live/recorded"),
    ("POST", "/live/snapshots"),
    ("GET", "/live/s/{slug}"),
    ("POST", "/live/s/{slug}/revoke"),
    ("GET", "/benchmarks"),
    ("POST", "/benchmarks"),
    ("POST", "/calibrations"),
    ("GET", "/calibrations/{slug}"),
    ("POST", "/calibrations/{slug}/revoke"),
    ("GET", "/export/{chart}.{extension}"),
    ("GET", "/c/{slug}"),
    ("POST", "/c/{slug}/edit"),
    ("POST", "/c/{slug}/revoke"),
    ("POST", "/c/{slug}/duplicate"),
    ("POST", "/save"),
    ("POST", "/csp-report"),
}


def routes_of(routes: list[BaseRoute]) -> Iterator[tuple[APIRoute, str]]:
    """Every route with its whole path, through the routers that hold it."""
    for route in routes:
        if isinstance(route, APIRoute):
            yield route, route.path
        router = getattr(route, "original_router", None)
        if router is not None:
            yield from routes_of(router.routes)


def operations(document: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            yield method.upper(), path, operation


@pytest.fixture(scope="module")
def document(calculator: TestClient) -> dict[str, Any]:
    response = calculator.get(f"{API}/openapi.json")
    assert response.status_code == 200
    body: dict[str, Any] = response.json()
    return body


def test_every_route_is_documented_or_a_page(shared_app: FastAPI, document: dict[str, Any]) -> None:
    documented = {(method, path.removeprefix(API)) for method, path, _ in operations(document)}
    of_pages, others = set[tuple[str, str]](), set[tuple[str, str]]()
    for route, path in routes_of(shared_app.routes):
        # A page and its JSON twin share a path, but for the prefix.
        found = others if route.include_in_schema else of_pages
        found |= {(method, path.removeprefix(API)) for method in route.methods or ()}
    assert others == documented
    assert of_pages == PAGES


def test_every_reference_leads_somewhere(document: dict[str, Any]) -> None:
    names = set(re.findall(r'"#/components/schemas/([^"]+)"', json.dumps(document)))
    assert names <= set(document["components"]["schemas"])
    assert "HTTPValidationError" not in document["components"]["schemas"]


def test_every_refusal_is_documented_as_a_problem(document: dict[str, Any]) -> None:
    for method, path, operation in operations(document):
        for status, response in operation["responses"].items():
            assert response["description"], (method, path, status)
            if status.startswith("4"):
                assert list(response["content"]) == [MEDIA_TYPE], (method, path, status)
                assert response["content"][MEDIA_TYPE]["schema"] == {"$ref": "#/components/schemas/Problem"}


def test_every_operation_and_parameter_is_described(document: dict[str, Any]) -> None:
    for method, path, operation in operations(document):
        assert operation["description"], (method, path)
        for parameter in operation.get("parameters", ()):
            if parameter["name"] not in ("model_id", "hardware_id"):
                assert parameter.get("description"), (method, path, parameter["name"])


def test_every_example_evaluates(calculator: TestClient, document: dict[str, Any]) -> None:
    examples = [
        (path, example)
        for _, path, operation in operations(document)
        for content in operation.get("requestBody", {}).get("content", {}).values()
        for example in content["schema"].get("examples", ())
    ]
    assert examples
    for path, example in examples:
        assert calculator.post(path, json=example).status_code == 200


def test_examples_of_ids_are_in_the_catalog(calculator: TestClient, document: dict[str, Any]) -> None:
    schemas = document["components"]["schemas"]
    assert schemas["Model"]["properties"]["id"]["examples"] == ["llama-3.1-8b"]
    for kind, schema in (("models", "Model"), ("hardware", "Hardware")):
        for id_ in schemas[schema]["properties"]["id"]["examples"]:
            assert calculator.get(f"{API}/{kind}/{id_}").status_code == 200


def test_every_path_answers_and_every_refusal_is_documented(calculator: TestClient, document: dict[str, Any]) -> None:
    for method, path, operation in operations(document):
        if path.endswith("/stream"):
            continue
        for value in ("llama-3.1-8b", "h100-sxm-80gb", new_token()):
            address = re.sub(r"\{[a-z_]+\}", value, path)
            body: dict[str, Any] | None = {} if "requestBody" in operation else None
            answer = calculator.request(method, address, json=body)
            assert str(answer.status_code) in operation["responses"], (method, address, answer.status_code)
            if answer.status_code >= 400:
                assert answer.headers["content-type"] == MEDIA_TYPE


def test_bounds_are_finite(document: dict[str, Any]) -> None:
    json.dumps(document, allow_nan=False)


def test_the_query_parameters_are_those_that_are_read(calculator: TestClient, document: dict[str, Any]) -> None:
    parameters = document["paths"][f"{API}/evaluate"]["get"]["parameters"]
    assert {parameter["name"] for parameter in parameters if parameter["required"]} == {"model", "hw"}
    query = "&".join(f"{parameter['name']}=" for parameter in parameters)
    answer = calculator.get(f"{API}/evaluate?{query}&model=llama-3.1-8b&hw=h100-sxm-80gb")
    assert "no such query parameter" not in answer.text
