"""What went wrong, in the face that was asked."""

import pytest
from starlette.testclient import TestClient

from app.web.errors import SENTENCES
from app.web.problem import MEDIA_TYPE
from app.web.urls import API


@pytest.mark.parametrize(
    "path", [f"{API}/nope", f"{API}/models/nope", f"{API}/configurations/nope", f"{API}/models/a/b"]
)
def test_below_the_api_a_problem(reader: TestClient, path: str) -> None:
    answer = reader.get(path)
    assert answer.status_code == answer.json()["status"] == 404
    assert answer.headers["content-type"] == MEDIA_TYPE


@pytest.mark.parametrize("path", ["/nope", "/c/nope", "/export/nope.csv", "/export/roofline.exe", "/nope/nope.json"])
def test_elsewhere_a_page(reader: TestClient, path: str) -> None:
    answer = reader.get(path)
    assert answer.status_code == 404
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    assert "<h1>Not Found</h1>" in answer.text
    assert 'href="/"' in answer.text


@pytest.mark.parametrize(
    "path", [f"{API}/nope%3Cscript%3Ealert(1)", "/nope%3Cscript%3Ealert(1)", "/c/%3Cscript%3Ealert(1)"]
)
def test_the_address_is_not_repeated(reader: TestClient, path: str) -> None:
    assert "alert(1)" not in reader.get(path).text


@pytest.mark.parametrize(
    ("method", "path"),
    [("POST", "/"), ("DELETE", f"{API}/models"), ("PATCH", f"{API}/evaluate"), ("PUT", "/save"), ("GET", "/save")],
)
def test_the_wrong_method_is_told_the_right_ones(reader: TestClient, method: str, path: str) -> None:
    answer = reader.request(method, path)
    assert answer.status_code == 405
    assert answer.headers["allow"]
    assert SENTENCES[405] in answer.text


def test_a_scenario_that_is_refused_on_an_export_is_a_page_with_the_paths(reader: TestClient) -> None:
    answer = reader.get("/export/roofline.csv?model=nope&hw=h100-sxm-80gb&prompt=1")
    assert answer.status_code == 422
    assert "<code>model.id</code>" in answer.text
    assert "There is no model" in answer.text


def test_a_form_that_is_refused_is_a_page_with_the_paths(reader: TestClient) -> None:
    answer = reader.post("/save", data={"query": "model=llama-3.1-8b&hw=h100-sxm-80gb", "title": ""})
    assert answer.status_code == 422
    assert "<code>title</code>" in answer.text


@pytest.mark.parametrize("days", ["100000", "99999", "-1", "soon", "1.5", "\u0663"])
def test_an_expiry_that_is_none_is_refused_and_not_replaced_by_the_default(reader: TestClient, days: str) -> None:
    form = {"query": "model=llama-3.1-8b&hw=h100-sxm-80gb", "title": "t", "expires_in_days": days}
    answer = reader.post("/save", data=form, follow_redirects=False)
    assert answer.status_code == 422


@pytest.mark.parametrize("query", ["", "model=", "nope=1", "units=gib", "&&&", "=1", "%00=%00"])
def test_a_form_without_a_scenario_is_refused(reader: TestClient, query: str) -> None:
    answer = reader.post("/save", data={"query": query, "title": "t"}, follow_redirects=False)
    assert answer.status_code == 422
