"""The page about the API: every path, parameter and object of the OpenAPI document, and pages for what goes wrong."""

import pytest
from starlette.testclient import TestClient

from app.scenario.query import FIELDS
from tests.features.asking import json_of, page, twin_of


def test_every_path_and_method_is_there(reader: TestClient) -> None:
    tree = page(reader, "/docs")
    document = json_of(reader, twin_of(tree))
    listed = {heading.text for article in tree.all("article") for heading in article.all("h3")}
    paths = {f"{method.upper()} {path}" for path, methods in document["paths"].items() for method in methods}
    assert listed == paths
    assert len(paths) >= 15


def test_every_object_and_its_fields_are_there(reader: TestClient) -> None:
    tree = page(reader, "/docs")
    for name, schema in json_of(reader, twin_of(tree))["components"]["schemas"].items():
        details = tree.id(f"schema-{name}")
        assert {dt.one("code").text for dt in details.all("dt")} == set(schema.get("properties", ()))


def test_the_query_names_are_explained(reader: TestClient) -> None:
    article = next(a for a in page(reader, "/docs").all("article") if a.one("h3").text == "GET /api/v1/evaluate")
    rows = {row["Name"]: row["Meaning"] for row in article.all("table")[0].all("table")[0].table()}
    assert {name.removesuffix(" needed") for name in rows} == {field.name for field in FIELDS}


def test_every_answer_is_listed(reader: TestClient) -> None:
    tree = page(reader, "/docs")
    document = json_of(reader, twin_of(tree))
    for article in tree.all("article"):
        method, _, path = article.one("h3").text.partition(" ")
        region = article.one(role="region", aria_label=f"Answers of {method} {path}")
        assert {row["Answer"] for row in region.table()} == set(document["paths"][path][method.lower()]["responses"])


def test_the_example_of_the_page_works(reader: TestClient) -> None:
    tree = page(reader, "/docs")
    body = tree.one("pre", aria_label="Example of a request").text.partition("-d '")[2].rstrip("'")
    answer = reader.post("/api/v1/evaluate", content=body, headers={"content-type": "application/json"})
    assert answer.status_code == 200


@pytest.mark.parametrize("path", ["/nothing", "/docs/x", "/c/", "/export/x"])
def test_an_unknown_address_is_a_page(reader: TestClient, path: str) -> None:
    tree = page(reader, path, 404)
    assert tree.one("h1").text == "Not Found"
    assert "/" in [a["href"] for a in tree.id("main").all("a")]


def test_an_unknown_address_of_the_api_is_a_problem(reader: TestClient) -> None:
    answer = reader.get("/api/v1/nothing")
    assert answer.status_code == 404
    assert answer.headers["content-type"] == "application/problem+json"


def test_the_wrong_method_is_a_page(reader: TestClient) -> None:
    assert page(reader, "/save", 405).one("h1").text == "Method Not Allowed"


@pytest.mark.parametrize(
    "body", [b"", b"{", b'{"csp-report": {"blocked-uri": "x", "effective-directive": "y"}}', b"[1]"]
)
def test_a_policy_report_is_taken_in_silence(reader: TestClient, body: bytes) -> None:
    answer = reader.post("/csp-report", content=body, headers={"content-type": "application/csp-report"})
    assert (answer.status_code, answer.content) == (204, b"")
