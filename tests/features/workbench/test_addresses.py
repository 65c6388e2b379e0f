"""Addresses reproduce what is shown; units change how sizes are written and nothing else."""

import re
from urllib.parse import parse_qsl, urlsplit

import pytest
from starlette.testclient import TestClient

from tests.features.asking import SCENARIOS, address, items_of, page, partial, twin_of
from tests.features.dom import Node

DEFAULTS = {
    "v": "1",
    "count": "1",
    "w": "bf16",
    "kv": "bf16",
    "compute": "",
    "tp": "1",
    "pp": "1",
    "ep": "1",
    "dp": "1",
    "engine": "vllm",
    "engine_version": "",
    "util": "0.9",
    "max_len": "",
    "max_seqs": "",
    "max_batched": "8192",
    "block": "16",
    "prefix": "1",
    "eager": "0",
    "dcp": "1",
    "under": "",
    **dict.fromkeys(("seen", "loaded", "activation", "non_framework", "graphs", "pool"), ""),
    **dict.fromkeys(("log_tokens", "log_blocks", "log_concurrency"), ""),
    "prompt": "1000",
    "out": "500",
    "batch": "64",
    "mtp": "0",
    "hit": "0",
    "spread": "fixed",
    "longest": "",
    "shared": "0",
    "reserved": "",
    "attention": "",
    "chunked": "1",
    "static": "0",
    "ttft": "",
    "tpot": "",
    "basis": "reported",
    "units": "gb",
}
SIZE = re.compile(r"[\d,.]+ (?:[kMGTP]B|[KMGT]iB)(?![A-Za-z/])")


def results(tree: Node) -> str:
    return tree.id("results").raw


def numbers(tree: Node) -> dict[str, str]:
    return {id_: tree.id(f"metric-{id_}").text for id_ in ("memory", "room", "ttft", "tpot", "latency", "throughput")}


def test_the_first_view_is_the_explicit_defaults(reader: TestClient) -> None:
    assert results(page(reader, "/")) == results(page(reader, address(DEFAULTS)))
    assert results(page(reader, "/")) == results(page(reader, address()))


@pytest.mark.parametrize("name", SCENARIOS)
@pytest.mark.parametrize("units", ["gb", "gib"])
def test_the_canonical_address_gives_the_same_results(reader: TestClient, name: str, units: str) -> None:
    first = page(reader, address(SCENARIOS[name], units=units))
    canonical = first.id("results")["data-address"]
    again = page(reader, canonical)
    assert results(again) == results(first)
    assert again.id("results")["data-address"] == canonical
    assert partial(reader, address(SCENARIOS[name], units=units)).headers["hx-push-url"] == canonical
    assert [n["value"] for n in again.id("scenario").all("input")] == [
        n["value"] for n in first.id("scenario").all("input")
    ]


def test_the_canonical_address_writes_every_field_out(reader: TestClient) -> None:
    items = items_of(page(reader, "/").id("results")["data-address"])
    assert set(items) == (set(DEFAULTS) | {"model", "hw"}) - {"units"}
    assert {k: v for k, v in items.items() if k in DEFAULTS} == {
        **{k: v for k, v in DEFAULTS.items() if k != "units"},
        "compute": "bf16",
    }


@pytest.mark.parametrize("name", ["Größe & mehr", "a=b&c=d", "100 %", "+plus+", "#hash?", "שלום 👩‍💻", "<b>&amp;"])
def test_any_name_survives_the_address(reader: TestClient, name: str) -> None:
    card = {"hw": "custom", "hw_mem": "80", "hw_bw": "3350", "hw_bf16": "989", "hw_name": name}
    canonical = page(reader, address(card)).id("results")["data-address"]
    assert items_of(canonical)["hw_name"] == name
    tree = page(reader, canonical)
    assert tree.id("f-hw_name")["value"] == name
    assert reader.get(twin_of(tree)).json()["scenario"]["hardware"]["custom"]["name"] == name


@pytest.mark.parametrize("name", SCENARIOS)
def test_units_change_sizes_and_no_time(reader: TestClient, name: str) -> None:
    decimal, binary = (page(reader, address(SCENARIOS[name], units=units)) for units in ("gb", "gib"))
    for id_ in ("ttft", "tpot", "latency", "throughput"):
        shown = [tree.id(f"metric-{id_}") for tree in (decimal, binary)]
        assert SIZE.sub("", shown[0].text) == SIZE.sub("", shown[1].text)
    assert "iB" not in re.sub(r"GiB is 2|GiB$", "", numbers(decimal)["memory"])
    for id_ in ("memory", "room"):
        for size in SIZE.findall(numbers(binary)[id_]):
            assert size.endswith("iB"), (id_, size)
    text = SIZE.sub("·", results(decimal))
    assert re.findall(r"[\d,.]+ [mµn]?s\b", text) == re.findall(r"[\d,.]+ [mµn]?s\b", SIZE.sub("·", results(binary)))


def test_no_view_mixes_the_two(reader: TestClient) -> None:
    for units, other in (("gb", "iB"), ("gib", "GB")):
        tree = page(reader, address(units=units))
        for part in ("metric-memory", "metric-room", "verdict"):
            found = SIZE.findall(tree.id(part).text)
            assert not [size for size in found if size.endswith(other)], (units, part)


def test_units_leave_the_scenario_alone(reader: TestClient) -> None:
    decimal, binary = (page(reader, address(units=units)) for units in ("gb", "gib"))
    assert twin_of(decimal) == twin_of(binary)
    query = [dict(parse_qsl(t.id("save").one("input", name="query")["value"])) for t in (decimal, binary)]
    assert {k: v for k, v in query[1].items() if k != "units"} == {k: v for k, v in query[0].items() if k != "units"}
    assert binary.id("scenario").one("input", name="units")["value"] == "gib"


def test_the_toggle_leads_to_the_other_units_and_back(reader: TestClient) -> None:
    tree = page(reader, address(prompt="2000"))
    group = tree.one(role="group", aria_label="Units of sizes")
    assert group.one(aria_current="true").text == "GB"
    there = page(reader, group.all("a")[1]["href"])
    back = there.one(role="group", aria_label="Units of sizes")
    assert back.one(aria_current="true").text == "GiB"
    assert results(page(reader, back.all("a")[0]["href"])) == results(tree)


def test_links_of_a_view_in_gib_stay_in_gib(reader: TestClient) -> None:
    tree = page(reader, address(units="gib"))
    presets = tree.one("nav", aria_label="Start from a question").all("a")
    charts = [a["href"] for a in tree.all("a") if a["href"].startswith("/export/")]
    for href in [*(a["href"] for a in presets), *charts]:
        assert items_of(href)["units"] == "gib"


@pytest.mark.parametrize("units", ["GIB", "mb", "", "<b>"])
def test_unknown_units_are_the_usual_ones(reader: TestClient, units: str) -> None:
    assert results(page(reader, address(units=units))) == results(page(reader, address()))


def test_addresses_stay_short_enough_for_a_chat(reader: TestClient) -> None:
    assert len(urlsplit(page(reader, "/").id("results")["data-address"]).query) < 1_800
