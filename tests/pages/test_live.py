"""The live page: calm without a driver, every reading or its reason with one, and a stream that keeps it fresh."""

import asyncio
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import httpx2
import pytest
from fastapi import FastAPI
from starlette.testclient import TestClient

from app.probes.card import CardReadings, ProbeSnapshot
from app.probes.reading import Absence, Reading
from app.probes.sampler import Sampler
from tests.pages.asking import items_of, json_of, page, twin_of
from tests.pages.dom import Node, parse

MIB, GIB = 2**20, 2**30
TAKEN_AT = datetime(2026, 11, 29, 12, 34, 56, tzinfo=UTC)
VALUES: dict[str, Any] = {
    "uuid": "GPU-secret",
    "name": "NVIDIA H100 80GB HBM3",
    "mig_enabled": False,
    "memory_total_bytes": 81_559 * MIB,
    "memory_used_bytes": 20 * GIB,
    "memory_reserved_bytes": 600 * MIB,
    "memory_free_bytes": 59 * GIB,
    "gpu_utilization_percent": 93,
    "memory_utilization_percent": 47,
    "sm_clock_mhz": 1755,
    "sm_clock_max_mhz": 1980,
    "memory_clock_mhz": 2619,
    "memory_clock_max_mhz": 2619,
    "power_draw_w": 431.6,
    "power_limit_w": 700.0,
    "temperature_c": 61,
    "memory_bus_bits": 5120,
    "peak_bandwidth_bytes_per_s": 3.352e12,
}


def card(index: int = 0, **changes: Any) -> CardReadings:
    """A card that is read in full; a change is a value, or the reason why there is none."""
    given = VALUES | changes
    fault = given.pop("fault", None)
    readings: dict[str, Any] = {
        name: Reading.missing(value) if isinstance(value, Absence) else Reading(value) for name, value in given.items()
    }
    return CardReadings(index=index, vendor="nvidia", unified_memory=False, fault=fault, **readings)


def snapshot(*cards: CardReadings) -> ProbeSnapshot:
    return ProbeSnapshot("nvidia", "ok", None, Reading("580.95.05"), cards, TAKEN_AT)


class StubProbe:
    """Always the same answer."""

    name = "nvidia"

    def __init__(self, answer: ProbeSnapshot) -> None:
        self._answer = answer

    def snapshot(self) -> ProbeSnapshot:
        return self._answer

    def close(self) -> None:
        """Nothing to let go of."""


@contextmanager
def client_seeing(app: FastAPI, answer: ProbeSnapshot) -> Iterator[TestClient]:
    """A client of an app whose machine has these cards."""
    app.state.services = replace(app.state.services, sampler=Sampler([StubProbe(answer)], interval_s=0.2))
    with TestClient(app) as client:
        yield client


def seen(app: FastAPI, answer: ProbeSnapshot) -> Node:
    with client_seeing(app, answer) as client:
        return page(client, "/live")


def readings(node: Node) -> dict[str, str]:
    return {row.all("th")[0].text: row.all("td")[0].text for row in node.one("tbody").all("tr")}


def test_without_a_driver_the_page_is_calm(app: FastAPI) -> None:
    tree = seen(app, ProbeSnapshot.absent("nvidia", Absence.NO_DRIVER, lambda: TAKEN_AT))
    assert "No driver for such a card was found on this machine." in tree.text
    assert tree.id("source-title-1").text == "NVIDIA cards"
    assert not tree.all("article")
    assert not tree.all(role="alert")
    for word in ("error", "fail", "warning"):
        assert word not in tree.id("main").text.casefold()


@pytest.mark.parametrize("absence", [Absence.NO_DRIVER, Absence.NOT_INSTALLED, Absence.TIMEOUT])
def test_every_absence_says_its_reason_and_the_way_on(app: FastAPI, absence: Absence) -> None:
    tree = seen(app, ProbeSnapshot.absent("nvidia", absence))
    assert absence.message in tree.text
    assert "/" in [a["href"] for a in tree.id("main").all("a")]


def test_every_reading_is_shown(app: FastAPI) -> None:
    tree = seen(app, snapshot(card()))
    article = tree.one("article")
    assert article.one("h3").text == "0 · NVIDIA H100 80GB HBM3"
    assert readings(article) == {
        "Memory used": "20 GiB",
        "Memory reserved by the driver": "600 MiB",
        "Memory free": "59 GiB",
        "Memory in all": "79.65 GiB",
        "A kernel ran in": "93 % of the last sample",
        "Memory was read or written in": "47 % of the last sample",
        "SM clock": "1,755 MHz",
        "SM clock, most": "1,980 MHz",
        "Memory clock": "2,619 MHz",
        "Memory clock, most": "2,619 MHz",
        "Power": "432 W",
        "Power limit": "700 W",
        "Temperature": "61 °C",
        "Peak bandwidth, derived": "3.352 TB/s",
        "Split into MIG instances": "no",
    }
    assert float(article.one("meter")["value"]) == pytest.approx(20 * GIB / (81_559 * MIB), abs=1e-4)
    assert "Driver 580.95.05 · read at 12:34:56 UTC" in tree.text
    assert "GPU-secret" not in tree.raw


def test_a_missing_reading_says_why(app: FastAPI) -> None:
    tree = seen(app, snapshot(card(power_draw_w=Absence.NO_PERMISSION, memory_used_bytes=Absence.MIG_ENABLED)))
    shown = readings(tree.one("article"))
    assert shown["Power"] == Absence.NO_PERMISSION.message
    assert shown["Memory used"] == Absence.MIG_ENABLED.message
    assert not tree.all("meter")


def test_zero_is_a_value(app: FastAPI) -> None:
    shown = readings(seen(app, snapshot(card(gpu_utilization_percent=0, memory_used_bytes=0, power_draw_w=0.0))))
    assert shown["A kernel ran in"] == "0 % of the last sample"
    assert shown["Memory used"] == "0 B"
    assert shown["Power"] == "0 W"


def test_a_card_that_is_lost_says_so(app: FastAPI) -> None:
    tree = seen(app, snapshot(card(), CardReadings.unreadable(1, "nvidia", Absence.GPU_LOST)))
    lost = tree.all("article")[1]
    assert Absence.GPU_LOST.message in lost.text
    assert lost.one("h3").text == "1 · unnamed card"
    assert set(readings(lost).values()) == {Absence.GPU_LOST.message}


def test_a_stale_reading_is_called_so(app: FastAPI) -> None:
    tree = seen(app, snapshot(card()).aged(Absence.TIMEOUT))
    assert "last good reading at 12:34:56 UTC" in tree.text
    assert Absence.TIMEOUT.message in tree.text
    assert tree.all("article")


@pytest.mark.parametrize(
    ("name", "mib", "id_"),
    [
        ("NVIDIA H100 80GB HBM3", 81_559, "h100-sxm-80gb"),
        ("NVIDIA H200", 143_771, "h200-sxm"),
        ("NVIDIA GeForce RTX 4090", 24_564, "rtx-4090"),
    ],
)
def test_use_this_card_opens_the_workbench_on_it(app: FastAPI, name: str, mib: int, id_: str) -> None:
    with client_seeing(app, snapshot(card(name=name, memory_total_bytes=mib * MIB))) as client:
        link = page(client, "/live").one("article").one("a")
        assert link.text == "Use this card"
        assert items_of(link["href"])["hw"] == id_
        assert page(client, link["href"]).id("f-hw").one("option", selected="")["value"] == id_


def test_a_card_the_catalog_does_not_know_fills_in_the_custom_one(app: FastAPI) -> None:
    with client_seeing(app, snapshot(card(name="NVIDIA Z9 <b>"))) as client:
        article = page(client, "/live").one("article")
        assert "does not know this card" in article.text
        href = article.one("a")["href"]
        tree = page(client, href, 422)  # the rates are still to be filled in
        assert tree.id("f-hw").one("option", selected="")["value"] == "custom"
        assert tree.id("f-hw_name")["value"] == "NVIDIA Z9 <b>"
        assert tree.id("f-hw_mib")["value"] == "81559"
        assert tree.id("f-hw_bw")["value"] == "3352"
        assert tree.id("msg-hw_bf16").text
        assert page(client, f"{href}&hw_bf16=989").all(id="metric-memory")


def test_a_bandwidth_that_differs_from_the_catalogs_is_noted(app: FastAPI) -> None:
    note = "check which variant this is"
    assert note not in seen(app, snapshot(card())).text
    assert note in seen(app, snapshot(card(peak_bandwidth_bytes_per_s=2.0e12))).text


def test_the_twin_holds_the_same_readings(app: FastAPI) -> None:
    with client_seeing(app, snapshot(card())) as client:
        tree = page(client, "/live")
        twin = json_of(client, twin_of(tree))["probes"][0]["cards"][0]
        assert twin["temperature_c"]["value"] == 61
        assert twin["memory_total_bytes"]["value"] == 81_559 * MIB
        assert "GPU-secret" not in client.get(twin_of(tree)).text


def test_the_page_connects_to_the_stream_and_is_not_cached(reader: TestClient) -> None:
    assert page(reader, "/live").id("cards")["hx-sse:connect"] == "/live/stream"
    assert reader.get("/live").headers["cache-control"] == "no-store"


def test_the_stream_sends_the_cards_at_once(server: str) -> None:
    started = time.monotonic()
    with httpx2.stream("GET", f"{server}/live/stream", timeout=5) as answer:
        assert answer.status_code == 200
        assert answer.headers["content-type"].startswith("text/event-stream")
        lines: list[str] = []
        for line in answer.iter_lines():
            if not line and lines:
                break
            lines.append(line)
    assert time.monotonic() - started < 3
    data = "\n".join(line.removeprefix("data:").removeprefix(" ") for line in lines if line.startswith("data:"))
    assert parse(data).all(id="source-1")


def test_an_event_is_the_part_of_the_page(app: FastAPI) -> None:
    """Frame by frame, without a network."""

    async def first_event() -> str:
        scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": "GET",
            "scheme": "http",
            "path": "/live/stream",
            "raw_path": b"/live/stream",
            "query_string": b"",
            "root_path": "",
            "headers": [(b"host", b"localhost")],
            "client": ("127.0.0.1", 1),
            "server": ("localhost", 80),
        }
        got: asyncio.Queue[bytes] = asyncio.Queue()
        asked = False

        async def receive() -> dict[str, Any]:
            nonlocal asked
            if asked:
                await asyncio.sleep(60)
            asked = True
            return {"type": "http.request", "body": b"", "more_body": False}

        async def send(message: Any) -> None:
            if message.get("body"):
                await got.put(message["body"])

        task = asyncio.create_task(app(scope, receive, send))
        try:
            return (await asyncio.wait_for(got.get(), 3)).decode()
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    app.state.services = replace(app.state.services, sampler=Sampler([StubProbe(snapshot(card()))], interval_s=0.2))
    event = asyncio.run(first_event())
    data = "\n".join(line[5:].removeprefix(" ") for line in event.splitlines() if line.startswith("data:"))
    assert parse(data).one("article").one("h3").text == "0 · NVIDIA H100 80GB HBM3"


def test_a_crowd_is_told_to_come_back(app: FastAPI) -> None:
    settings = app.state.services.settings.model_copy(update={"probe_max_streams": 0})
    app.state.services = replace(app.state.services, settings=settings)
    with TestClient(app) as client:
        answer = client.get("/live/stream")
        assert answer.status_code == 503
        assert answer.headers["retry-after"] == "10"
