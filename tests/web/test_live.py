"""The live stream: bounded in number and in time, by API and by page."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx2
import pytest
from starlette.testclient import TestClient

from app.main import create_app
from app.model_facts import ModelShelf
from app.probes.sampler import Sampler
from app.settings import Settings
from app.validation.sheet import ValidationSheet
from app.web.hub import Hub
from app.web.live import refuse_crowd, snapshots
from app.web.problem import ProblemError
from app.web.services import Services
from app.web.urls import API
from tests.api.problems import problem
from tests.factories import shipped_catalog

STREAMS = (f"{API}/probes/stream", "/live/stream")


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def services() -> Services:
    settings = Settings(probe_max_streams=1, probe_stream_max_s=1, probe_interval_s=0.2)
    catalog = shipped_catalog()
    sampler = Sampler([], interval_s=0.2, max_viewers=1)
    shelf, validation = ModelShelf(catalog), ValidationSheet(catalog)
    return Services(settings, catalog, sampler, None, Hub(settings), shelf, validation)


@pytest.mark.anyio
async def test_a_viewer_too_many_is_told_when_to_ask_again(services: Services) -> None:
    refuse_crowd(services)
    async with services.sampler.subscribe():
        with pytest.raises(ProblemError) as refused:
            refuse_crowd(services)
    assert refused.value.status == 503
    assert refused.value.headers == {"Retry-After": "10"}
    refuse_crowd(services)


@pytest.mark.anyio
async def test_a_stream_ends_by_itself(services: Services) -> None:
    seen = [latest async for latest in snapshots(services)]
    assert 2 <= len(seen) <= 8
    assert services.sampler.viewers == 0


@pytest.mark.anyio
async def test_a_stream_ends_with_the_server(services: Services) -> None:
    patient = replace(services, settings=Settings(probe_stream_max_s=1000))
    seen = 0
    async for _ in snapshots(patient):
        seen += 1
        await services.sampler.aclose()
    assert seen == 1


def test_the_api_tells_every_reading_with_a_value_or_a_reason(reader: TestClient) -> None:
    answer = reader.get(f"{API}/probes")
    assert answer.status_code == 200

    def readings(value: Any) -> list[dict[str, Any]]:
        if isinstance(value, dict):
            found = [value] if {"value", "unit"} <= set(value) else []
            return found + [reading for item in value.values() for reading in readings(item)]
        return [reading for item in value for reading in readings(item)] if isinstance(value, list) else []

    (nvidia,) = answer.json()["probes"]
    assert nvidia["source"] == "nvidia"
    assert readings(nvidia)
    for reading in readings(nvidia):
        assert (reading["value"] is None) == (reading["absence"] is not None)


@pytest.mark.parametrize("path", STREAMS)
def test_a_stream_of_a_server(server: str, path: str) -> None:
    with httpx2.stream("GET", f"{server}{path}", timeout=20) as answer:
        assert answer.status_code == 200
        assert answer.headers["content-type"].startswith("text/event-stream")
        assert "no-store" in answer.headers["cache-control"] or "no-cache" in answer.headers["cache-control"]
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert "content-encoding" not in answer.headers
        lines: list[str] = []
        for line in answer.iter_lines():
            if lines and not line:
                break
            lines.append(line)
    data = "\n".join(line.removeprefix("data: ") for line in lines if line.startswith("data: "))
    if path.startswith(API):
        assert "event: probes" in lines
        assert [probe["source"] for probe in json.loads(data)["probes"]] == ["nvidia"]
    else:
        assert "NVIDIA cards" in data
        assert "<html" not in data


@pytest.mark.parametrize("path", STREAMS)
def test_a_crowd_is_refused(tmp_path: Path, assets_dir: Path, path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Sampler, "viewers", property(lambda self: 64))
    client = TestClient(create_app(Settings(data_dir=tmp_path, assets_dir=assets_dir)), raise_server_exceptions=False)
    answer = client.get(path)
    assert answer.status_code == 503
    assert answer.headers["retry-after"] == "10"
    if path.startswith(API):
        problem(answer, 503)
    assert client.get("/live").status_code == 200


def test_the_page_of_this_machine(client: TestClient) -> None:
    page = client.get("/live")
    assert page.status_code == 200
    assert page.headers["cache-control"] == "no-store"
    assert f"{API}/probes" in page.text
