"""The page of each accelerator: every fact, how far to trust it, where it leads; and of one that is not there."""

from itertools import pairwise
from typing import Any

import pytest
from starlette.testclient import TestClient

from app.calc.quantity import significant
from app.catalog.accelerators import FACTS, AcceleratorRecord
from app.features.catalog.hardware_view import CONFIDENCE_WORDS, LABELS, Held, fact_text
from app.web.templating import Templates
from tests.factories import shipped_catalog
from tests.features.asking import json_of, page, twin_of
from tests.features.dom import Node, parse

RECORDS = shipped_catalog().accelerators
# Every third; the API and the list meet them all.
SOME = dict(list(RECORDS.items())[::3])
EACH = pytest.mark.parametrize("record", SOME.values(), ids=SOME)


def test_every_fact_of_the_catalog_has_a_name() -> None:
    assert set(LABELS) == set(FACTS)


@EACH
def test_the_page_of_each_shows_its_numbers(reader: TestClient, record: AcceleratorRecord) -> None:
    tree = page(reader, f"/hardware/{record.id}")
    assert tree.one("h1").text.startswith(record.name)
    shown = {row.one("th").text: row.all("td")[0].text for table in facts(tree) for row in table.one("tbody").all("tr")}
    for path, (label, _) in LABELS.items():
        text = fact_text(path, record.fact(path))
        if path != "price.basis":
            assert shown[label].endswith(text or "unknown"), path
            assert ("uncertain:" in shown[label]) == (path in record.uncertain and text is not None)
    trust = tree.one("section", aria_labelledby="trust-title").text
    assert CONFIDENCE_WORDS[record.confidence] in trust
    assert all(caveat in trust for caveat in record.caveats)
    sources = [item.text for item in tree.one("section", aria_labelledby="sources-title").all("li")]
    assert sources == list(record.sources)
    if record.disagreements:
        rows = tree.one("table", **{"class": "disputes"}).table()
        assert [row["Why"] for row in rows] == [entry.reason for entry in record.disagreements]
        assert [row["Kept"] for row in rows] == [fact_text(e.fact, e.kept) for e in record.disagreements]
        for row, entry in zip(rows, record.disagreements, strict=True):
            assert row["Seen"] == "; ".join(str(fact_text(entry.fact, seen)) for seen in entry.seen)
    twin = json_of(reader, twin_of(tree))
    assert (twin["id"], twin["kind"]) == (record.id, record.kind.value)


def facts(tree: Node) -> list[Node]:
    return tree.one("div", **{"class": "facts"}).all("table")


@EACH
def test_ridges_stand_beside_the_rates(reader: TestClient, record: AcceleratorRecord) -> None:
    tree = page(reader, f"/hardware/{record.id}")
    (rates,) = [table for table in facts(tree) if table.one("caption").text == "Dense rates"]
    bandwidth = record.memory.bandwidth_gb_per_s
    known = {dtype.value.upper(): rate for dtype, rate in record.dense_tflops.items()}
    for row in rates.table():
        rate = known.get(row["Format"])
        assert row["Ridge, FLOP/B"] == (significant(rate * 1000 / bandwidth, 4) if rate else "unknown")


@EACH
def test_the_link_to_the_workbench_answers(reader: TestClient, record: AcceleratorRecord) -> None:
    tree = page(reader, f"/hardware/{record.id}")
    links = [a["href"] for a in tree.all("a") if a.text == "Use in the workbench"]
    if not record.dense_tflops:
        assert links == []
        assert "cannot compute with it" in tree.text
        return
    shown = page(reader, links[0])
    assert shown.id("f-hw").one("option", selected="")["value"] == record.id


def test_headings_are_in_order_and_references_are_met(reader: TestClient) -> None:
    for path in ("/hardware", "/hardware/h100-sxm-80gb", "/hardware/b300-sxm", "/hardware/gb300-ws"):
        tree = page(reader, path)
        levels = [int(node.tag[1]) for node in tree if node.tag in ("h1", "h2", "h3", "h4")]
        assert levels[0] == 1
        assert levels.count(1) == 1
        assert all(after - before <= 1 for before, after in pairwise(levels))
        ids = [node["id"] for node in tree if "id" in node.attributes]
        assert len(ids) == len(set(ids))
        for node in tree:
            for name in ("for", "aria-labelledby", "aria-describedby"):
                assert all(id_ in ids for id_ in node.attributes.get(name, "").split())


@pytest.mark.parametrize("given", ["h100", "H100-SXM-80GB", "h100-sxn-80gb"])
def test_an_unknown_id_is_a_page_that_names_what_is_near(reader: TestClient, given: str) -> None:
    tree = page(reader, f"/hardware/{given}", 404)
    assert "/hardware/h100-sxm-80gb" in [a["href"] for a in tree.one("main").all("a")]


@pytest.mark.parametrize("given", ["%00", "%3Cscript%3E", "x" * 5_000, "n%C3%B6pe"])
def test_nonsense_is_a_page_without_suggestions(reader: TestClient, given: str) -> None:
    tree = page(reader, f"/hardware/{given}", 404)
    assert "Near it" not in tree.text


def test_what_it_holds_is_shown_once_it_is_known(reader: TestClient) -> None:
    templates: Templates = reader.app.state.templates  # type: ignore[attr-defined]
    held = [Held("Llama 3.1 8B", "/models/llama-3.1-8b", "bf16", 16_060_522_496, 1_234)]
    tree = parse(templates.partial_html("holds", {"holds": held}))
    (row,) = tree.table()
    assert row == {
        "Model": "Llama 3.1 8B",
        "Weights in": "bf16",
        "Weights": "16.06 GB",
        "Users at 8,192 tokens": "1,234",
    }
    assert tree.one("a")["href"] == "/models/llama-3.1-8b"
    assert "None of the catalog" in templates.partial_html("holds", {"holds": []})
    nothing: dict[str, Any] = {"holds": None}
    assert templates.partial_html("holds", nothing).strip() == ""
