"""Links that are not what they were: expired, revoked, never there, or of an earlier day."""

import json
import sqlite3
from contextlib import closing
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import pytest
from fastapi import FastAPI
from starlette.testclient import TestClient

from app.settings import Settings
from app.store.links import Links, new_token
from app.web.urls import API
from tests.factories import scenario_document
from tests.features.problems import problem

LINKS = f"{API}/configurations"


def rewrite(settings: Settings, **columns: Any) -> None:
    """Every row of the file, as an earlier release could have left it."""
    assignments = ", ".join(f"{name} = ?" for name in columns)
    with closing(sqlite3.connect(settings.database_path)) as connection, connection:
        connection.execute(f"UPDATE configurations SET {assignments}", list(columns.values()))


def stored(settings: Settings, column: str) -> Any:
    with closing(sqlite3.connect(settings.database_path)) as connection:
        return connection.execute(f"SELECT {column} FROM configurations").fetchone()[0]


@pytest.fixture
def later(monkeypatch: pytest.MonkeyPatch, link: dict[str, Any]) -> dict[str, Any]:
    """A link, ninety-one days after it was made."""
    ahead = partial(Links, now=lambda: datetime.now(UTC) + timedelta(days=91))
    monkeypatch.setattr("app.features.services.Links", ahead)
    return link


def test_an_expired_link_is_gone(client: TestClient, later: dict[str, Any]) -> None:
    address, headers = f"{LINKS}/{later['slug']}", {"X-Edit-Token": later["edit_token"]}
    body = problem(client.get(address), 410)
    assert later["expires_at"][:10] in body["detail"]
    save = {"title": "t", "scenario": scenario_document(), "expires_in_days": 365}
    replacing = client.put(address, headers=headers, json=save)
    assert problem(replacing, 410) == body


def test_a_missing_link_is_no_error_of_the_server(
    app: FastAPI, client: TestClient, caplog: pytest.LogCaptureFixture
) -> None:
    strict = TestClient(app, raise_server_exceptions=True)
    assert strict.get(f"{LINKS}/{new_token()}").status_code == 404
    assert strict.get(f"/c/{new_token()}").status_code == 404
    assert "unforeseen" not in caplog.text


def test_a_number_that_has_changed_is_shown_then_and_now(
    client: TestClient, link: dict[str, Any], settings: Settings
) -> None:
    then = json.loads(stored(settings, "headline"))
    now = dict(then)
    then["rule_of_thumb.decode_step_s"] *= 2
    then["memory.kv_pool_tokens"] += 1
    then["a.number.of.old"] = 7.5
    rewrite(settings, headline=json.dumps(then), formula_version="0.0-old", catalog_version="older")
    body = client.get(f"{LINKS}/{link['slug']}").json()
    assert body["then"] == {"formula_version": "0.0-old", "catalog_version": "older", "numbers": then}
    changed = {difference["id"]: (difference["then"], difference["now"]) for difference in body["changed"]}
    assert changed == {
        "rule_of_thumb.decode_step_s": (
            then["rule_of_thumb.decode_step_s"],
            pytest.approx(now["rule_of_thumb.decode_step_s"]),
        ),
        "memory.kv_pool_tokens": (then["memory.kv_pool_tokens"], now["memory.kv_pool_tokens"]),
        "a.number.of.old": (7.5, None),
    }
    labelled = {difference["id"]: (difference["label"], difference["unit"]) for difference in body["changed"]}
    assert labelled["rule_of_thumb.decode_step_s"][1] == "s"
    page = client.get(f"/c/{link['slug']}").text
    assert "Then and now" in page
    assert "0.0-old" in page
    assert "a.number.of.old" in page


def test_a_change_in_the_last_digit_is_no_change(client: TestClient, link: dict[str, Any], settings: Settings) -> None:
    then = {key: value * (1 + 1e-12) for key, value in json.loads(stored(settings, "headline")).items()}
    rewrite(settings, headline=json.dumps(then))
    assert client.get(f"{LINKS}/{link['slug']}").json()["changed"] == []


def test_another_formula_version_alone_is_told(client: TestClient, link: dict[str, Any], settings: Settings) -> None:
    rewrite(settings, formula_version="0.0-old")
    body = client.get(f"{LINKS}/{link['slug']}").json()
    assert body["then"]["formula_version"] == "0.0-old" != body["evaluation"]["formula_version"]
    assert body["changed"] == []


@pytest.mark.parametrize(
    "change",
    [
        {"model": {"id": "forgotten-model", "name": None, "config": None}},
        {"hardware": {"id": "forgotten-card", "custom": None, "count": 1}},
        {"schema_version": 99},
        {"field_of_a_later_release": 1},
    ],
    ids=lambda change: next(iter(change)),
)
def test_a_scenario_that_cannot_be_answered_any_more_still_shows_what_was(
    client: TestClient, link: dict[str, Any], settings: Settings, change: dict[str, Any]
) -> None:
    scenario = json.loads(stored(settings, "scenario")) | change
    rewrite(settings, scenario=json.dumps(scenario))
    response = client.get(f"{LINKS}/{link['slug']}")
    body = response.json()
    assert response.status_code == 200
    assert body["evaluation"] is None
    assert body["scenario"] == scenario
    assert {difference["id"] for difference in body["changed"]} == set(body["then"]["numbers"])
    assert all(difference["now"] is None for difference in body["changed"])
    page = client.get(f"/c/{link['slug']}")
    assert page.status_code == 200
    assert "can no longer be answered" in page.text
    duplicate = client.post(f"/c/{link['slug']}/duplicate", follow_redirects=False)
    assert duplicate.status_code == 422


def test_an_old_link_does_not_follow_a_default(client: TestClient, link: dict[str, Any]) -> None:
    scenario = client.get(f"{LINKS}/{link['slug']}").json()["scenario"]
    assert scenario["engine"]["memory_utilization"] == 0.9
    assert scenario["precision"]["compute"] == "bf16"
    assert scenario["workload"]["concurrency"] == 64
