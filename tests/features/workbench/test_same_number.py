"""One number is the same on the page, in the JSON twin, in a download and in its own working; and the parts divide."""

import csv
import math
from collections.abc import Mapping
from typing import Any

import pytest
from starlette.testclient import TestClient

from app.calc.quantity import quantity, significant
from app.features.workbench.charts.gallery import CHARTS
from tests.features.asking import SCENARIOS, address, json_of, page, read_quantity, twin_of
from tests.features.dom import Node

SHOWN = {  # metric: path in the JSON document, unit
    "memory": ("memory.needed_bytes", "B"),
    "ttft": ("serving.ttft_s", "s"),
    "tpot": ("serving.tpot_s", "s"),
    "latency": ("serving.total_latency_s", "s"),
}
ROUNDED = 6e-3  # three digits


@pytest.fixture(params=SCENARIOS)
def scenario(request: pytest.FixtureRequest) -> Mapping[str, str]:
    return SCENARIOS[request.param]


def at(document: Any, path: str) -> Any:
    for key in path.split("."):
        document = document[key]
    return document


def rows(reader: TestClient, tree: Node, chart: str) -> list[dict[str, str]]:
    """The rows of a chart's CSV."""
    link = next(a["href"] for a in tree.all("a") if a["href"].startswith(f"/export/{chart}.csv?"))
    text = [line for line in reader.get(link).text.splitlines() if not line.startswith("#")]
    return list(csv.DictReader(text))


def workings(tree: Node) -> dict[tuple[str, str, str], Node]:
    """Every working on the page, by the label of its number, the formula, and that with the numbers put in."""
    found = {}
    for section in tree.all("section"):
        headings = [node for node in section if node.tag in ("h2", "h3", "h4")]
        if len(headings) == 1 and "Source: " in section.text:
            formula, written = (code.text for code in section.all("code")[:2])
            found[headings[0].text, formula, written] = section
    return found


@pytest.mark.parametrize("units", ["gb", "gib"])
def test_page_and_twin_say_the_same(reader: TestClient, scenario: Mapping[str, str], units: str) -> None:
    tree = page(reader, address(scenario, units=units))
    document, binary = json_of(reader, twin_of(tree)), units == "gib"
    for id_, (path, unit) in SHOWN.items():
        found = at(document, path)
        text = tree.id(f"metric-{id_}").text
        levels = [found] if isinstance(found, float) else [v for v in found.values() if v is not None]
        for value in levels:  # the ceiling, what is expected, and both ends of its interval
            assert quantity(value, unit, 3, binary=binary) in text
    room = document["memory"]["max_concurrency"]
    assert f"{room:,} sequence" in tree.id("metric-room").text
    for throughput in filter(None, document["serving"]["output_tokens_per_s"].values()):
        assert f"{significant(throughput, 3)} tokens/s" in tree.id("metric-throughput").text


def test_every_explanation_of_the_twin_stands_on_the_page(reader: TestClient, scenario: Mapping[str, str]) -> None:
    tree = page(reader, address(scenario))
    shown = workings(tree)
    explanations = json_of(reader, twin_of(tree))["explanations"]
    sections = [shown.get((e["label"], e["formula"], e["substituted"])) for e in explanations]
    assert len(shown) == len(explanations)
    for explanation, section in zip(explanations, sections, strict=True):
        assert section is not None, explanation["id"]
        terms = section.table()
        assert [row["Symbol"] for row in terms] == [term["symbol"] for term in explanation["terms"]]
        for row, term in zip(terms, explanation["terms"], strict=True):
            assert row["Value"] == quantity(term["value"], term["unit"])
        assert explanation["source"] in section.text


def test_an_explanations_result_is_the_number_of_the_twin(reader: TestClient, scenario: Mapping[str, str]) -> None:
    document = json_of(reader, twin_of(page(reader, address(scenario))))
    for explanation in document["explanations"]:
        assert explanation["value"] == at(document, explanation["id"])
        assert explanation["substituted"].endswith(f"= {quantity(explanation['value'], explanation['unit'])}")


def test_downloads_hold_the_twins_numbers_unrounded(reader: TestClient, scenario: Mapping[str, str]) -> None:
    tree = page(reader, address(scenario))
    document = json_of(reader, twin_of(tree))
    roofline = {row["work"]: row for row in rows(reader, tree, "roofline")}
    for phase in ("prefill", "decode"):
        assert float(roofline[phase]["FLOP"]) == document[phase]["flops"]
        assert float(roofline[phase]["bytes (B)"]) == document[phase]["bytes"]
        assert float(roofline[phase]["intensity (FLOP/B)"]) == document[phase]["intensity_flops_per_byte"]
        assert roofline[phase]["bound"] == document[phase]["bound"]
    memory = {row["part"]: float(row["bytes (B)"]) for row in rows(reader, tree, "memory")}
    assert memory["Weights"] == pytest.approx(document["memory"]["per_gpu"]["weights_bytes"], rel=1e-12)
    assert memory["Card"] == document["memory"]["per_gpu"]["capacity_bytes"]
    assert memory["Engine’s share"] == document["memory"]["budget_bytes"]
    running, pool = document["decode"]["concurrency"], document["memory"]["kv_pool_interval_bytes"]
    if pool["mid"] > 0:
        assert memory["Cache pool"] == pool["mid"]
        used = running * document["memory"]["gpu_bytes_per_sequence"]
        assert memory["Cache in use"] == pytest.approx(used, rel=1e-12)
    else:
        assert memory["Missing"] == -pool["mid"]
    batch = {int(float(row["batch"])): row for row in rows(reader, tree, "batch")}
    step = float(batch[running]["a token, with cache (s)"])
    assert step == pytest.approx(document["serving"]["tpot_s"]["ceiling"])
    time = {(row["of"], row["part"]): float(row["time (s)"]) for row in rows(reader, tree, "time")}
    assert time["answer", "prefill"] == document["serving"]["ttft_s"]["ceiling"]


def test_the_pool_divided_by_a_tokens_bytes_is_the_tokens(reader: TestClient, scenario: Mapping[str, str]) -> None:
    """With the numbers as they are displayed, as a reader would; but for the blocks that the engine fills up."""
    tree = page(reader, address(scenario))
    shown = {written: written.rpartition(" = ")[2] for *_, written in workings(tree)}
    by_id = {e["id"]: shown[e["substituted"]] for e in json_of(reader, twin_of(tree))["explanations"]}
    pool, per_token = (read_quantity(by_id[f"memory.{key}"]) for key in ("per_gpu.kv_pool_bytes", "kv_bytes_per_token"))
    tokens, room = (read_quantity(by_id[f"memory.{key}"]) for key in ("kv_pool_tokens", "max_concurrency"))
    assert f"pool of {tokens:,.0f} tokens" in tree.id("metric-room").text
    per_sequence = read_quantity(by_id["memory.gpu_bytes_per_sequence"])
    assert room == pytest.approx(math.floor(pool / per_sequence), abs=1)
    if not tree.id("division").all(
        "div", **{"class": "line-other_tokens"}
    ):  # several groups of layers share the blocks
        assert tokens == pytest.approx(math.floor(pool / per_token), rel=1e-3, abs=16)


def test_the_parts_beside_a_number_give_it(reader: TestClient, scenario: Mapping[str, str]) -> None:
    tree = page(reader, address(scenario))
    document = json_of(reader, twin_of(tree))
    workload, held = document["scenario"]["workload"], document["memory"]
    for level in ("ceiling", "mid"):
        told = [document["serving"][f"{key}_s"][level] for key in ("ttft", "tpot", "total_latency")]
        if None not in told:  # no first token is told where requests wait for a place
            ttft, tpot, latency = (read_quantity(quantity(value, "s", 3)) for value in told)
            assert ttft + tpot * workload["output_tokens"] == pytest.approx(latency, rel=2 * ROUNDED)
    causes = document["expected"]["tpot_causes_s"]
    assert sum(causes.values()) == pytest.approx(document["serving"]["tpot_s"]["mid"])
    beside = tree.id("metric-throughput").text
    users = min(document["decode"]["concurrency"], held["max_concurrency"]) or document["decode"]["concurrency"]
    assert f"{users:,} × {workload['output_tokens']:,} tokens ÷ " in beside
    residency = read_quantity(beside.partition("tokens ÷ ")[2])
    throughput = document["serving"]["output_tokens_per_s"]["mid"]
    assert users * workload["output_tokens"] / residency == pytest.approx(throughput, rel=ROUNDED)
    pace = read_quantity(tree.id("metric-tpot").text.partition("TPOT) per user ")[2])
    assert 1 / pace == pytest.approx(document["serving"]["output_tokens_per_s_per_user"]["mid"], rel=ROUNDED)


def test_the_three_levels_are_the_twins(reader: TestClient, scenario: Mapping[str, str]) -> None:
    tree = page(reader, address(scenario))
    document = json_of(reader, twin_of(tree))
    rule, held = document["rule_of_thumb"], document["memory"]
    table = {
        row["Quantity"]: row for row in tree.one(role="region", aria_label="Three levels of answer, table").table()
    }
    prefill = table["Prefill of one prompt"]
    assert prefill["Rule of thumb"] == quantity(rule["prefill_s"], "s", 3)
    assert prefill["Ceiling"] == quantity(document["prefill"]["ceiling_s"], "s", 3)
    step = table["Decode step"]
    assert step["Rule of thumb"] == quantity(rule["kv_step_s"], "s", 3)
    assert step["Ceiling"] == quantity(document["decode"]["ceiling_s"], "s", 3)
    tokens = table["KV cache capacity"]
    assert tokens["Rule of thumb"] == f"{rule['kv_capacity_tokens']:,}"
    assert tokens["Ceiling"] == f"{held['kv_pool_tokens']:,}"
    assert prefill["Expected"] == quantity(document["prefill"]["expected_s"]["mid"], "s", 3)
    assert step["Expected"] == quantity(document["decode"]["expected_s"]["mid"], "s", 3)
    assert table["End-to-end latency"]["Expected"] == quantity(document["serving"]["total_latency_s"]["mid"], "s", 3)
    assert tokens["Expected"] == "–"


@pytest.mark.parametrize("units", ["gb", "gib"])
def test_the_table_of_a_chart_is_its_download(reader: TestClient, scenario: Mapping[str, str], units: str) -> None:
    tree = page(reader, address(scenario, units=units))
    for chart in CHARTS:
        shown = tree.id(f"table-{chart}").table()
        downloaded = rows(reader, tree, chart)
        assert [list(row) for row in shown] == [list(row) for row in downloaded]
        for row, exact in zip(shown, downloaded, strict=True):
            for key, text in list(row.items())[1:]:
                value = exact[key]
                try:
                    assert text == significant(float(value), 5)
                except ValueError:
                    assert text == value.replace("_", " ")
