"""The live stream: one round for all viewers, bounded in number, time and memory, and ended in order."""

import asyncio
import gc
import json
import signal
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest
from sse_starlette import ServerSentEvent
from starlette.testclient import TestClient

from app.catalog.facts import ModelShelf
from app.features.importing.hub import Hub
from app.features.live.stream import MOST_QUESTIONS, NOBODYS, LiveBoards, event_stream, live_round, refuse_crowd, rounds
from app.features.live.typed_servers import TypedServers
from app.features.services import Services
from app.features.validation.errors import ValidationSheet
from app.machine.live.board import board_of
from app.machine.peaks.measure import Rig
from app.machine.peaks.result import RoofStore
from app.machine.peaks.service import Bench
from app.machine.probes.sampler import Sampler, Snapshots
from app.machine.probes.snapshot import Kind, ProbeSnapshot
from app.main import create_app
from app.settings import Settings
from app.web.problem import ProblemError
from app.web.urls import API
from tests.factories import shipped_catalog
from tests.features.problems import problem
from tests.machine.live.seen import LLAMA, card, cards, served, server
from tests.running import Running, running

STREAMS = (f"{API}/probes/stream", "/live/stream")
VIEWERS = 50


class CountingProbe:
    """A card and a server that are always the same, and how often they were asked."""

    name, label = "nvidia", "NVIDIA cards"
    kind: Kind = "cards"

    def __init__(self, snapshot: ProbeSnapshot | None = None) -> None:
        self.asked = 0
        self._snapshot = snapshot or cards(card(dram_activity_percent=60.0, tensor_activity_percent=20.0))

    def snapshot(self) -> ProbeSnapshot:
        self.asked += 1
        return replace(self._snapshot)

    def close(self) -> None:
        """Nothing to let go of."""


def services_with(sampler: Sampler, **changes: Any) -> Services:
    settings = Settings(probe_interval_s=0.2, **changes)
    catalog = shipped_catalog()
    return Services(
        settings,
        catalog,
        sampler,
        None,
        Hub(settings),
        ModelShelf(catalog),
        ValidationSheet(catalog),
        TypedServers(settings),
        Bench(Rig(readings=sampler.latest, store=RoofStore(settings.data_dir))),
    )


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def services() -> Services:
    return services_with(Sampler([], interval_s=0.2, max_viewers=1), probe_max_streams=1, probe_stream_max_s=1)


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
    seen = [latest async for latest in rounds(services)]
    assert 2 <= len(seen) <= 8
    assert services.sampler.viewers == 0


@pytest.mark.anyio
async def test_a_stream_ends_with_the_sampler_and_with_the_server() -> None:
    services, seen = services_with(Sampler([], interval_s=0.2)), 0
    async for _ in rounds(services):
        seen += 1
        await services.sampler.aclose()
    assert seen == 1
    other, stopping = services_with(Sampler([], interval_s=60)), anyio.Event()
    started = time.monotonic()
    async for _ in rounds(other, stopping=stopping):
        stopping.set()
    assert time.monotonic() - started < 10
    await other.sampler.aclose()


@pytest.mark.anyio
async def test_fifty_viewers_are_one_sampler_and_one_board(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each round is asked for once and worked out once, and everybody gets it."""
    probe, made = CountingProbe(), 0
    sampler = Sampler([probe], interval_s=0.05)
    services = services_with(sampler)
    boards = LiveBoards(sampler, services.typed, services.catalog)

    def counted(*given: Any) -> Any:
        nonlocal made
        made += 1
        return board_of(*given)

    monkeypatch.setattr("app.features.live.stream.board_of", counted)
    got = [0] * VIEWERS

    async def look(index: int) -> None:
        async for latest in rounds(services):
            boards.of(latest, ())
            got[index] += 1
            if got[index] == 5:
                return

    await asyncio.gather(*(look(index) for index in range(VIEWERS)))
    assert got == [5] * VIEWERS
    assert probe.asked <= 8
    assert made <= probe.asked
    assert sampler.viewers == 0
    await sampler.aclose()


@pytest.mark.anyio
async def test_memory_is_flat_over_as_many_rounds_as_ten_minutes_have() -> None:
    """600 rounds: as many objects live after them as after 450, when the history has been full for a while."""
    snapshots = [CountingProbe(), CountingProbe(served(server(**LLAMA)))]
    sampler = Sampler(snapshots, interval_s=0.0)
    boards = LiveBoards(sampler, TypedServers(Settings()), shipped_catalog())

    async def watch(rounds_: int) -> None:
        for at in range(rounds_):
            boards.of(await sampler.latest(), [("tp", str(at % 4 + 1))] if at % 50 == 0 else ())

    def living() -> int:
        gc.collect()
        return len(gc.get_objects())

    await watch(450)
    before = living()
    await watch(150)
    assert living() - before < 150, "something is kept for every round"
    assert len(sampler.history) < 450
    await sampler.aclose()


@pytest.mark.anyio
async def test_questions_are_remembered_in_bounded_number() -> None:
    sampler = Sampler([CountingProbe()], interval_s=60)
    boards = LiveBoards(sampler, TypedServers(Settings()), shipped_catalog())
    latest = await sampler.latest()
    first = boards.of(latest, [("model", "qwen3-14b")])
    assert boards.of(latest, [("model", "qwen3-14b")]) is first
    for at in range(MOST_QUESTIONS):
        boards.of(latest, [("x", str(at))])
    assert boards.of(latest, [("model", "qwen3-14b")]) is not first
    await sampler.aclose()


@pytest.mark.anyio
async def test_without_a_named_server_a_round_is_that_of_the_sampler(services: Services) -> None:
    assert await live_round(services) == ()


def test_the_api_tells_every_reading_with_a_value_or_a_reason(reader: TestClient) -> None:
    answer = reader.get(f"{API}/probes")
    assert answer.status_code == 200

    def readings(value: Any) -> list[dict[str, Any]]:
        if isinstance(value, dict):
            found = [value] if {"value", "unit", "absence"} <= set(value) else []
            return found + [reading for item in value.values() for reading in readings(item)]
        return [reading for item in value for reading in readings(item)] if isinstance(value, list) else []

    assert [probe["source"] for probe in answer.json()["probes"]] == ["nvidia", "amd", "host"]
    assert readings(answer.json())
    for reading in readings(answer.json()):
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
        assert [probe["source"] for probe in json.loads(data)["probes"]] == ["nvidia", "amd", "host"]
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


def test_a_server_with_fifty_viewers_stops_within_five_seconds(tmp_path: Path, assets_dir: Path) -> None:
    """Each stream ends as an answer ends, none is cut off, and the process is gone."""

    async def view(address: str, watching: asyncio.Semaphore) -> str:
        async with httpx2.AsyncClient(timeout=30) as client, client.stream("GET", f"{address}/live/stream") as answer:
            async for line in answer.aiter_lines():
                if not line:
                    watching.release()
        return "ended"

    async def scene(found: Running) -> tuple[list[object], float]:
        watching = asyncio.Semaphore(0)
        viewers = [asyncio.create_task(view(found.address, watching)) for _ in range(VIEWERS)]
        for _ in range(VIEWERS):
            await asyncio.wait_for(watching.acquire(), 30)
        asked_at = time.monotonic()
        found.process.send_signal(signal.SIGTERM)
        ended = await asyncio.gather(*viewers, return_exceptions=True)
        await asyncio.to_thread(found.process.wait, 20)
        return list(ended), time.monotonic() - asked_at

    with running(tmp_path, assets_dir) as found:
        ended, took_s = asyncio.run(scene(found))
    assert ended == ["ended"] * VIEWERS
    assert took_s < 5


@pytest.mark.anyio
async def test_streams_write_one_after_the_other_and_let_others_have_their_turn() -> None:
    """However many wake at the same time, the event loop comes round between any two of them."""
    services, turns, written_at = services_with(Sampler([], interval_s=0.2), probe_stream_max_s=1), 0, list[int]()

    def written(_: Snapshots) -> ServerSentEvent:
        written_at.append(turns)
        return ServerSentEvent(data="")

    async def first() -> None:
        async for _ in event_stream(services, NOBODYS, written).body_iterator:
            return

    viewers = [asyncio.create_task(first()) for _ in range(9)]
    while not all(viewer.done() for viewer in viewers):
        turns += 1
        await asyncio.sleep(0)
    assert len(written_at) == len(set(written_at)) == 9
    await services.sampler.aclose()
