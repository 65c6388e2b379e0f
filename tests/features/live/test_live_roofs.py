"""Measured roofs on the live page: a table, a dashed line, and a button that is the operator's alone."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from fastapi import FastAPI
from starlette.testclient import TestClient

from app.machine.peaks.measure import Rig
from app.machine.peaks.result import RoofStore
from app.machine.peaks.service import Bench
from app.main import create_app
from app.settings import Settings
from tests.features.asking import page
from tests.machine.live.seen import card as seen_card
from tests.machine.live.seen import cards
from tests.machine.live.stub import put
from tests.machine.peaks.measured import roofs

BUTTON = "Measure this machine’s roofs"


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory, assets_dir: Path) -> FastAPI:
    """An app on whose machine a library is said to be installed, and a card was measured."""
    folder = tmp_path_factory.mktemp("roofs")
    made = create_app(Settings(data_dir=folder, assets_dir=assets_dir, microbenchmark=True))
    RoofStore(folder).add(roofs(card_name="NVIDIA H100 80GB HBM3", memory_total_bytes=81_559 * 2**20))
    services = made.state.services
    rig = Rig(readings=services.sampler.latest, store=RoofStore(folder), libraries=("torch",))
    made.state.services = replace(services, bench=Bench(rig))
    put(made, cards(seen_card()))
    return made


@pytest.fixture(scope="module")
def at_home(app: FastAPI) -> Iterator[TestClient]:
    with TestClient(app, base_url="http://localhost", client=("127.0.0.1", 1), raise_server_exceptions=False) as client:
        yield client


def test_what_was_measured_stands_beside_the_vendors_and_is_drawn_dashed(at_home: TestClient) -> None:
    tree = page(at_home, "/live")
    table = tree.id("roofs").one("tbody").text
    assert "2.9 TB/s" in table
    assert "86.6 %" in table
    figure = json.loads(tree.id("chart-data").text)[0]["figure"]
    traces = {trace["name"]: trace for trace in figure["data"]}
    assert traces["measured roof"]["line"]["dash"] == "dash"
    assert traces["measured roof"]["y"][-1] == pytest.approx(7.9e14)


def test_the_button_is_the_operators(app: FastAPI, at_home: TestClient) -> None:
    assert BUTTON in page(at_home, "/live").text
    stranger = TestClient(app, client=("203.0.113.9", 1), raise_server_exceptions=False)
    assert BUTTON not in page(stranger, "/live").text
    assert stranger.post("/live/roofs").status_code == 403


def test_without_a_library_there_is_no_button(reader: TestClient) -> None:
    assert BUTTON not in page(reader, "/live").text
