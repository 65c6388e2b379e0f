"""What a link gives away: a canary in every free text shows only where it is meant to, and secrets nowhere."""

import logging
import sqlite3
from contextlib import closing
from typing import Any

import pytest
from starlette.testclient import TestClient

from app.settings import Settings
from app.store.links import digest, new_token
from app.web.urls import API
from tests.factories import custom_card, scenario_document

LINKS = f"{API}/configurations"
CANARIES = {
    "title": "canary-title",
    "notes": "canary-notes",
    "model": "canary-model",
    "config": "canary-config",
    "card": "canary-card",
    "version": "canary-version",
}
CONFIG = {
    "model_type": "llama",
    "hidden_size": 64,
    "num_attention_heads": 4,
    "intermediate_size": 128,
    "vocab_size": 100,
    "num_hidden_layers": 2,
    "_name_or_path": CANARIES["config"],
}


@pytest.fixture
def canary(client: TestClient) -> dict[str, Any]:
    scenario = scenario_document(
        hardware={"custom": custom_card(name=CANARIES["card"])}, engine={"version": CANARIES["version"]}
    )
    scenario["model"] = {"name": CANARIES["model"], "config": CONFIG}
    posted = {"title": CANARIES["title"], "notes": CANARIES["notes"], "scenario": scenario}
    made = client.post(LINKS, json=posted)
    assert made.status_code == 201, made.text
    assert not [name for name, text in CANARIES.items() if text in made.text]
    link: dict[str, Any] = made.json()
    return link


def test_the_link_shows_its_texts_to_whoever_has_it(client: TestClient, canary: dict[str, Any]) -> None:
    for address in (f"{LINKS}/{canary['slug']}", f"/c/{canary['slug']}"):
        shown = client.get(address).text
        assert not [name for name, text in CANARIES.items() if text not in shown], address


def test_nothing_of_a_link_is_anywhere_else(client: TestClient, canary: dict[str, Any]) -> None:
    client.get(f"{LINKS}/{canary['slug']}")
    client.get(f"/c/{canary['slug']}")
    elsewhere = [
        "/",
        "/docs",
        "/live",
        "/learn",
        "/readyz",
        "/healthz",
        f"{API}/models",
        f"{API}/hardware",
        f"{API}/engines",
        f"{API}/probes",
        f"{API}/openapi.json",
        f"{API}/evaluate?model=llama-3.1-8b&hw=h100-sxm-80gb",
        "/export/roofline.csv?model=llama-3.1-8b&hw=h100-sxm-80gb",
        LINKS,
        f"{LINKS}/{new_token()}",
        f"/c/{new_token()}",
    ]
    secrets = [*CANARIES.values(), canary["slug"], canary["edit_token"]]
    for address in elsewhere:
        answer = client.get(address)
        told = answer.text + str(answer.headers)
        assert not [secret for secret in secrets if secret in told], address


def test_a_revoked_link_leaves_nothing(client: TestClient, canary: dict[str, Any], settings: Settings) -> None:
    client.delete(f"{LINKS}/{canary['slug']}", headers={"X-Edit-Token": canary["edit_token"]})
    with closing(sqlite3.connect(settings.database_path)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    on_disk = b"".join(file.read_bytes() for file in settings.data_dir.iterdir() if file.is_file())
    assert not [text for text in CANARIES.values() if text.encode() in on_disk]


def test_the_edit_token_is_shown_once_and_stored_as_a_digest(
    client: TestClient, canary: dict[str, Any], settings: Settings
) -> None:
    slug, token = canary["slug"], canary["edit_token"]
    headers = {"X-Edit-Token": token}
    address = f"{LINKS}/{slug}"
    answers = [
        client.get(address),
        client.get(f"/c/{slug}"),
        client.put(address, headers=headers, json={"title": "t", "scenario": scenario_document()}),
        client.put(address, headers={"X-Edit-Token": new_token()}, json={"title": "t", "scenario": {}}),
        client.get(f"/c/{slug}?edit_token={token}"),
        client.post(f"/c/{slug}/duplicate", follow_redirects=False),
        client.delete(address, headers=headers),
        client.get(address),
    ]
    for answer in answers:
        told = answer.text + str(answer.headers)
        for secret in (token, digest(token).hex(), digest(slug).hex()):
            assert secret not in told
    on_disk = b"".join(file.read_bytes() for file in settings.data_dir.rglob("*") if file.is_file())
    assert token.encode() not in on_disk
    assert slug.encode() not in on_disk


def test_the_log_holds_no_secret_and_no_text(client: TestClient, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    form = {"query": "model=llama-3.1-8b&hw=h100-sxm-80gb", "title": CANARIES["title"], "notes": CANARIES["notes"]}
    saved = client.post("/save", data=form, follow_redirects=False)
    token = saved.cookies["edit_token"]
    slug = saved.headers["location"].rpartition("/")[2]
    client.get(f"/c/{slug}")
    client.get(f"{LINKS}/{slug}?secret=canary-query")
    client.put(
        f"{LINKS}/{slug}",
        headers={"X-Edit-Token": token},
        json={"title": "canary-new", "scenario": scenario_document()},
    )
    client.put(f"{LINKS}/{slug}", headers={"X-Edit-Token": "canary-token"}, json={"title": 1})
    client.get("/?model=canary-id&hw=canary-hw")
    client.post(f"/c/{slug}/revoke", data={"edit_token": token})
    client.get(f"/c/{slug}")
    ours = [record for record in caplog.records if record.name.split(".")[0] not in ("httpx2", "asyncio")]
    told = "\n".join(logging.Formatter().format(record) for record in ours)
    assert '"route": "/c/{slug}"' in told
    assert not [secret for secret in (token, slug, "canary", digest(slug).hex()) if secret in told]


def test_the_page_shows_a_fresh_token_once(client: TestClient) -> None:
    form = {"query": "model=llama-3.1-8b&hw=h100-sxm-80gb", "title": "t"}
    saved = client.post("/save", data=form, follow_redirects=False)
    token = saved.cookies["edit_token"]
    assert token not in saved.headers["location"]
    cookie = saved.headers["set-cookie"].lower()
    assert all(word in cookie for word in ("httponly", "samesite=strict", f"path={saved.headers['location']}"))
    assert token in client.get(saved.headers["location"]).text
    assert token not in client.get(saved.headers["location"]).text


def test_the_machine_tells_no_serial_of_a_card(client: TestClient) -> None:
    assert "uuid" not in client.get(f"{API}/probes").text.lower()
    assert "gpu-" not in client.get("/live").text.lower()
