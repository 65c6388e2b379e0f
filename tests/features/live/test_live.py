"""The live page: calm without a driver, every reading or its reason, each server beside its prediction."""

import asyncio
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI
from starlette.testclient import TestClient

from app.calc.quantity import quantity
from app.features.live.stream import COOKIE
from app.machine.live.machine import as_loaded
from app.machine.probes.accelerator import CardReadings, MigInstance
from app.machine.probes.reading import Absence, Reading
from app.machine.probes.sampler import Sampler
from app.machine.probes.snapshot import ProbeSnapshot
from app.main import create_app
from app.scenario.answer import answer
from app.scenario.scenario import Scenario
from app.settings import Settings
from tests.factories import shipped_catalog
from tests.features.asking import items_of, json_of, page, twin_of
from tests.features.dom import Node, parse
from tests.machine.live.seen import LLAMA, MIB, TAKEN_AT, card, cards, host, served, server
from tests.machine.live.stub import put

GIB = 2**30
BASE = Scenario.model_validate({"model": {"id": "llama-3.1-8b"}, "hardware": {"id": "h100-sxm-80gb"}})
FULL: dict[str, Any] = {
    "mig_enabled": False,
    "memory_reserved_bytes": 600 * MIB,
    "memory_free_bytes": 59 * GIB,
    "gpu_utilization_percent": 93,
    "dram_activity_percent": 61.7,
    "tensor_activity_percent": 22.2,
    "throttle_reasons": ("power cap", "software thermal limit"),
    "sm_clock_mhz": 1755,
    "power_draw_w": 431.6,
    "temperature_c": 61,
    "pcie_generation": 5,
    "pcie_lanes": 16,
    "nvlink_sent_bytes_per_s": 4.2e10,
}


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory, assets_dir: Path) -> FastAPI:
    """One app for all tests of the file: what it sees changes, and nothing is stored."""
    return create_app(Settings(data_dir=tmp_path_factory.mktemp("live"), assets_dir=assets_dir))


@pytest.fixture(scope="module")
def viewer(app: FastAPI) -> Iterator[TestClient]:
    with TestClient(app, raise_server_exceptions=False) as started:
        yield started


@pytest.fixture
def seen(app: FastAPI, viewer: TestClient) -> Callable[..., Node]:
    """The page of a machine that gives these answers."""

    def look(*answers: ProbeSnapshot, path: str = "/live", status: int = 200) -> Node:
        put(app, *answers)
        return page(viewer, path, status)

    return look


Seen = Callable[..., Node]


def readings(node: Node) -> dict[str, str]:
    return {row.one("dt").text: row.one("dd").text for row in node.all("dl")[0].all("div")}


def absent(absence: Absence, source: str = "nvidia", label: str = "NVIDIA cards") -> ProbeSnapshot:
    return ProbeSnapshot.absent(source, label, "cards", absence, lambda: TAKEN_AT)


def test_without_a_driver_the_page_is_calm(seen: Seen) -> None:
    tree = seen(absent(Absence.NO_DRIVER), absent(Absence.NO_DRIVER, "amd", "AMD cards"), host())
    assert tree.id("source-nvidia").text.startswith("NVIDIA cards")
    assert tree.text.count(Absence.NO_DRIVER.message) == 2
    assert not tree.all("article")
    assert not tree.all(role="alert")
    for word in ("error", "fail", "warning"):
        assert word not in tree.id("main").text.casefold()
    assert "TOKENROOF_SERVERS" in tree.id("servers").text


@pytest.mark.parametrize("absence", [Absence.NOT_INSTALLED, Absence.TIMEOUT])
def test_every_absence_says_its_reason_and_the_way_on(seen: Seen, absence: Absence) -> None:
    tree = seen(absent(absence))
    assert absence.message in tree.text
    assert "/" in [a["href"] for a in tree.id("main").all("a")]


def test_every_reading_is_shown_or_says_why_not(seen: Seen) -> None:
    article = seen(cards(card(**FULL))).id("card-nvidia-0")
    assert article.one("h3").text == "0 · NVIDIA H100 80GB HBM3"
    assert readings(article) == {
        "Memory used": "20 GiB",
        "Memory reserved by the driver": "600 MiB",
        "Memory free": "59 GiB",
        "Memory in all": "79.65 GiB",
        "Bandwidth in use": "62 % of the peak",
        "Tensor pipes busy": "22 % of the cycles",
        "A kernel ran in": "93 % of the last sample",
        "Clocks held down by": "power cap, software thermal limit",
        "SM clock": "1,755 MHz",
        "Power": "432 W",
        "Temperature": "61 °C",
        "PCIe link": "generation 5, 16 lanes",
        "NVLink sent": "42 GB/s",
        "Peak bandwidth, derived": "3.352 TB/s",
        "Split into MIG instances": "no",
    }
    assert float(article.one("meter")["value"]) == pytest.approx(20 * GIB / (81_559 * MIB), abs=1e-4)
    missing = article.id("missing-nvidia-0")
    assert "13 readings not to be had" in missing.text
    assert Absence.NOT_SUPPORTED.message in missing.text


def test_zero_is_a_value(seen: Seen) -> None:
    shown = readings(seen(cards(card(gpu_utilization_percent=0, memory_used_bytes=0))).one("article"))
    assert shown["A kernel ran in"] == "0 % of the last sample"
    assert shown["Memory used"] == "0 B"


def test_mig_instances_are_shown_one_by_one(seen: Seen) -> None:
    instance = MigInstance(
        2,
        Reading("1g.10gb"),
        Reading(10 * GIB),
        Reading(3 * GIB),
        Reading(7 * GIB),
        Reading(40.0),
        Reading.missing(Absence.NOT_SUPPORTED),
    )
    split = replace(card(mig_enabled=True), mig_instances=(instance,))
    shown = readings(seen(cards(split)).one("article"))
    assert shown["Instance 2, 1g.10gb"] == "3 GiB of 10 GiB"
    assert shown["Instance 2, 1g.10gb: bandwidth"] == "40 % of its peak"


def test_a_card_that_is_lost_says_so(seen: Seen) -> None:
    tree = seen(cards(card(), CardReadings.unreadable(1, "NVIDIA", Absence.GPU_LOST)))
    lost = tree.id("card-nvidia-1")
    assert Absence.GPU_LOST.message in lost.text
    assert lost.one("h3").text == "1 · unnamed card"


def test_two_missed_polls_make_a_reading_stale_and_one_does_not(seen: Seen) -> None:
    once, twice = (cards(card()).missed(Absence.TIMEOUT, polls) for polls in (1, 2))
    assert "stale" not in seen(once).id("source-nvidia").text
    tree = seen(twice).id("source-nvidia")
    assert "stale, last read at 12:34:56 UTC" in tree.text
    assert Absence.TIMEOUT.message in tree.text
    assert tree.all("article")


@pytest.mark.parametrize(
    ("name", "mib", "id_"), [("NVIDIA H100 80GB HBM3", 81_559, "h100-sxm-80gb"), ("NVIDIA H200", 143_771, "h200-sxm")]
)
def test_use_this_card_opens_the_workbench_on_it(
    app: FastAPI, viewer: TestClient, name: str, mib: int, id_: str
) -> None:
    put(app, cards(card(name=name, memory_total_bytes=mib * MIB)))
    link = page(viewer, "/live").one("article").one("a")
    assert link.text == "Use this card"
    assert items_of(link["href"])["hw"] == id_
    assert page(viewer, link["href"]).id("f-hw").one("option", selected="")["value"] == id_


def test_a_card_the_catalog_does_not_know_fills_in_the_custom_one(app: FastAPI, viewer: TestClient) -> None:
    put(app, cards(card(name="NVIDIA Z9 <b>")))
    article = page(viewer, "/live").one("article")
    assert "does not know this card" in article.text
    href = article.one("a")["href"]
    tree = page(viewer, href, 422)  # the rates are still to be filled in
    assert tree.id("f-hw").one("option", selected="")["value"] == "custom"
    assert tree.id("f-hw_name")["value"] == "NVIDIA Z9 <b>"
    assert tree.id("f-hw_bw")["value"] == "3352"
    assert page(viewer, f"{href}&hw_bf16=989").all(id="metric-memory")


def test_a_bandwidth_that_differs_from_the_catalogs_is_noted(seen: Seen) -> None:
    note = "check which variant this is"
    assert note not in seen(cards(card())).text
    assert note in seen(cards(card(peak_bandwidth_bytes_per_s=2.0e12))).text


def test_each_figure_of_a_server_stands_beside_its_prediction(seen: Seen) -> None:
    tree = seen(cards(card()), served(server(**LLAMA)))
    expected = answer(as_loaded(BASE, server(**LLAMA)).scenario, shipped_catalog()).evaluation.measures.serving
    tile = tree.id("server-1-itl_mean_s")
    assert tile["data-level"] == "measured"
    assert "7.8 ms" in tile.text
    assert f"predicted {quantity(expected.tpot_s.best_known, 's', 3)}" in tile.text
    assert "× the prediction, " in tile.text
    assert "measured: vllm:itl_mean_s" in tile.text
    assert "99 of 100 within 30 ms" in tile.text
    assert "12" in tree.id("server-1-running").text
    assert "as measured: 12 running, 980 tokens of prompt, 210 tokens of answer" in tree.id("server-1").text
    assert "Llama-3.1-8B on H100 SXM5 80GB under vLLM" in tree.text
    assert tree.id("hold").text


def test_use_this_machine_fills_the_workbench(app: FastAPI, viewer: TestClient) -> None:
    put(app, cards(card()), served(server(settings={"max_model_len": "8192"}, **LLAMA)))
    link = next(a for a in page(viewer, "/live").all("a") if a.text == "Use this machine")
    items = items_of(link["href"])
    assert (items["model"], items["hw"], items["max_len"]) == ("llama-3.1-8b", "h100-sxm-80gb", "8192")
    assert page(viewer, link["href"]).all(id="metric-memory")


def test_what_is_asked_for_is_predicted_and_stays_in_the_form(app: FastAPI, viewer: TestClient) -> None:
    asked = "/live?model=qwen3-14b&hw=h200-sxm&tp=2&kv=fp8"
    put(app, cards(card()), served(server(**LLAMA)))
    tree = page(viewer, asked)
    assert "Qwen3-14B on 2 × H200" in tree.text
    assert tree.id("f-model").one("option", selected="")["value"] == "qwen3-14b"
    assert tree.id("chosen").one("input", name="kv")["value"] == "fp8"
    assert tree.id("live")["hx-sse:connect"].startswith("/live/stream?model=qwen3-14b")
    twin = json_of(viewer, twin_of(tree))["live"]
    assert twin["scenario"]["model"]["id"] == "qwen3-14b"
    assert not twin["scenario_is_probed"]


@pytest.mark.parametrize(
    ("query", "field", "word"),
    [
        ("model=nonsense&hw=h200-sxm", "model", "nonsense"),
        ("model=qwen3-14b&hw=h200-sxm&tp=NaN", "tp", "number"),
        ("model=qwen3-14b&hw=h200-sxm&tp=1e999", "tp", "number"),
        ("model=<script>&hw=h200-sxm", "model", "small letters"),
    ],
)
def test_a_refused_question_is_told_at_its_field_and_the_readings_stay(
    app: FastAPI, viewer: TestClient, query: str, field: str, word: str
) -> None:
    put(app, cards(card()), served(server(**LLAMA)))
    tree = page(viewer, f"/live?{query}", 422)
    assert word in tree.id(f"msg-{field}").text
    assert tree.all(id="server-1-running")
    assert viewer.get(f"/api/v1/probes?{query}").status_code == 422


def test_a_server_without_what_a_scenario_needs_says_what_is_missing(seen: Seen) -> None:
    tree = seen(served(server(**LLAMA | {"model_name": "acme/secret"})))
    assert "which model of the catalog it serves and which card it runs on" in tree.id("server-1").text
    assert "1,500" in tree.id("server-1-output_tokens_per_s").text


def test_an_unrecognised_server_lists_what_it_reports(seen: Seen) -> None:
    unknown = ProbeSnapshot.absent(
        "server-1", "mine", "server", Absence.UNRECOGNISED, lambda: TAKEN_AT, ("acme_requests", "acme_<b>")
    )
    tree = seen(unknown).id("server-1")
    assert Absence.UNRECOGNISED.message in tree.text
    assert [code.text for code in tree.all("code")] == ["acme_requests", "acme_<b>"]


def test_names_of_a_server_are_text(seen: Seen) -> None:
    hostile = served(server(**LLAMA | {"model_name": '<img src=x onerror="x">'}), label='"><script>')
    tree = seen(cards(card()), hostile)
    assert not tree.all("img")
    assert '"><script>' in tree.id("title-server-1").text


def test_the_twin_holds_the_same_readings_and_no_uuid(app: FastAPI, viewer: TestClient) -> None:
    put(app, cards(card(**FULL)), served(server(**LLAMA)))
    tree = page(viewer, "/live")
    twin = json_of(viewer, twin_of(tree))
    assert twin["probes"][0]["cards"][0]["temperature_c"]["value"] == 61
    assert twin["live"]["servers"][0]["limited_by"]["sentence"] == tree.id("hold").one("p").text
    assert "GPU-canary" not in viewer.get(twin_of(tree)).text + tree.raw


def test_the_stream_sends_the_part_of_the_page_that_moves(app: FastAPI) -> None:
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
            return (await asyncio.wait_for(got.get(), 5)).decode()
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    put(app, cards(card()), served(server(**LLAMA)))
    event = asyncio.run(first_event())
    data = "\n".join(line[5:].removeprefix(" ") for line in event.splitlines() if line.startswith("data:"))
    fragment = parse(data)
    assert fragment.id("card-nvidia-0").one("h3").text == "0 · NVIDIA H100 80GB HBM3"
    assert fragment.all(id="server-1-running")
    assert not fragment.all("form")


def test_the_page_connects_to_the_stream_and_is_not_cached(reader: TestClient) -> None:
    live = page(reader, "/live").id("live")
    assert (live["hx-sse:connect"], live["data-interval"]) == ("/live/stream", "1.0")
    assert reader.get("/live").headers["cache-control"] == "no-store"


def test_a_crowd_is_told_to_come_back(viewer: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Sampler, "viewers", property(lambda self: 64))
    answer = viewer.get("/live/stream")
    assert answer.status_code == 503
    assert answer.headers["retry-after"] == "10"


def test_nobody_names_a_server_where_the_operator_does_not_allow_it(viewer: TestClient) -> None:
    assert not page(viewer, "/live").all(id="f-address")
    answer = viewer.post("/live/server", data={"address": "http://127.0.0.1:9", "query": ""})
    assert answer.status_code == 403
    assert COOKIE not in viewer.cookies


def test_of_several_servers_each_says_what_it_is_beside_and_what_is_in_its_way(seen: Seen) -> None:
    other = server("sglang", **LLAMA | {"model_name": "Qwen/Qwen3-14B", "running": 0.0})
    tree = seen(cards(card(), card(1)), served(server(**LLAMA)), served(other, 2))
    assert not tree.all(id="hold")
    first, second = tree.id("server-1").text, tree.id("server-2").text
    assert "Predicted for Llama-3.1-8B on 2 × H100 SXM5 80GB under vLLM at the load of this moment" in first
    assert "taken to use all 2 cards" in first
    assert "In the way now Neither roof" in first
    assert "In the way now Nothing: no request is running." in second
    assert "Predicted for what was probed" not in tree.text


def test_another_model_than_runs_is_told_beside_the_figures(seen: Seen) -> None:
    tree = seen(served(server(**LLAMA)), path="/live?model=qwen3-14b&hw=h200-sxm")
    assert "It serves Llama-3.1-8B, and the prediction is of Qwen3-14B" in tree.id("server-1").text


def test_stale_readings_are_of_then(seen: Seen) -> None:
    stale = served(server(**LLAMA)).missed(Absence.UNREACHABLE, 5)
    tree = seen(cards(card()), stale)
    assert "at the load of its last reading" in tree.id("server-1").text
    assert "Neither roof" not in tree.text


def test_what_the_probes_tell_stands_in_the_form_and_goes_along(seen: Seen) -> None:
    """A server on a card that nobody sees: only the card is left to be chosen."""
    tree = seen(served(server("sglang", {"context_len": "8192", "tensor_parallel_size": "2"}, **LLAMA))).id("chosen")
    assert tree.id("f-model").one("option", selected="")["value"] == "llama-3.1-8b"
    assert tree.id("f-engine").one("option", selected="")["value"] == "sglang"
    assert tree.id("f-tp")["value"] == "2"
    assert tree.one("input", name="max_len")["value"] == "8192"
    assert tree.id("f-hw").one("option", selected="")["value"] == ""


def test_of_many_cards_the_headlines_are_in_sight_and_the_rest_is_folded(seen: Seen) -> None:
    few, many = (seen(cards(*(card(at, **FULL) for at in range(count)))) for count in (2, 3))
    assert not few.all(id="more-nvidia-0")
    folded = many.id("card-nvidia-0")
    assert list(readings(folded))[:2] == ["Memory used", "Memory in all"]
    assert "NVLink sent" in folded.id("more-nvidia-0").text
    told = [row.one("dt").text for row in folded.all("div") if row.all("dt")]
    assert sorted(told) == sorted(row.one("dt").text for row in few.id("card-nvidia-0").all("div") if row.all("dt"))


def test_an_interval_has_its_unit_once(seen: Seen) -> None:
    tile = seen(cards(card()), served(server(**LLAMA))).id("server-1-output_tokens_per_s").text
    assert re.search(r"predicted [0-9,]+ tokens/s ?[0-9,]+ to [0-9,]+ tokens/s in eight cases of ten", tile)
