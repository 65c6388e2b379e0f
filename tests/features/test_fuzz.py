"""Whatever is sent: an answer or a problem, never an error of the server, never a number that is none."""

import json
import re
from collections.abc import Mapping
from html.parser import HTMLParser
from typing import Any

import pytest
from httpx2 import Response
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from markupsafe import escape
from starlette.testclient import TestClient

from app.checkpoint.text import clean_text, dumps
from app.scenario.query import BY_NAME, name_of
from app.scenario.scenario import Scenario
from app.web.problem import MEDIA_TYPE
from app.web.urls import API, query_string, scenario_items
from tests.features.strategies import TEXTS, documents, hostile_documents, query_items

FRAGMENT = {"HX-Request": "true", "HX-Request-Type": "partial"}
JSON = {"content-type": "application/json"}


def often(examples: int) -> settings:
    return settings(
        derandomize=True,
        deadline=None,
        max_examples=examples,
        suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.data_too_large],
    )


def refuse_constant(name: str) -> Any:
    raise AssertionError(f"{name} in an answer")


def finite_json(response: Response) -> Any:
    return json.loads(response.content, parse_constant=refuse_constant)


def checked(response: Response) -> Any:
    """The body of an answer in JSON: 200, or a problem with its errors."""
    assert response.status_code in (200, 400, 422), response.text[:300]
    body = finite_json(response)
    if response.status_code != 200:
        assert response.headers["content-type"] == MEDIA_TYPE
        assert body["status"] == response.status_code
    if response.status_code == 422:
        assert body["errors"]
    return body


def leads_into(path: str, sent: Any) -> bool:
    """Whether `path` names a field of `sent`, or one that is missing in an object of it."""
    if path == "":
        return True
    if not isinstance(sent, (dict, list)):
        return False
    if isinstance(sent, list):
        head, _, rest = path.partition(".")
        return head.isdigit() and int(head) < len(sent) and leads_into(rest, sent[int(head)])
    for key, value in sent.items():
        shown = key if len(key) <= 60 else f"{key[:60]}…"
        if path == shown or (path.startswith(f"{shown}.") and leads_into(path[len(shown) + 1 :], value)):
            return True
    return "." not in path  # missing here


@given(documents())
@often(60)
def test_a_scenario_in_range_is_answered(calculator: TestClient, document: dict[str, Any]) -> None:
    body = checked(calculator.post(f"{API}/evaluate", content=dumps(document), headers=JSON))
    if "errors" in body:
        paths = {error["path"] for error in body["errors"]}
        for path in paths - {"precision.compute", "workload.shared_prefix_tokens"}:
            assert path.startswith("techniques.")


@given(documents())
@often(40)
def test_a_scenario_in_range_has_a_page(calculator: TestClient, document: dict[str, Any]) -> None:
    evaluated = calculator.post(f"{API}/evaluate", content=dumps(document), headers=JSON)
    if evaluated.status_code != 200:
        return
    query = query_string(scenario_items(Scenario.model_validate(document)))
    assert calculator.get(f"/?{query}").status_code == 200


@given(hostile_documents())
@often(120)
def test_a_hostile_scenario(calculator: TestClient, document: Any) -> None:
    response = calculator.post(f"{API}/evaluate", content=json.dumps(document), headers=JSON)
    body = checked(response)
    for error in body.get("errors", ()) if response.status_code == 422 else ():
        assert leads_into(error["path"], document), error


@given(st.lists(hostile_documents(), min_size=1, max_size=3))
@often(40)
def test_a_hostile_batch(calculator: TestClient, scenarios: list[Any]) -> None:
    body = checked(calculator.post(f"{API}/evaluate/batch", content=json.dumps({"scenarios": scenarios}), headers=JSON))
    assert "errors" in body or "detail" in body or len(body["results"]) == len(scenarios)


@given(query_items())
@often(60)
def test_a_hostile_query(calculator: TestClient, items: list[tuple[str, str]]) -> None:
    response = calculator.get(f"{API}/evaluate?{query_string(items)}")
    body = checked(response)
    sent = {name[:60] for name, _ in items} | {"model", "hw"}
    for error in body.get("errors", ()) if response.status_code == 422 else ():
        name = name_of(error["path"])
        assert error["path"] in sent or name in sent or needed(error["path"], sent), error


def needed(path: str, sent: set[str]) -> bool:
    """Missing fields of a custom part, which nobody sent."""
    parts = ("hardware.custom.", "model.config", "techniques.speculative.", "calibration.")
    return path.startswith(parts) and bool(sent)


class Fields(HTMLParser):
    """The form of the workbench: what stands in each field, and the message at each."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.values: dict[str, str] = {}
        self.messages: dict[str, str] = {}
        self.scripts: list[dict[str, str | None]] = []
        self._within: tuple[dict[str, str], str] | None = None
        self._select = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        name, id_ = found.get("name") or "", found.get("id") or ""
        self._within = None
        if tag == "input" and name:
            self.values.setdefault(name, found.get("value") or "")
        elif tag == "textarea":
            self.values[name] = ""
            self._within = (self.values, name)
        elif tag == "select":
            self._select = name
        elif tag == "option" and "selected" in found:
            self.values[self._select] = found.get("value") or ""
        elif tag == "p" and id_.startswith("msg-"):
            self.messages[id_[4:]] = ""
            self._within = (self.messages, id_[4:])
        elif tag == "script":
            self.scripts.append(found)

    def handle_data(self, data: str) -> None:
        if self._within is not None:
            target, name = self._within
            target[name] += data

    def handle_endtag(self, tag: str) -> None:
        self._within = None


def expected_messages(problem: Mapping[str, Any]) -> list[tuple[str, str]]:
    return [(name_of(error["path"]) or "general", error["message"]) for error in problem["errors"]]


def same(text: str) -> str:
    return re.sub(r"\s+", " ", text).strip().casefold()


@given(query_items())
@often(80)
def test_the_page_keeps_what_was_typed_and_says_what_is_wrong_at_each_field(
    calculator: TestClient, items: list[tuple[str, str]]
) -> None:
    query = query_string(items)
    page = calculator.get(f"/?{query}")
    assert page.status_code in (200, 422)
    shown = Fields(page.text)
    assert all("src" in script or script.get("type") == "application/json" for script in shown.scripts)
    if page.status_code == 200:
        return
    known = [(name, value) for name, value in items if name in BY_NAME]
    typed = dict(known)
    for name, value in typed.items():
        if name not in ("v", "mtp", "eager"):  # a box holds no text
            assert shown.values[name] == value.replace("\r\n", "\n"), name
    problem = calculator.get(f"{API}/evaluate?{query_string(known)}").json()
    for name, message in expected_messages(problem):
        assert same(message) in same(shown.messages[name]), (name, message)


@given(query_items())
@often(60)
def test_the_fragment_says_what_is_wrong_at_each_field(calculator: TestClient, items: list[tuple[str, str]]) -> None:
    fragment = calculator.get(f"/?{query_string(items)}", headers=FRAGMENT)
    assert fragment.status_code in (200, 422)
    assert fragment.headers["cache-control"] == "no-store"
    assert "<html" not in fragment.text
    if fragment.status_code == 200:
        return
    known = [item for item in items if item[0] in BY_NAME]
    problem = calculator.get(f"{API}/evaluate?{query_string(known)}").json()
    shown = Fields(fragment.text)
    for name, message in expected_messages(problem):
        assert same(message) in same(shown.messages[name]), (name, message)


@given(
    st.fixed_dictionaries(
        {"title": TEXTS, "query": query_items().map(query_string) | TEXTS},
        optional={
            "notes": TEXTS,
            "expires_in_days": st.sampled_from(["", "0", "7", "-1", "1e9", "9999", "99999", "٣", "x"]) | TEXTS,
            "edit_token": TEXTS,
        },
    )
)
@often(120)
def test_a_hostile_form(calculator: TestClient, form: dict[str, str]) -> None:
    answer = calculator.post("/save", data=form, follow_redirects=False)
    assert answer.status_code in (303, 400, 422), answer.text[:300]
    if answer.status_code == 303:
        assert answer.headers["location"].startswith("/c/")
        page = calculator.get(answer.headers["location"])
        assert page.status_code == 200
        assert str(escape(clean_text(form["title"]))) in page.text
    else:
        assert "script>alert" not in answer.text


@pytest.mark.parametrize(
    ("files", "data"),
    [
        ({"query": b"model=llama-3.1-8b"}, {"title": "t"}),
        ({"title": b"t"}, {"query": "model=llama-3.1-8b&hw=h100-sxm-80gb"}),
        ({f"f{n}": b"" for n in range(1_100)}, {}),
    ],
)
def test_files_in_a_form(calculator: TestClient, files: dict[str, bytes], data: dict[str, str]) -> None:
    answer = calculator.post("/save", files=files, data=data, follow_redirects=False)
    assert answer.status_code in (400, 422)


@pytest.mark.parametrize(
    "content", [b"--x\r\n", b"--x\r\nContent-Disposition: form-data\r\n\r\nx", b"%", b"a" * 200_000, b"&" * 200_000]
)
@pytest.mark.parametrize(
    "kind", ["multipart/form-data; boundary=x", "multipart/form-data", "application/x-www-form-urlencoded"]
)
def test_forms_that_are_none(calculator: TestClient, content: bytes, kind: str) -> None:
    answer = calculator.post("/save", content=content, headers={"content-type": kind}, follow_redirects=False)
    assert answer.status_code in (400, 422)
