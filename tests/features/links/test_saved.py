"""Saved links as pages: made from the workbench, shown to whoever has the address, changed with the token."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

import pytest
from fastapi import FastAPI
from starlette.testclient import TestClient

from app.calc.quantity import quantity
from app.features.services import Services
from app.main import create_app
from app.settings import Settings
from app.store.links import Links, Saved
from tests.features.asking import address, json_of, page, twin_of
from tests.features.dom import Node, parse

TITLE, NOTES = 'Plan <b>"A"</b> & co', "First line\n<script>alert(1)</script>"
SIX = ("memory", "room", "ttft", "tpot", "latency", "throughput")
NO_SUCH = "a" * 26


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory, assets_dir: Path) -> FastAPI:
    """One app for all: a link is nobody's but of whoever has its address."""
    return create_app(Settings(data_dir=tmp_path_factory.mktemp("saved"), assets_dir=assets_dir))


@pytest.fixture(scope="module")
def started(app: FastAPI) -> Iterator[TestClient]:
    with TestClient(app, raise_server_exceptions=False) as started:
        yield started


@pytest.fixture
def client(started: TestClient) -> TestClient:
    """Somebody who comes for the first time."""
    started.cookies.clear()
    return started


class Link(NamedTuple):
    path: str
    edit_token: str
    first: Node


def query_of(client: TestClient, **changes: str) -> str:
    return page(client, address(changes)).id("save").one("input", name="query")["value"]


def save(client: TestClient, **changes: str) -> Link:
    """A new link, opened for the first time."""
    sent = {"query": query_of(client), "title": TITLE, "notes": NOTES, "expires_in_days": "30"} | changes
    made = client.post("/save", data=sent, follow_redirects=False)
    assert made.status_code == 303, made.text
    path = made.headers["location"]
    first = page(client, path)
    return Link(path, first.id("edit-token").text, first)


def shown_numbers(tree: Node) -> Mapping[str, str]:
    return {id_: tree.id(f"metric-{id_}").text for id_ in SIX}


def error_text(client: TestClient, path: str, status: int) -> str:
    tree = page(client, path, status)
    assert not [n for n in tree if n.attributes.get("id", "").startswith("metric-")]
    return tree.id("main").text


def test_the_cookie_is_for_tls_alone_behind_tls(settings: Settings) -> None:
    with TestClient(create_app(settings), base_url="https://testserver") as client:
        made = client.post("/save", data={"query": query_of(client), "title": "x"}, follow_redirects=False)
        assert "secure" in made.headers["set-cookie"].lower()


def test_title_and_notes_are_shown_as_text(client: TestClient) -> None:
    link = save(client)
    raw = client.get(link.path).text
    assert "<script>alert" not in raw
    assert "<b>&#34;A" not in raw
    tree = parse(raw)
    assert tree.one("h1").text == TITLE
    assert tree.one("title").text == f"{TITLE} · Tokenroof"
    assert NOTES in tree.id("main").raw
    assert tree.id("edit-name")["value"] == TITLE
    assert tree.id("edit-notes").raw == NOTES


@pytest.mark.parametrize("changes", [{}, {"model": "llama-3.1-70b", "hw": "rtx-4090"}, {"batch": "", "units": "gib"}])
def test_it_shows_the_numbers_that_were_saved(client: TestClient, changes: dict[str, str]) -> None:
    before = page(client, address({k: v for k, v in changes.items() if k != "units"}))
    link = save(client, query=query_of(client, **changes))
    assert shown_numbers(link.first) == shown_numbers(before)
    assert "same numbers" in link.first.text
    twin = json_of(client, twin_of(link.first))
    assert twin["evaluation"]["serving"] == json_of(client, twin_of(before))["serving"]
    back = next(a["href"] for a in link.first.all("a") if a.text == "Open in the workbench")
    assert shown_numbers(page(client, back)) == shown_numbers(before)


def test_units_of_a_saved_page(client: TestClient) -> None:
    link = save(client)
    group = link.first.one(role="group", aria_label="Units of sizes")
    binary = page(client, group.all("a")[1]["href"])
    assert "GiB" in binary.id("metric-memory").text
    tpot = [tree.id("metric-tpot").text.partition("Working")[0] for tree in (binary, link.first)]
    assert tpot[0] == tpot[1]


@pytest.mark.parametrize(
    ("changes", "path"),
    [
        ({"notes": "x" * 4001}, "notes"),
        ({"query": "model=none&hw=h100-sxm-80gb"}, "model.id"),
        ({"query": ""}, "model"),
    ],
)
def test_what_cannot_be_saved_is_told(client: TestClient, changes: dict[str, str], path: str) -> None:
    sent = {"query": query_of(client), "title": TITLE, "expires_in_days": "30"} | changes
    answer = client.post("/save", data=sent, follow_redirects=False)
    assert answer.status_code == 422
    assert path in [code.text for code in parse(answer.text).id("main").all("code")]


def test_words_are_changed_with_the_token(client: TestClient) -> None:
    link = save(client)
    form = link.first.one("form", action=f"{link.path}/edit")
    assert {"title", "notes", "expires_in_days", "edit_token"} <= {n["name"] for n in form if "name" in n.attributes}
    sent = {"title": "New", "notes": "", "expires_in_days": "7", "edit_token": f" {link.edit_token} "}
    changed = client.post(f"{link.path}/edit", data=sent, follow_redirects=False)
    assert (changed.status_code, changed.headers["location"]) == (303, link.path)
    tree = page(client, link.path)
    assert tree.one("h1").text == "New"
    assert "alert" not in tree.id("main").raw
    assert shown_numbers(tree) == shown_numbers(link.first)
    assert f"{datetime.now(UTC) + timedelta(days=7):%Y-%m-%d}" in tree.text


@pytest.mark.parametrize("token", ["", "wrong", "a" * 26, "\u00e9", NOTES])
@pytest.mark.parametrize("action", ["edit", "revoke"])
def test_a_wrong_token_changes_nothing(client: TestClient, token: str, action: str) -> None:
    link = save(client)
    sent = {"title": "Stolen", "notes": "", "expires_in_days": "7", "edit_token": token}
    answer = client.post(f"{link.path}/{action}", data=sent, follow_redirects=False)
    assert answer.status_code == 403
    assert "token" in parse(answer.text).id("main").text
    assert page(client, link.path).one("h1").text == TITLE


def test_anothers_token_changes_nothing(client: TestClient) -> None:
    mine, theirs = save(client), save(client)
    sent = {"title": "Stolen", "edit_token": mine.edit_token, "expires_in_days": "7"}
    assert client.post(f"{theirs.path}/edit", data=sent).status_code == 403


def test_duplicating_makes_a_link_of_ones_own(client: TestClient) -> None:
    link = save(client)
    made = client.post(f"{link.path}/duplicate", follow_redirects=False)
    assert made.status_code == 303
    path = made.headers["location"]
    assert path != link.path
    copy = page(client, path)
    assert copy.one("h1").text == f"Copy of {TITLE}"
    assert shown_numbers(copy) == shown_numbers(link.first)
    token = copy.id("edit-token").text
    assert token != link.edit_token
    assert client.post(f"{path}/revoke", data={"edit_token": link.edit_token}).status_code == 403
    assert client.post(f"{path}/revoke", data={"edit_token": token}).status_code == 200
    assert page(client, link.path).one("h1").text == TITLE


def test_duplicating_the_longest_title_keeps_it_long_enough(client: TestClient) -> None:
    link = save(client, title="x" * 120)
    made = client.post(f"{link.path}/duplicate", follow_redirects=False)
    assert len(page(client, made.headers["location"]).one("h1").text) == 120


@pytest.mark.parametrize("slug", [NO_SUCH, "x", "%00", "é", "a" * 200])
def test_a_wrong_address_is_a_page_that_says_so(client: TestClient, slug: str) -> None:
    assert "no saved configuration" in error_text(client, f"/c/{slug}", 404)


@pytest.mark.parametrize("action", ["edit", "revoke", "duplicate"])
def test_nothing_can_be_done_to_a_link_that_is_not(client: TestClient, action: str) -> None:
    sent = {"title": "x", "edit_token": "a" * 26, "expires_in_days": "7"}
    assert client.post(f"/c/{NO_SUCH}/{action}", data=sent).status_code == 404


@pytest.fixture
def store(app: FastAPI) -> Links:
    services: Services = app.state.services
    return services.links("configuration")


def stored(store: Links, link: Link) -> Saved:
    found = store.get(link.path.rpartition("/")[2])
    assert isinstance(found, Saved)
    return found


def test_an_expired_link_says_when(client: TestClient, app: FastAPI, store: Links) -> None:
    link = save(client)
    past = datetime.now(UTC) - timedelta(days=3)
    services: Services = app.state.services
    assert services.engine is not None
    soon = replace(stored(store, link), expires_at=past + timedelta(days=1))
    Links(services.engine, "configuration", now=lambda: past).replace(
        link.path.rpartition("/")[2], link.edit_token, soon
    )
    assert f"expired on {past + timedelta(days=1):%Y-%m-%d}" in error_text(client, link.path, 410)
    assert client.get(twin_of(link.first)).status_code == 410
    assert client.post(f"{link.path}/duplicate").status_code == 410


def test_then_and_now(client: TestClient, store: Links) -> None:
    """What the link remembers, beside what today's formulas give."""
    link = save(client)
    saved = stored(store, link)
    then = {**saved.document["headline"], "serving.tpot_s.ceiling": 0.0123, "rule_of_thumb.gone": 7}
    contents = replace(saved, document={**saved.document, "headline": then}, formula_version="0.9")
    store.replace(link.path.rpartition("/")[2], link.edit_token, contents)
    tree = page(client, link.path)
    region = tree.one(role="region", aria_label="Then and now, table")
    rows = {row["Number"]: row for row in region.table()}
    today = json_of(client, twin_of(tree))["evaluation"]
    assert len(rows) == 2
    changed = rows.pop(next(label for label in rows if label != "rule_of_thumb.gone"))
    assert changed["Then"] == "12.3 ms"
    assert changed["Now"] == quantity(today["serving"]["tpot_s"]["ceiling"], "s")
    assert (rows["rule_of_thumb.gone"]["Then"], rows["rule_of_thumb.gone"]["Now"]) == ("7", "–")
    assert "Saved with formulas 0.9" in tree.id("main").text
    assert "same numbers" not in tree.text


def test_a_scenario_that_is_no_longer_answered(client: TestClient, store: Links) -> None:
    link = save(client)
    saved = stored(store, link)
    scenario = json.loads(json.dumps(saved.document["scenario"]))
    scenario["hardware"]["id"] = "card-of-old"
    contents = replace(saved, document={**saved.document, "scenario": scenario})
    store.replace(link.path.rpartition("/")[2], link.edit_token, contents)
    tree = page(client, link.path)
    assert "can no longer be answered" in tree.text
    assert "card-of-old" in tree.text
    assert not tree.all(id="metric-memory")
    assert tree.one(role="region", aria_label="Then and now, table").table()
    assert client.post(f"{link.path}/duplicate").status_code == 422


def test_without_a_database_the_workbench_works_and_saving_says_why_not(
    client: TestClient, app: FastAPI, monkeypatch: pytest.MonkeyPatch
) -> None:
    query = query_of(client)
    monkeypatch.setattr(app.state, "services", replace(app.state.services, engine=None, store_fault="broken"))
    assert page(client, "/").all(id="metric-memory")
    answer = client.post("/save", data={"query": query, "title": "x"})
    assert answer.status_code == 503
    assert "not available" in parse(answer.text).id("main").text
