"""How the engine divides a GPU, on the page: the evaluation's own numbers, and the engine named for what it is."""

import re

import pytest
from starlette.testclient import TestClient

from app.calc.quantity import quantity
from tests.features.asking import address, items_of, json_of, page, twin_of
from tests.features.dom import Node

FIELDS = {"weights": "loaded", "driver": "seen", "activation": "activation", "graphs": "graphs"}
HYBRID = {"model": "qwen3.5-27b", "hw": "h100-sxm-80gb", "kv": "fp8"}
STAGED = {"model": "llama-3.1-70b", "pp": "4", "tp": "2"}
ENGINES = ("vllm", "sglang", "tensorrt-llm", "llama.cpp", "llm-d", "deepinfer", "ideal")


def table(tree: Node, label: str) -> list[dict[str, str]]:
    return tree.one(role="region", aria_label=f"{label}, table").table()


def lead(tree: Node) -> str:
    return tree.id("division").one("p", **{"class": "lead"}).text


@pytest.mark.parametrize("engine", ENGINES)
def test_each_part_has_its_size_interval_and_evidence(reader: TestClient, engine: str) -> None:
    tree = page(reader, address(engine=engine))
    document = json_of(reader, twin_of(tree))["memory"]
    rows = table(tree, "What it needs beside the cache")
    assert len(rows) == 1 + len(document["overheads"])
    assert rows[0]["Size"] == quantity(document["per_gpu"]["weights_bytes"], "B", 3)
    for row, overhead in zip(rows[1:], document["overheads"], strict=True):
        sides = overhead["bytes"]
        assert row["Size"] == quantity(sides["mid"], "B", 3)
        between = f"{quantity(sides['low'], 'B', 3)} to {quantity(sides['high'], 'B', 3)}"
        assert row["Eight cases of ten"] == (between if sides["low"] != sides["high"] else "–")
        assert row["Evidence"] == overhead["evidence"] != ""
        assert (row["Comes out of"] == "outside the share") == (
            not overhead["charged"] and overhead["part"] != "driver"
        )
        assert row["How it is known"] == ("known" if overhead["part"] == "driver" else "assumed")


def test_each_part_leads_to_the_field_that_sets_it(reader: TestClient) -> None:
    tree = page(reader, address())
    links = [a["href"] for a in tree.id("division").all("a") if a["href"].startswith("#")]
    assert links == [f"#f-{name}" for name in ("loaded", "seen", "activation", "non_framework", "graphs")]
    for link in links:
        assert tree.id(link[1:]).tag == "input"


def test_a_part_that_is_given_says_so(reader: TestClient) -> None:
    rows = table(page(reader, address(graphs="1 GiB", loaded="15 GiB")), "What it needs beside the cache")
    by_part = {row["Part"]: row for row in rows}
    for part, size in (("CUDA graphs", 2.0**30), ("Weights", 15 * 2.0**30)):
        assert by_part[part]["How it is known"] == "given"
        assert by_part[part]["Size"] == quantity(size, "B", 3)
        assert by_part[part]["Eight cases of ten"] == "–"


@pytest.mark.parametrize("engine", ENGINES)
def test_what_its_log_will_print(reader: TestClient, engine: str) -> None:
    tree = page(reader, address(engine=engine))
    lines = json_of(reader, twin_of(tree))["memory"]["log_lines"]
    shown = {
        dt.text: dd.text for dt, dd in zip(tree.id("division").all("dt"), tree.id("division").all("dd"), strict=True)
    }
    for line in lines:
        if line["id"] != "other_tokens":  # one group of layers: both forms are one number
            assert shown[line["label"]].startswith(line["text"])
    assert ("What its log will print" in tree.text) == bool(lines)
    assert "Why the two token lines differ" not in tree.text


def test_why_the_two_token_lines_of_a_hybrid_differ(reader: TestClient) -> None:
    tree = page(reader, address(HYBRID))
    printed = {line["id"]: line["value"] for line in json_of(reader, twin_of(tree))["memory"]["log_lines"]}
    text = tree.id("division").text
    assert printed["tokens"] != printed["other_tokens"]
    assert f"= {printed['other_tokens']:,} tokens, as if every group grew" in text
    assert f"together {printed['tokens']:,} tokens" in text
    groups, smallest = re.search(r"÷ (\d+)⌋ × ([\d,]+) =", text).groups()  # type: ignore[union-attr]
    assert printed["blocks"] // int(groups) * int(smallest.replace(",", "")) == printed["other_tokens"]


def test_every_stage_and_the_product_of_gpus(reader: TestClient) -> None:
    tree = page(reader, address(STAGED, count="16"))
    assert "16 GPUs = 2 replicas × TP 2 × PP 4 × DP 1" in lead(tree)
    assert "The 2 GPUs of a stage are alike" in lead(tree)
    document = json_of(reader, twin_of(tree))["memory"]
    rows = table(tree, "A GPU of each pipeline stage")
    assert [row["Stage"][0] for row in rows] == ["1", "2", "3", "4"]
    for row, stage in zip(rows, document["stages"], strict=True):
        assert row["Layers"] == str(stage["layers"])
        assert row["Weights"] == quantity(stage["weights_bytes"], "B", 3)
        assert row["Cache pool"] == quantity(stage["kv_pool_bytes"], "B", 3)
        assert ("tightest" in row["Stage"]) == stage["tightest"]
    assert "GPUs =" not in lead(page(reader, address()))


def test_a_stage_that_does_not_hold_its_weights_says_how_much_is_missing(reader: TestClient) -> None:
    tree = page(reader, address(model="llama-3.1-405b", pp="2"))
    assert all(row["Cache pool"].startswith("− ") for row in table(tree, "A GPU of each pipeline stage"))


def test_a_logged_figure_stands_beside_the_predicted_one(reader: TestClient) -> None:
    tree = page(reader, address(log_tokens="400000", log_concurrency="3.05"))
    lines = json_of(reader, twin_of(tree))["comparison"]
    rows = table(tree, "Logged beside predicted")
    assert [row["Figure"] for row in rows] == [line["label"] for line in lines]
    assert rows[0]["Logged"] == "400,000 tokens"
    difference = 100 * lines[0]["difference"]
    assert rows[0]["Difference"].startswith("+")
    assert float(rows[0]["Difference"][1:-2]) == pytest.approx(difference, rel=1e-2)
    assert rows[0]["In words"] == lines[0]["reason"]
    assert "Logged beside predicted" not in page(reader, address()).text


@pytest.mark.parametrize(
    ("engine", "words"),
    [
        ("vllm", "vLLM: "),
        ("deepinfer", "DeepInfer, treated as vLLM, from which it grew: "),
        ("llm-d", "llm-d with vLLM underneath: "),
        ("ideal", "Ideal engine: "),
    ],
)
def test_the_engine_is_named_for_what_it_is(reader: TestClient, engine: str, words: str) -> None:
    tree = page(reader, address(engine=engine))
    assert lead(tree).startswith(words)
    assert words.removesuffix(": ") in tree.id("chart-data").raw
    for found in re.findall(r"DeepInfer[^.:;\"]*", tree.id("results").raw):
        assert "treated as vLLM, from which it grew" in found


def test_what_llm_d_runs_is_chosen_and_named(reader: TestClient) -> None:
    tree = page(reader, address(engine="llm-d", under="sglang", engine_version="0.5.4"))
    assert lead(tree).startswith("llm-d with SGLang 0.5.4 underneath: ")
    assert "estimate, SGLang’s rules" in tree.id("metric-room").text


@pytest.mark.parametrize("units", ["gb", "gib"])
def test_the_two_cards_of_memory_show_their_interval(reader: TestClient, units: str) -> None:
    tree = page(reader, address(units=units))
    held = json_of(reader, twin_of(tree))["memory"]
    sides, pool = held["max_concurrency_interval"], held["kv_pool_interval_bytes"]
    assert f"{sides['low']:,} to {sides['high']:,} in eight cases of ten" in tree.id("metric-room").text
    low, high = (held["needed_bytes"] + pool["mid"] - pool[side] for side in ("high", "low"))
    binary = units == "gib"
    between = f"{quantity(low, 'B', 3, binary=binary)} to {quantity(high, 'B', 3, binary=binary)}"
    assert f"{between} in eight cases of ten" in tree.id("metric-memory").text


@pytest.mark.parametrize(
    ("changes", "level"),
    [({}, "estimate"), ({"engine": "ideal"}, "capacity"), ({"pool": "40 GiB"}, "measured")],
)
def test_an_estimate_a_ceiling_and_a_measurement_look_different(
    reader: TestClient, changes: dict[str, str], level: str
) -> None:
    tree = page(reader, address(changes))
    for id_ in ("memory", "room"):
        assert tree.id(f"metric-{id_}")["data-level"] == level
        assert ("eight cases of ten" in tree.id(f"metric-{id_}").text) == (level == "estimate")
    assert tree.id("metric-tpot")["data-level"] == "estimate"


def test_slots_that_do_not_fit_are_told_and_the_pool_is_not_called_empty(reader: TestClient) -> None:
    tree = page(reader, address(hw="rtx-4090", engine="llama.cpp", batch="4"))
    assert "it would not start" in tree.id("division").text
    assert "pool of 0 tokens" not in tree.id("metric-room").text
    assert "would not start" not in page(reader, address(engine="llama.cpp", max_len="8192")).text


def test_a_saved_page_has_the_section_without_links_into_a_form(client: TestClient) -> None:
    query = "&".join(f"{k}={v}" for k, v in items_of(page(client, address()).id("results")["data-address"]).items())
    saved = client.post("/save", data={"title": "Kept", "query": query, "expires_in_days": "30"})
    assert saved.status_code == 200
    assert 'id="division"' in saved.text
    assert 'href="#f-' not in saved.text
