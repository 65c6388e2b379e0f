"""A saved link's life by API: made, read, replaced, revoked; and who may do what."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from app.api.links import Configuration, Created
from app.main import create_app
from app.settings import Settings
from app.store.links import new_token
from app.web.urls import API
from tests.api.problems import paths, problem
from tests.factories import scenario_document

LINKS = f"{API}/configurations"
PRIVATE = {"cache-control": "private, no-store", "x-robots-tag": "noindex", "referrer-policy": "no-referrer"}


def save_request(title: str = "Another", **more: Any) -> dict[str, Any]:
    return {"title": title, "scenario": scenario_document(workload={"concurrency": 3}), **more}


def token(link: dict[str, Any]) -> dict[str, str]:
    return {"X-Edit-Token": link["edit_token"]}


def test_a_link_is_made_with_its_token_address_and_expiry(client: TestClient) -> None:
    before = datetime.now(UTC)
    made = client.post(LINKS, json=save_request())
    body = made.json()
    assert made.status_code == 201
    assert Created.model_validate(body).model_dump(mode="json").keys() == body.keys()
    assert len(body["slug"]) == len(body["edit_token"]) == 26
    assert body["slug"] != body["edit_token"]
    assert body["url"] == f"http://testserver/c/{body['slug']}"
    assert made.headers["location"] == f"{LINKS}/{body['slug']}"
    lifetime = datetime.fromisoformat(body["expires_at"]) - before
    assert timedelta(days=90, seconds=-2) < lifetime < timedelta(days=90, seconds=10)
    assert client.get(made.headers["location"]).status_code == 200
    assert client.get(f"/c/{body['slug']}").status_code == 200


def test_the_operator_names_the_public_address(tmp_path: Path, assets_dir: Path) -> None:
    settings = Settings(data_dir=tmp_path, assets_dir=assets_dir, public_url="https://roof.example/")
    with TestClient(create_app(settings)) as client:
        body = client.post(LINKS, json=save_request()).json()
    assert body["url"] == f"https://roof.example/c/{body['slug']}"


def test_a_link_shows_what_was_saved_and_todays_numbers(client: TestClient, link: dict[str, Any]) -> None:
    shown = client.get(f"{LINKS}/{link['slug']}")
    body = shown.json()
    assert Configuration.model_validate(body).model_dump(mode="json").keys() == body.keys()
    assert (body["slug"], body["title"], body["notes"]) == (link["slug"], "Eight billion", "on one")
    today = client.post(f"{API}/evaluate", json=scenario_document()).json()
    assert body["evaluation"] == today
    assert body["scenario"] == today["scenario"]
    assert body["changed"] == []
    assert body["then"] == {
        "formula_version": today["formula_version"],
        "catalog_version": today["catalog_version"],
        "numbers": {explanation["id"]: explanation["value"] for explanation in today["explanations"]},
    }
    assert body["created_at"] == body["updated_at"]


def test_the_token_replaces_what_the_link_shows(client: TestClient, link: dict[str, Any]) -> None:
    address = f"{LINKS}/{link['slug']}"
    replaced = client.put(address, headers=token(link), json=save_request("New", expires_in_days=3))
    assert replaced.status_code == 200
    body = client.get(address).json()
    assert body == replaced.json()
    assert (body["title"], body["notes"]) == ("New", "")
    assert body["scenario"]["workload"]["concurrency"] == 3
    assert datetime.fromisoformat(body["expires_at"]) - datetime.now(UTC) < timedelta(days=3)


def test_the_token_revokes_the_link(client: TestClient, link: dict[str, Any]) -> None:
    address = f"{LINKS}/{link['slug']}"
    revoked = client.delete(address, headers=token(link))
    assert (revoked.status_code, revoked.content) == (204, b"")
    for answer in (
        client.get(address),
        client.put(address, headers=token(link), json=save_request()),
        client.delete(address, headers=token(link)),
    ):
        problem(answer, 404)
    assert client.get(f"/c/{link['slug']}").status_code == 404


@pytest.mark.parametrize("wrong", ["slug", "other link", "upper case", "made up", "empty", "long"])
def test_without_its_token_a_link_is_read_only(client: TestClient, link: dict[str, Any], wrong: str) -> None:
    address = f"{LINKS}/{link['slug']}"
    before = client.get(address).json()
    other = client.post(LINKS, json=save_request()).json()
    offered = {
        "slug": link["slug"],
        "other link": other["edit_token"],
        "upper case": link["edit_token"].upper() + "",
        "made up": new_token(),
        "empty": "",
        "long": link["edit_token"] + "0",
    }[wrong]
    headers = {"X-Edit-Token": offered}
    problem(client.put(address, headers=headers, json=save_request()), 403)
    problem(client.delete(address, headers=headers), 403)
    assert client.get(address).json() == before


def test_no_token_is_asked_for(client: TestClient, link: dict[str, Any]) -> None:
    address = f"{LINKS}/{link['slug']}"
    assert paths(client.put(address, json=save_request())) == ["X-Edit-Token"]
    assert paths(client.delete(address)) == ["X-Edit-Token"]
    in_query = f"{address}?X-Edit-Token={link['edit_token']}&edit_token={link['edit_token']}"
    assert paths(client.delete(in_query)) == ["X-Edit-Token"]
    assert client.get(address).status_code == 200


def test_there_is_no_list_of_links(client: TestClient, link: dict[str, Any]) -> None:
    problem(client.get(LINKS), 405)
    problem(client.get(f"{LINKS}/1"), 404)
    assert client.get("/c/").status_code == client.get("/c").status_code == 404
    assert link["slug"] not in client.get("/").text


def test_every_answer_about_a_link_is_private(client: TestClient, link: dict[str, Any]) -> None:
    address = f"{LINKS}/{link['slug']}"
    for answer in (
        client.post(LINKS, json=save_request()),
        client.get(address),
        client.put(address, headers=token(link), json=save_request()),
        client.get(f"/c/{link['slug']}"),
        client.delete(address, headers=token(link)),
    ):
        assert {name: answer.headers.get(name) for name in PRIVATE} == PRIVATE, answer.request.method


@pytest.mark.parametrize("days", [1, 3650])
def test_expiry_is_chosen_in_days(client: TestClient, days: int) -> None:
    body = client.post(LINKS, json=save_request(expires_in_days=days)).json()
    lifetime = datetime.fromisoformat(body["expires_at"]) - datetime.now(UTC)
    assert timedelta(days=days, seconds=-10) < lifetime <= timedelta(days=days)


@pytest.mark.parametrize("days", [-1, 3651, 1.5, "7", True, 10**30])
def test_an_impossible_expiry_is_refused(client: TestClient, days: Any) -> None:
    assert paths(client.post(LINKS, json=save_request(expires_in_days=days))) == ["expires_in_days"]


def test_only_the_operator_allows_links_without_expiry(client: TestClient, tmp_path: Path, assets_dir: Path) -> None:
    assert paths(client.post(LINKS, json=save_request(expires_in_days=0))) == ["expires_in_days"]
    settings = Settings(data_dir=tmp_path / "open", assets_dir=assets_dir, allow_unexpiring_links=True)
    with TestClient(create_app(settings)) as generous:
        assert generous.post(LINKS, json=save_request(expires_in_days=0)).json()["expires_at"] is None
        assert generous.post(LINKS, json=save_request()).json()["expires_at"] is not None


@pytest.mark.parametrize(
    ("changes", "path"),
    [
        ({"title": ""}, "title"),
        ({"title": "\u202e\u200b"}, "title"),
        ({"title": "t" * 121}, "title"),
        ({"title": "\ufb2c" * 120}, "title"),  # three code points each in normal form C
        ({"title": None}, "title"),
        ({"notes": "n" * 4_001}, "notes"),
        ({"notes": "\ufb2c" * 4_000}, "notes"),
        ({"scenario": {}}, "scenario.model"),
        ({"scenario": scenario_document("No Id")}, "scenario.model.id"),
        ({"scenario": scenario_document("no-such-model")}, "scenario.model.id"),
        ({"edit_token": "mine"}, "edit_token"),
        ({"slug": "mine"}, "slug"),
    ],
)
def test_a_refusal_stands_at_a_path_of_what_was_sent(client: TestClient, changes: dict[str, Any], path: str) -> None:
    assert path in paths(client.post(LINKS, json=save_request() | changes))


def test_texts_are_cleaned_and_kept(client: TestClient) -> None:
    made = client.post(LINKS, json=save_request("  Cafe\u0301 \u202egpj.exe\x00 ", notes="one\r\ntwo\x07\n"))
    body = client.get(f"{LINKS}/{made.json()['slug']}").json()
    assert body["title"] == "Café gpj.exe"
    assert body["notes"] == "one\ntwo"
