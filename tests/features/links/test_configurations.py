"""What is special to a saved configuration by API: today's numbers, replacing, notes."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from starlette.testclient import TestClient

from app.features.links.api import Configuration
from app.web.urls import API
from tests.factories import scenario_document
from tests.features.problems import paths

LINKS = f"{API}/configurations"
PRIVATE = {"cache-control": "private, no-store", "x-robots-tag": "noindex", "referrer-policy": "no-referrer"}


def save_request(title: str = "Another", **more: Any) -> dict[str, Any]:
    return {"title": title, "scenario": scenario_document(workload={"concurrency": 3}), **more}


def token(link: dict[str, Any]) -> dict[str, str]:
    return {"X-Edit-Token": link["edit_token"]}


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
    assert replaced.headers["cache-control"] == "private, no-store"
    assert body["scenario"]["workload"]["concurrency"] == 3
    assert datetime.fromisoformat(body["expires_at"]) - datetime.now(UTC) < timedelta(days=3)


def test_no_token_is_asked_for(client: TestClient, link: dict[str, Any]) -> None:
    address = f"{LINKS}/{link['slug']}"
    assert paths(client.put(address, json=save_request())) == ["X-Edit-Token"]
    in_query = f"{address}?X-Edit-Token={link['edit_token']}&edit_token={link['edit_token']}"
    assert paths(client.put(in_query, json=save_request())) == ["X-Edit-Token"]
    assert client.get(address).status_code == 200


@pytest.mark.parametrize("days", [1, 3650])
def test_expiry_is_chosen_in_days(client: TestClient, days: int) -> None:
    body = client.post(LINKS, json=save_request(expires_in_days=days)).json()
    lifetime = datetime.fromisoformat(body["expires_at"]) - datetime.now(UTC)
    assert timedelta(days=days, seconds=-10) < lifetime <= timedelta(days=days)


@pytest.mark.parametrize(
    ("changes", "path"),
    [
        ({"notes": "n" * 4_001}, "notes"),
        ({"notes": "\ufb2c" * 4_000}, "notes"),
        ({"scenario": {}}, "scenario.model"),
        ({"scenario": scenario_document("No Id")}, "scenario.model.id"),
    ],
)
def test_a_refusal_stands_at_a_path_of_what_was_sent(client: TestClient, changes: dict[str, Any], path: str) -> None:
    assert path in paths(client.post(LINKS, json=save_request() | changes))


def test_texts_are_cleaned_and_kept(client: TestClient) -> None:
    made = client.post(LINKS, json=save_request("  Cafe\u0301 \u202egpj.exe\x00 ", notes="one\r\ntwo\x07\n"))
    body = client.get(f"{LINKS}/{made.json()['slug']}").json()
    assert body["title"] == "Café gpj.exe"
    assert body["notes"] == "one\ntwo"
