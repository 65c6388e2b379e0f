"""Snapshots of the live page: saved, shown as they stood, revoked; and nothing in them that names a machine."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI
from starlette.testclient import TestClient

from app.features.links.links import SnapshotPayload
from app.features.live.snapshots import frozen, thawed
from app.main import create_app
from app.settings import Settings
from app.web.urls import API
from tests.features.asking import json_of, page, twin_of
from tests.features.dom import parse
from tests.machine.live.seen import LLAMA, card, cards, host, served, server
from tests.machine.live.stub import put

CANARIES = ("gpu-host-7", "GPU-canary", "This machine", "10.1.2.3")


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory, assets_dir: Path) -> FastAPI:
    return create_app(Settings(data_dir=tmp_path_factory.mktemp("snapshots"), assets_dir=assets_dir))


@pytest.fixture(scope="module")
def started(app: FastAPI) -> Iterator[TestClient]:
    with TestClient(app, raise_server_exceptions=False) as client:
        yield client


@pytest.fixture
def viewer(app: FastAPI, started: TestClient) -> TestClient:
    """A client of a machine with a card, and two servers that their operator called by host and address."""
    put(app, cards(card()), host(), served(server(**LLAMA)), served(server(**LLAMA), 2, "10.1.2.3"))
    started.cookies.clear()
    return started


def save(client: TestClient, **more: str) -> Any:
    form = {"title": "Under load", "query": "", "expires_in_days": "30", **more}
    return client.post("/live/snapshots", data=form, follow_redirects=False)


def test_a_snapshot_is_shown_as_it_stood_whatever_runs_now(app: FastAPI, viewer: TestClient) -> None:
    answer = save(viewer)
    assert answer.status_code == 303
    path = answer.headers["location"]
    first = page(viewer, path)
    token = first.id("edit-token").text
    put(app, cards())
    again = page(viewer, path)
    assert not again.all(id="edit-token"), "the token is shown once"
    for tree in (first, again):
        assert tree.one("h1").text == "Under load"
        assert tree.id("title-server-1").text.startswith("Server 1")
        assert "7.8 ms" in tree.id("server-1-itl_mean_s").text
        assert "× the prediction" in tree.id("server-1-itl_mean_s").text
        assert tree.all(id="card-nvidia-0")
        assert "hx-sse" not in tree.raw
    twin = json_of(viewer, twin_of(again))
    assert twin["live"]["servers"][0]["figures"]
    assert viewer.get(path).headers["referrer-policy"] == "no-referrer"
    revoked = viewer.post(f"{path}/revoke", data={"edit_token": token})
    assert "The link is revoked" in revoked.text
    assert viewer.get(path).status_code == 404
    assert viewer.get(f"{API}/snapshots/{path.rpartition('/')[2]}").status_code == 404


def test_nothing_in_it_names_a_host_a_card_in_the_world_or_an_address(viewer: TestClient) -> None:
    path = save(viewer).headers["location"]
    shown = [viewer.get(path).text, viewer.get(f"{API}/snapshots/{path.rpartition('/')[2]}").text]
    for canary in CANARIES:
        assert all(canary not in text for text in shown), canary
    assert "GPU-canary" not in viewer.get("/live").text


def test_what_was_asked_is_what_it_is_beside(viewer: TestClient) -> None:
    path = save(viewer, query="model=qwen3-14b&hw=h200-sxm").headers["location"]
    assert "Qwen3-14B on H200" in page(viewer, path).text


@pytest.mark.parametrize(
    ("form", "word"),
    [
        ({"query": "model=nonsense&hw=h200-sxm"}, "nonsense"),
        ({"query": "a=1&" * 500}, "query"),
    ],
)
def test_what_is_refused_is_told(viewer: TestClient, form: dict[str, str], word: str) -> None:
    answer = save(viewer, **form)
    assert answer.status_code == 422
    assert word in answer.text


def test_a_page_of_an_older_form_is_no_error() -> None:
    assert thawed(SnapshotPayload(view={"servers": []})) is None
    assert thawed(SnapshotPayload()) is None


def test_the_api_saves_reads_and_revokes(viewer: TestClient) -> None:
    scenario = {"model": {"id": "qwen3-14b"}, "hardware": {"id": "h200-sxm"}}
    made = viewer.post(f"{API}/snapshots", json={"title": "By program", "scenario": scenario})
    assert made.status_code == 201
    link = made.headers["location"]
    read = viewer.get(link).json()
    assert read["title"] == "By program"
    assert read["live"]["scenario"]["model"]["id"] == "qwen3-14b"
    assert [probe["label"] for probe in read["probes"]] == ["NVIDIA cards", "Server 1", "Server 2"]
    assert parse(viewer.get(made.json()["url"].removeprefix("http://testserver")).text).one("h1").text == "By program"
    assert viewer.delete(link, headers={"X-Edit-Token": made.json()["edit_token"]}).status_code == 204
    assert viewer.get(link).status_code == 404
    refused = viewer.post(f"{API}/snapshots", json={"title": "x", "scenario": {"model": {"id": "nonsense"}}})
    assert refused.status_code == 422


def test_eight_cards_and_servers_with_a_minute_behind_them_have_room(app: FastAPI) -> None:
    """Every second a round, as the page has it after a while."""
    services = app.state.services
    busy = [card(at, dram_activity_percent=60.0, tensor_activity_percent=20.0) for at in range(8)]
    history = [
        (cards(*busy, age_s=age), *(served(server(**LLAMA), at, age_s=age) for at in range(1, 9)))
        for age in range(59, -1, -1)
    ]
    kept = frozen(history[-1], history, None, services.catalog, (), "T", None)
    trails = kept.document["live"]["trails"]
    assert len(trails) == 16
    assert {(trail["dots"][0]["age_s"] > 50, trail["dots"][-1]["age_s"]) for trail in trails} == {(True, 0.0)}
    services.links("snapshot").create(kept)


def test_more_than_there_is_room_for_is_told_in_words(app: FastAPI, viewer: TestClient) -> None:
    put(app, *(served(server(**LLAMA), at) for at in range(1, 33)))
    answer = save(viewer)
    assert answer.status_code == 422
    assert "does not hold the readings of 32 servers: " in parse(answer.text).one("main").text
