"""The page of each model: every number is the calculators', every sum adds up, and its twin says the same."""

import json
import re
from collections.abc import Callable
from functools import cache
from itertools import pairwise
from pathlib import Path
from time import process_time
from typing import Any

import pytest
from starlette.testclient import TestClient

from app.catalog.facts import ModelFacts, ModelShelf
from app.catalog.models import ModelRecord
from app.features.catalog.layer_diagram import layer_strip
from tests.factories import interleaved, shipped_catalog
from tests.features.asking import json_of, page, twin_of
from tests.features.dom import Node

RECORDS = shipped_catalog().models
SHELF = ModelShelf(shipped_catalog())
# Every third; the API and the list meet them all.
SOME = dict(list(RECORDS.items())[::3])
EACH = pytest.mark.parametrize("record", SOME.values(), ids=SOME)
# Worked out apart from this code: parameters of the text model, bytes of bf16 cache at 1,024, 8,192 and 131,072 tokens.
OUTSIDE: dict[str, dict[str, Any]] = json.loads((Path(__file__).parents[2] / "data" / "models.json").read_text())
Ask = Callable[[str], Node]


@pytest.fixture(scope="session")
def ask(reader: TestClient) -> Ask:
    """The page of a model, read once for all tests."""

    @cache
    def read(id_: str) -> Node:
        return page(reader, f"/models/{id_}")

    return read


def whole(text: str) -> int:
    """A number as it is written out: "1,234 B"."""
    return int(re.sub(r"[^0-9-]", "", text))


def captioned(tree: Node, caption: str) -> Node:
    """The table of that caption."""
    (found,) = [t for t in tree.all("table") if any(c.text == caption for c in t.all("caption"))]
    return found


def rows(table: Node, part: str) -> list[list[str]]:
    """The texts of the rows of a part of a table."""
    return [[cell.text for cell in row if cell.tag in ("th", "td")] for row in table.one(part).all("tr")]


@EACH
def test_parameters_by_group_sum_to_the_total(ask: Ask, record: ModelRecord) -> None:
    facts, table = SHELF.facts[record.id], captioned(ask(record.id), "By group, and what they take as shipped")
    (total,) = rows(table, "tfoot")
    groups = rows(table, "tbody")
    assert sum(whole(row[1]) for row in groups) == whole(total[1]) == facts.counts.total
    assert sum(whole(row[4]) for row in groups) == pytest.approx(whole(total[4]), abs=len(groups))
    assert whole(total[4]) == round(facts.shipped.loaded_bytes)
    if record.id in OUTSIDE:
        assert facts.counts.total - facts.counts.vision == OUTSIDE[record.id]["text_params"]


@EACH
def test_the_stated_total_is_held_against_the_parts(ask: Ask, record: ModelRecord) -> None:
    tree = ask(record.id)
    table = captioned(tree, "Stated and recounted")
    recounted, stated, difference = rows(table, "tfoot")
    assert sum(whole(row[1]) for row in rows(table, "tbody")) == whole(recounted[1]) == record.stated_parts
    assert whole(stated[1]) == record.stated.params
    assert record.stated.basis in stated[0]
    apart = record.stated_parts - record.stated.params
    assert difference[1] == "none" if apart == 0 else difference[1].startswith(f"{apart:+,} (")
    if record.stated.deviation_reason:
        assert record.stated.deviation_reason in tree.text


@EACH
def test_active_parameters_by_every_convention(ask: Ask, record: ModelRecord) -> None:
    counts = SHELF.facts[record.id].counts
    table = rows(captioned(ask(record.id), "Active: what a token goes through"), "tbody")
    shown = [whole(row[1]) for row in table[:3]] + [whole(table[4][1])]
    exact = [counts.active, counts.active_without_embedding, counts.active_without_embeddings, counts.read_per_token]
    assert shown == [round(number) for number in exact]
    assert [row[0] for row in table[:3] if "nearest" in row[0]] == [
        f"{convention.value.capitalize()} nearest to the vendor’s"
        for convention in [record.stated.active_convention]
        if convention
    ]
    vendor = table[3][1]
    assert whole(vendor) == record.stated.active_params if record.stated.active_params else not vendor[0].isdigit()


@EACH
def test_the_cache_at_three_contexts(ask: Ask, record: ModelRecord) -> None:
    tree = ask(record.id)
    for row, at in zip(
        rows(captioned(tree, "In bf16, at three contexts"), "tbody"), facts_of(record).cache_at, strict=True
    ):
        assert whole(row[0]) == at.context_tokens
        assert whole(row[1]) == at.sequence_bytes
        assert ("beyond" in row[0]) == (at.context_tokens > record.shape.max_position)
        assert float(row[2].removesuffix(" B").replace(",", "")) == pytest.approx(whole(row[1]) / whole(row[0]))
    if "kv_bytes_bf16" in OUTSIDE.get(record.id, {}):
        assert [at.sequence_bytes for at in facts_of(record).cache_at] == pytest.approx(
            OUTSIDE[record.id]["kv_bytes_bf16"]
        )
    kept = captioned(tree, "What the layers keep")
    (total,) = rows(kept, "tfoot")
    assert sum(whole(row[5]) for row in rows(kept, "tbody")) == whole(total[1])
    assert whole(total[1]) == facts_of(record).usual_cache.sequence_bytes


def facts_of(record: ModelRecord) -> ModelFacts:
    return SHELF.facts[record.id]


@EACH
def test_the_strip_has_one_cell_a_layer(ask: Ask, record: ModelRecord) -> None:
    tree, architecture = ask(record.id), record.architecture
    strip = tree.one("div", **{"class": "strip"})
    cells = strip.all("span")
    assert len(cells) == architecture.n_layers
    assert [cell["title"].partition(":")[0] for cell in cells] == [
        f"Layer {at}, {chr(ord('a') + number)}" for at, number in enumerate(architecture.order, start=1)
    ]
    assert strip["role"] == "img"
    words = tree.id(strip["aria-describedby"]).text
    assert all(group.label in words for group in architecture.layers)
    table = captioned(tree, "Groups of like layers")
    counts, params = rows(table, "tbody")[0][1:], rows(table, "tbody")[-1][1:]
    assert [whole(count) for count in counts] == [group.count for group in architecture.layers]
    beside = sum(path.params + path.vectors for path in architecture.side_paths)
    tables = facts_of(record).counts.embeddings if not beside else None
    if tables is not None:
        inside = sum(whole(n) * whole(count) for n, count in zip(params, counts, strict=True))
        final_norm = architecture.hidden_size * (2 if architecture.norm_bias else 1)
        assert inside + tables + final_norm == facts_of(record).counts.text


@EACH
def test_files_add_up_and_differ_by_what_is_said(ask: Ask, record: ModelRecord) -> None:
    table = captioned(ask(record.id), "Published files")
    computed, published, difference = rows(table, "tfoot")
    loaded = [row for row in rows(table, "tbody") if row[0] != "Repository"]
    for at, files in enumerate(facts_of(record).files, start=1):
        assert whole(computed[at]) == pytest.approx(sum(whole(row[at]) for row in loaded), abs=2)
        size = files.checkpoint.file_bytes
        assert published[at] == (f"{size:,} B" if size else "unknown")
        if size is None:
            assert difference[at] == "unknown"
        else:
            apart = 0 if difference[at] == "none" else whole(difference[at])
            assert apart == pytest.approx(size - whole(computed[at]), abs=1)
            assert abs(apart) < 1e-4 * size  # the headers of the files


@EACH
def test_the_accelerators_that_hold_it(ask: Ask, record: ModelRecord) -> None:
    section = ask(record.id).one("section", aria_labelledby="cards-title")
    region = section.one("div", aria_label="Which accelerators hold it, table")
    shown = {}
    for body in region.all("tbody"):
        for row in body.all("tr")[1:]:
            shown[row.one("th").one("a")["href"].removeprefix("/hardware/")] = [cell.text for cell in row.all("td")][1:]
    assert set(shown) == set(shipped_catalog().accelerators)
    for id_, device in shipped_catalog().devices.items():
        expected = []
        for load in facts_of(record).loads:
            held = load.fewest(device)
            most = load.shares[-1].gpus
            expected += [str(held.gpus), f"{held.users:,}"] if held else [f"over {most}", "–none"]
        assert shown[id_] == expected
    alone = sum(facts_of(record).loads[0].on_one(device) is not None for device in shipped_catalog().devices.values())
    assert (
        f"one card is enough for {alone} of the {len(shipped_catalog().accelerators)}" if alone else ""
    ) in section.text


@EACH
def test_the_twin_says_the_same(reader: TestClient, ask: Ask, record: ModelRecord) -> None:
    tree, facts = ask(record.id), facts_of(record)
    twin = json_of(reader, twin_of(tree))
    assert tree.one("h1").text == record.name == twin["name"]
    assert twin["params"] == facts.counts.total
    assert [at["sequence_bytes"] for at in twin["kv"]] == [at.sequence_bytes for at in facts.cache_at]
    assert [files["computed_bytes"] for files in twin["checkpoints"]] == [f.computed_bytes for f in facts.files]
    for figure in (f"{facts.counts.total:,}", record.hub_id, *record.caveats, *record.sources, *record.same_shape):
        assert figure in tree.text
    assert (record.released.date if record.released else "unknown") in tree.text
    if record.lineage:
        assert f"/models/{record.lineage.base}" in [a["href"] for a in tree.all("a")]
        assert record.id in json_of(reader, f"/api/v1/models/{record.lineage.base}")["derived"]


def test_links_to_a_plan_lead_to_the_same_number(reader: TestClient, ask: Ask) -> None:
    region = ask("llama-3.1-70b").one("div", aria_label="Which accelerators hold it, table")
    links = [(a.text, a["href"]) for a in region.all("a") if a["href"].startswith("/?")]
    assert len(links) > 150
    for users, href in links[::20]:
        assert f"{users} sequence" in page(reader, href).text


@EACH
def test_the_link_to_the_workbench_answers_for_it(reader: TestClient, ask: Ask, record: ModelRecord) -> None:
    (link,) = [a for a in ask(record.id).all("a") if a.text == "Use in the workbench"]
    shown = page(reader, link["href"])
    assert shown.id("f-model").one("option", selected="")["value"] == record.id


def test_headings_are_in_order_and_references_are_met(ask: Ask) -> None:
    for id_ in ("deepseek-v3", "llama-3.1-8b", "gemma-3n-e4b", "grok-1", "falcon-7b"):
        tree = ask(id_)
        levels = [int(node.tag[1]) for node in tree if node.tag in ("h1", "h2", "h3", "h4")]
        assert levels[0] == 1
        assert levels.count(1) == 1
        assert all(after - before <= 1 for before, after in pairwise(levels))
        ids = [node["id"] for node in tree if "id" in node.attributes]
        assert len(ids) == len(set(ids))
        for node in tree:
            for name in ("for", "aria-labelledby", "aria-describedby"):
                assert all(reference in ids for reference in node.attributes.get(name, "").split())


@pytest.mark.parametrize("given", ["deepseek-v", "DeepSeek-V3", "deepseek-v33"])
def test_an_unknown_id_is_a_page_that_names_what_is_near(reader: TestClient, given: str) -> None:
    tree = page(reader, f"/models/{given}", 404)
    assert "/models/deepseek-v3" in [a["href"] for a in tree.one("main").all("a")]


@pytest.mark.parametrize("given", ["%00", "%3Cscript%3E", "x" * 5_000])
def test_nonsense_is_a_page_without_suggestions(reader: TestClient, given: str) -> None:
    assert "Near it" not in page(reader, f"/models/{given}", 404).text


def test_layers_of_unknown_order_stand_together_and_say_so() -> None:
    strip = layer_strip(interleaved(), None)
    assert not strip.known_order
    assert [cell.letter for cell in strip.cells] == ["a"] * 5 + ["b"]
    assert "in an order that is not known" in strip.text
    assert "Layer" not in strip.cells[0].title


def test_a_page_is_quick(reader: TestClient) -> None:
    taken = []
    for _ in range(5):
        started = process_time()
        reader.get("/models/deepseek-v3")
        taken.append(process_time() - started)
    assert min(taken) < 0.1
