"""Measured roofs over HTTP: read by everybody, measured anew by the operator alone."""

import json
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr
from starlette.testclient import TestClient

from app.machine.peaks.measure import Rig
from app.machine.peaks.runner import held
from app.machine.peaks.service import Bench
from app.machine.probes.reading import Absence, Reading
from app.main import create_app
from app.settings import Settings
from app.web.urls import API
from tests.features.problems import paths, problem
from tests.machine.peaks.measured import roofs
from tests.machine.peaks.workers import UUID, card, rig, seen

ROOFS, MEASURE = f"{API}/roofs", f"{API}/roofs/measure"
TOKEN = "the-operators-own-token"
Opened = Callable[..., TestClient]


@contextmanager
def client_of(folder: Path, assets_dir: Path, asked: Rig, peer: str, **changed: Any) -> Iterator[TestClient]:
    """A client of an app over a card that does not exist; what it began is ended."""
    given: dict[str, Any] = {"microbenchmark": True, "operator_token": SecretStr(TOKEN)} | changed
    app = create_app(Settings(data_dir=folder, assets_dir=assets_dir, **given))
    app.state.services = replace(app.state.services, bench=Bench(asked))
    with TestClient(app, "http://localhost", raise_server_exceptions=False, client=(peer, 50000)) as client:
        yield client
        assert client.portal is not None
        client.portal.call(app.state.services.bench.aclose)


@pytest.fixture
def opened(tmp_path: Path, assets_dir: Path) -> Iterator[Opened]:
    """Makes clients, of apps of their own, at this machine or elsewhere."""
    folder = tmp_path / "data"
    with ExitStack() as stack:

        def open_(asked: Rig | None = None, peer: str = "127.0.0.1", **changed: Any) -> TestClient:
            return stack.enter_context(client_of(folder, assets_dir, asked or rig(folder), peer, **changed))

        yield open_


@pytest.fixture(scope="module")
def refused(tmp_path_factory: pytest.TempPathFactory, assets_dir: Path) -> Iterator[TestClient]:
    """One client for all that is refused before anything is begun."""
    folder = tmp_path_factory.mktemp("refused")
    with client_of(folder, assets_dir, rig(folder), "127.0.0.1", allowed_hosts=("rebound.example",)) as client:
        yield client
        assert state_of(client)["last_error"] is None
        assert state_of(client)["state"] == "idle"


def state_of(client: TestClient) -> dict[str, Any]:
    answer = client.get(ROOFS)
    assert answer.status_code == 200
    told: dict[str, Any] = answer.json()
    return told


def finished(client: TestClient) -> dict[str, Any]:
    """The state once nothing runs any more."""
    ends_at = time.monotonic() + 10
    while (told := state_of(client))["state"] == "running" and time.monotonic() < ends_at:
        time.sleep(0.02)
    assert told["state"] == "idle"
    return told


def test_a_card_is_measured(opened: Opened) -> None:
    client = opened()
    before = state_of(client)
    assert (before["state"], before["roofs"], before["libraries"]) == ("idle", [], ["torch"])
    answer = client.post(MEASURE)
    assert answer.status_code == 202
    assert (answer.json()["state"], answer.json()["device"]) == ("running", 0)
    after = finished(client)
    (run,) = after["roofs"]
    assert after["last_error"] is None
    assert run["accelerator"] == "h100-sxm-80gb"
    assert run["versions"]["driver"] == "580.95.05"
    assert run["before"]["sm_clock_mhz"]["value"] == 1980
    assert run["beside"][0]["share"] == pytest.approx(3.0 / 3.35)
    assert run["beside"][0]["verdict"] == "usual"
    assert UUID not in json.dumps(after)


def test_of_two_who_ask_one_is_told_to_wait(opened: Opened, tmp_path: Path) -> None:
    client = opened(rig(tmp_path / "data", told={"behaviour": "hang"}))
    assert client.post(MEASURE, json={"device": 0, "seconds": 10}).status_code == 202
    assert "one at a time" in problem(client.post(MEASURE), 409)["detail"]
    told = state_of(client)
    assert (told["state"], told["elsewhere"], told["last_error"]) == ("running", False, None)


def test_another_process_is_in_the_way_too(opened: Opened, tmp_path: Path) -> None:
    asked = rig(tmp_path)
    client = opened(asked)
    with held(asked.lock):
        assert (state_of(client)["state"], state_of(client)["elsewhere"]) == ("running", True)
        assert "one at a time" in problem(client.post(MEASURE), 409)["detail"]
    assert client.post(MEASURE).status_code == 202


@pytest.mark.parametrize(
    "headers",
    [{"host": "rebound.example"}, {"x-forwarded-for": "127.0.0.1"}, {"via": "1.1 proxy"}],
    ids=["rebound", "proxy", "via"],
)
def test_others_than_the_operator_may_look_and_not_measure(refused: TestClient, headers: dict[str, str]) -> None:
    assert "operator" in problem(refused.post(MEASURE, headers=headers), 403)["detail"]
    assert refused.get(ROOFS, headers=headers).status_code == 200


def test_from_elsewhere_the_operator_needs_the_token(opened: Opened) -> None:
    client = opened(peer="192.0.2.7")
    for headers in ({}, {"authorization": "Bearer wrong"}, {"authorization": TOKEN}):
        assert "operator" in problem(client.post(MEASURE, headers=headers), 403)["detail"]
    assert state_of(client)["state"] == "idle"
    assert client.post(MEASURE, headers={"authorization": f"Bearer {TOKEN}"}).status_code == 202
    finished(client)


def test_a_page_of_another_site_may_not(refused: TestClient) -> None:
    assert "another site" in problem(refused.post(MEASURE, headers={"sec-fetch-site": "cross-site"}), 403)["detail"]


def test_it_has_to_be_turned_on(opened: Opened) -> None:
    client = opened(microbenchmark=False)
    assert "TOKENROOF_MICROBENCHMARK" in problem(client.post(MEASURE), 403)["detail"]
    assert state_of(client)["state"] == "idle"


def test_a_card_that_cannot_be_measured(opened: Opened, tmp_path: Path) -> None:
    in_use = card(memory_used_bytes=Reading(40 * 2**30, "B"))
    split, lost = card(mig_enabled=Reading(True)), card(fault=Absence.GPU_LOST)
    client = opened(rig(tmp_path, seen(in_use), seen(split), seen(lost), seen(card())))
    for words in ("50 % of its memory", "MIG", "fallen off the bus"):
        detail = problem(client.post(MEASURE), 409)["detail"]
        assert words in detail
        assert state_of(client)["last_error"]["message"] == detail
    assert "can be seen: 1" in problem(client.post(MEASURE, json={"device": 7}), 422)["detail"]
    assert state_of(client)["last_error"]["code"] == "no_such_card"


def test_without_a_library(opened: Opened, tmp_path: Path) -> None:
    client = opened(rig(tmp_path, libraries=()))
    assert "torch nor cupy" in problem(client.post(MEASURE), 503)["detail"]
    assert state_of(client)["libraries"] == []


@pytest.mark.parametrize(
    ("body", "path"),
    [
        ({"device": -1}, "device"),
        ({"device": 256}, "device"),
        ({"device": 1.5}, "device"),
        ({"device": "zero"}, "device"),
        ({"seconds": 0}, "seconds"),
        ({"seconds": 1e9}, "seconds"),
        ({"seconds": None}, "seconds"),
        ({"minutes": 1}, "minutes"),
    ],
    ids=str,
)
def test_a_field_that_is_not_right(refused: TestClient, body: dict[str, Any], path: str) -> None:
    assert paths(refused.post(MEASURE, json=body)) == [path]


@pytest.mark.parametrize("body", [b'{"seconds": NaN}', b"{", b'{"device": 0, "device": 1}'])
def test_a_body_that_is_no_json(refused: TestClient, body: bytes) -> None:
    problem(refused.post(MEASURE, content=body, headers={"content-type": "application/json"}), 400)


def test_a_broken_file_is_as_good_as_none(opened: Opened, tmp_path: Path) -> None:
    client = opened()
    bench: Bench = client.app.state.services.bench  # type: ignore[attr-defined]
    assert bench.roofs() == ()
    file = tmp_path / "data" / "measured_roofs.json"
    file.write_text("{")
    assert state_of(client)["roofs"] == []
    rig(tmp_path / "data").store.add(roofs())
    assert len(state_of(client)["roofs"]) == 1


def test_the_server_does_not_load_what_it_would_measure_with(refused: TestClient) -> None:
    assert state_of(refused)["libraries"] == ["torch"]
    assert not {"torch", "cupy"} & set(__import__("sys").modules)
