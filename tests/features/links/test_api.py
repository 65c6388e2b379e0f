"""The life of a link of every kind, as JSON and as a page: made, read, revoked; and who may do what."""

import re
import sqlite3
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from fastapi import FastAPI
from pydantic import BaseModel
from starlette.testclient import TestClient

from app.features.links.api import APIS, Created
from app.features.links.links import KINDS, LinkKind
from app.main import create_app
from app.scenario.scenario import Scenario
from app.settings import Settings
from app.store.links import digest, new_token
from app.web import urls
from tests.factories import scenario_document
from tests.features.asgi import HOST, ask
from tests.features.dom import parse
from tests.features.problems import paths, problem

TITLE = 'Plan <b>"A"</b> & co'
PRIVATE = {"cache-control": "private, no-store", "x-robots-tag": "noindex", "referrer-policy": "no-referrer"}
CALIBRATION = {"name": "Mine", "decode": {"factor": 1.25, "points": 8, "low": 0.9, "high": 1.1}}
SCENARIOS = {"configuration": scenario_document(), "calibration": {**scenario_document(), "calibration": CALIBRATION}}
FORMS = {"configuration": "/save", "snapshot": "/live/snapshots", "calibration": "/calibrations"}
SHOWN: dict[str, type[BaseModel]] = {api.kind.name: api.shown for api in APIS}
Kind = LinkKind[Any]


@pytest.fixture(params=KINDS, ids=lambda kind: kind.name)
def kind(request: pytest.FixtureRequest) -> Kind:
    found: Kind = request.param
    return found


@pytest.fixture
def client(calculator: TestClient) -> TestClient:
    """Somebody who comes for the first time."""
    calculator.cookies.clear()
    return calculator


def body_of(kind: Kind, **more: Any) -> dict[str, Any]:
    scenario = {"scenario": SCENARIOS[kind.name]} if kind.name in SCENARIOS else {}
    return {"title": TITLE, **scenario, **more}


def form_of(kind: Kind, **more: str) -> dict[str, str]:
    scenario = SCENARIOS.get(kind.name)
    items = urls.scenario_items(Scenario.model_validate(scenario)) if scenario else []
    return {"title": TITLE, "query": urls.query_string(items), "expires_in_days": "30", **more}


def made(client: TestClient, kind: Kind, **more: Any) -> dict[str, Any]:
    answer = client.post(kind.api("").rstrip("/"), json=body_of(kind, **more))
    assert answer.status_code == 201, answer.text
    link: dict[str, Any] = answer.json()
    return link


def token(link: dict[str, Any]) -> dict[str, str]:
    return {"X-Edit-Token": link["edit_token"]}


def test_a_link_is_made_with_its_token_address_and_expiry(client: TestClient, kind: Kind) -> None:
    before = datetime.now(UTC)
    answer = client.post(kind.api("").rstrip("/"), json=body_of(kind))
    body = answer.json()
    assert answer.status_code == 201
    assert Created.model_validate(body).model_dump(mode="json").keys() == body.keys()
    assert len(body["slug"]) == len(body["edit_token"]) == 26
    assert body["slug"] != body["edit_token"]
    assert body["url"] == f"http://testserver{kind.page(body['slug'])}"
    assert answer.headers["location"] == kind.api(body["slug"])
    lifetime = datetime.fromisoformat(body["expires_at"]) - before
    assert timedelta(days=90, seconds=-2) < lifetime < timedelta(days=90, seconds=10)
    shown = client.get(answer.headers["location"]).json()
    assert SHOWN[kind.name].model_validate(shown).model_dump(mode="json").keys() == shown.keys()
    assert (shown["title"], shown["expires_at"]) == (TITLE, body["expires_at"])
    assert parse(client.get(kind.page(body["slug"])).text).one("h1").text == TITLE


def test_saving_by_form_shows_the_token_once_in_a_cookie_of_that_page(client: TestClient, kind: Kind) -> None:
    answer = client.post(FORMS[kind.name], data=form_of(kind), follow_redirects=False)
    path = answer.headers["location"]
    assert answer.status_code == 303
    assert re.fullmatch(re.escape(kind.page("")) + r"[a-z0-9]{26}", path)
    cookie, *attributes = answer.headers["set-cookie"].split("; ")
    settings = {attribute.lower() for attribute in attributes}
    assert {"httponly", "samesite=strict", f"path={path}"} <= settings
    assert "secure" not in settings
    secret = cookie.partition("=")[2]
    assert secret not in path
    first, again = client.get(path), client.get(path)
    assert parse(first.text).id("edit-token").text == secret
    assert secret not in again.text
    assert "edit_token" not in client.cookies
    assert parse(again.text).one("meta", name="robots")["content"] == "noindex"
    assert "<b>" not in again.text.partition("<h1")[2].partition("</h1>")[0]
    assert client.post(f"{path}/revoke", data={"edit_token": "x" * 26}).status_code == 403
    revoked = client.post(f"{path}/revoke", data={"edit_token": f" {secret} "})
    assert parse(revoked.text).one("h1").text == "The link is revoked"
    assert client.get(path).status_code == 404
    assert client.post(f"{path}/revoke", data={"edit_token": secret}).status_code == 404


@pytest.mark.parametrize(
    ("changes", "path"),
    [
        ({"title": ""}, "title"),
        ({"title": "\u202e\u200b"}, "title"),
        ({"title": "x" * 121}, "title"),
        ({"expires_in_days": "9999"}, "expires_in_days"),
        ({"expires_in_days": "NaN"}, "expires_in_days"),
        ({"expires_in_days": "0"}, "expires_in_days"),
        ({"query": "x=" + "y" * 40_000}, "query"),
    ],
)
def test_a_form_that_cannot_be_saved_says_where(
    client: TestClient, kind: Kind, changes: dict[str, str], path: str
) -> None:
    answer = client.post(FORMS[kind.name], data=form_of(kind, **changes), follow_redirects=False)
    assert answer.status_code == 422
    assert path in [code.text for code in parse(answer.text).id("main").all("code")]


@pytest.mark.parametrize(
    ("changes", "path"),
    [
        ({"title": ""}, "title"),
        ({"title": "\u202e\u200b"}, "title"),
        ({"title": "\ufb2c" * 120}, "title"),  # three code points each in normal form C
        ({"title": None}, "title"),
        ({"edit_token": "mine"}, "edit_token"),
        ({"slug": "mine"}, "slug"),
        ({"scenario": scenario_document("no-such-model")}, "scenario.model.id"),
        *(({"expires_in_days": days}, "expires_in_days") for days in (0, -1, 3651, 1.5, "7", True, 10**30)),
    ],
)
def test_a_refusal_stands_at_a_path_of_what_was_sent(
    client: TestClient, kind: Kind, changes: dict[str, Any], path: str
) -> None:
    if kind.name == "calibration" and "scenario" in changes:
        changes = {"scenario": {**changes["scenario"], "calibration": CALIBRATION}}
    assert path in paths(client.post(kind.api("").rstrip("/"), json=body_of(kind, **changes)))


@pytest.mark.parametrize(
    "wrong",
    [lambda link: link["slug"], lambda link: new_token(), lambda link: "", lambda link: link["edit_token"] + "0"],
    ids=["slug", "made up", "empty", "long"],
)
def test_without_its_token_a_link_is_read_only(
    client: TestClient, kind: Kind, wrong: Callable[[dict[str, Any]], str]
) -> None:
    link, other = made(client, kind), made(client, kind)
    address = kind.api(link["slug"])
    before = client.get(address).json()
    for offered in (wrong(link), other["edit_token"]):
        problem(client.delete(address, headers={"X-Edit-Token": offered}), 403)
        if kind.is_editable:
            problem(client.put(address, headers={"X-Edit-Token": offered}, json=body_of(kind)), 403)
    assert paths(client.delete(address)) == ["X-Edit-Token"]
    assert paths(client.delete(f"{address}?X-Edit-Token={link['edit_token']}")) == ["X-Edit-Token"]
    assert client.get(address).json() == before


def test_the_token_revokes_the_link_and_every_answer_is_private(client: TestClient, kind: Kind) -> None:
    link = made(client, kind)
    address = kind.api(link["slug"])
    answers = [client.get(address), client.get(kind.page(link["slug"])), client.delete(address, headers=token(link))]
    assert (answers[-1].status_code, answers[-1].content) == (204, b"")
    for answer in answers:
        assert {name: answer.headers.get(name) for name in PRIVATE} == PRIVATE
    for answer in (client.get(address), client.delete(address, headers=token(link))):
        assert problem(answer, 404)["detail"] == kind.not_found
    assert kind.not_found in client.get(kind.page(link["slug"])).text


def test_there_is_no_list_of_links(client: TestClient, kind: Kind) -> None:
    problem(client.get(kind.api("").rstrip("/")), 405)
    problem(client.get(kind.api("1")), 404)
    if not kind.is_editable:
        problem(client.put(kind.api(new_token()), json={}), 405)


def test_an_expired_link_is_gone_and_can_be_revoked(app: FastAPI, settings: Settings, kind: Kind) -> None:
    with TestClient(app) as client:
        link = made(client, kind)
        table = "configurations" if kind.name == "configuration" else "shared_documents"
        with closing(sqlite3.connect(settings.database_path)) as connection, connection:
            set_expiry = f"UPDATE {table} SET expires_at = '2026-01-01T00:00:00.000000Z' WHERE slug_sha256 = ?"
            assert connection.execute(set_expiry, (digest(link["slug"]),)).rowcount == 1
        address = kind.api(link["slug"])
        assert "2026-01-01" in problem(client.get(address), 410)["detail"]
        page = client.get(kind.page(link["slug"]))
        assert page.status_code == 410
        assert "2026-01-01" in page.text
        assert "Plan" not in page.text
        assert client.delete(address, headers=token(link)).status_code == 204
        problem(client.get(address), 404)


def test_only_the_operator_allows_links_without_expiry(settings: Settings, kind: Kind) -> None:
    generous = settings.model_copy(update={"allow_unexpiring_links": True, "public_url": "https://roof.example/"})
    with TestClient(create_app(generous)) as client:
        link = made(client, kind, expires_in_days=0)
        assert link["expires_at"] is None
        assert link["url"] == f"https://roof.example{kind.page(link['slug'])}"
        assert made(client, kind)["expires_at"] is not None


def test_a_stranger_cannot_tell_one_missing_link_from_another(calculator: TestClient, kind: Kind) -> None:
    app: Any = calculator.app
    link, alive = made(calculator, kind), made(calculator, kind)["slug"]
    assert calculator.delete(kind.api(link["slug"]), headers=token(link)).status_code == 204
    other = next(each for each in KINDS if each.name != kind.name)
    missing = {
        "revoked": link["slug"],
        "wrong": new_token(),
        "of another kind": made(calculator, other)["slug"],
        "upper case": alive.upper(),
        "one letter short": alive[:-1],
        "one letter more": f"{alive}0",
        "dot": "%2e",
        "dots": "%2e%2e",
        "literal": ":slug",
        "braces": "%7Bslug%7D",
        "NUL": "%00",
        "NUL behind a living one": f"{alive}%00",
        "newline behind a living one": f"{alive}%0a",
        "space behind a living one": f"{alive}%20",
        "wildcard": "%25",
        "quote": "%27%20OR%20%271%27=%271",
        "number": "1",
        "not UTF-8": "%ff%fe",
        "full-width": "%EF%BC%90" * 26,
        "megabyte": "a" * 1_000_000,
    }
    api = {name: ask(app, "GET", kind.api(wrong)) for name, wrong in missing.items()}
    pages = {name: ask(app, "GET", kind.page(wrong)) for name, wrong in missing.items()}
    for answers in (api, pages):
        assert {name: answer.status for name, answer in answers.items()} == dict.fromkeys(missing, 404)
        assert len({answer.body for answer in answers.values()}) == 1
    deleting = {
        name: ask(app, "DELETE", kind.api(wrong), headers=(HOST, ("x-edit-token", new_token())))
        for name, wrong in missing.items()
    }
    assert {answer.body for answer in deleting.values()} == {api["wrong"].body}
    assert calculator.get(kind.api(alive)).status_code == 200


def test_operations_have_stable_names_and_the_token_is_a_scheme(calculator: TestClient, kind: Kind) -> None:
    document = calculator.get(f"{urls.API}/openapi.json").json()
    one, many = kind.api("{slug}"), kind.api("").rstrip("/")
    operations = {**document["paths"][one], "post": document["paths"][many]["post"]}
    verbs = {"post": "create", "get": "read", "put": "replace", "delete": "revoke"}
    if not kind.is_editable:
        verbs.pop("put")
    assert {method: each["operationId"] for method, each in operations.items()} == {
        method: f"{verb}_{kind.name}" for method, verb in verbs.items()
    }
    for method, each in operations.items():
        assert each.get("security") == ([{"EditToken": []}] if method in ("put", "delete") else None)
        assert [parameter["name"] for parameter in each.get("parameters", ())] == ["slug"] * (method != "post")
        assert ("403" in each["responses"]) == (method in ("put", "delete"))
        assert "503" in each["responses"]
    scheme = document["components"]["securitySchemes"]["EditToken"]
    assert (scheme["type"], scheme["in"], scheme["name"]) == ("apiKey", "header", "X-Edit-Token")
