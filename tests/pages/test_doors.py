"""The page of the doors: every number is that of its JSON twin, every link leads where it says, bad input is told."""

import json
import math
import re
from importlib import import_module
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

import pytest
from starlette.testclient import TestClient

from app.calc.doors.door import Asked, Better, Door, DoorId, Figure, Level
from app.calc.doors.sides import ROOM, TPOT, figure_at
from app.calc.evaluation import Evaluation
from app.pages.door_cells import change, figure_row, verdict, written
from app.pages.doors_view import change_href
from app.pages.undo import UNDO, undo_of
from app.scenario_query import query_items
from app.web.query import answer_from, scenario_from
from tests.door_scenarios import REFERENCE, SCENARIOS, answers
from tests.factories import shipped_catalog
from tests.pages.asking import json_of, page, read_quantity, twin_of
from tests.pages.dom import Node

READ = ("reference", "experts on eight cards", "does not fit", "no attention", "as it was once")
HOSTILE = (
    {"prompt": "many"},
    {"prompt": "nan"},
    {"prompt": "-1"},
    {"prompt": "1" * 400},
    {"hit": "inf"},
    {"model": "<script>alert(1)</script>"},
    {"hw": "nothing"},
    {"ttft": "soon"},
    {"tp": "3"},
)


def doors_of(name: str) -> str:
    return f"/doors?{urlencode(SCENARIOS[name])}"


def cards(tree: Node) -> list[Node]:
    return [article for article in tree.all("article") if "door" in article["class"].split()]


def figures_of(card: Node) -> list[list[str]]:
    rows = card.all("table", **{"class": "figures-table"})
    return (
        [[cell.text for cell in row if cell.tag in ("th", "td")] for row in rows[0].one("tbody").all("tr")]
        if rows
        else []
    )


def doors_with_changes() -> list[tuple[str, DoorId]]:
    """Every door with somewhere to lead to, by scenario."""
    return [(name, door.id) for name, found in answers().items() for door in found.evaluation.doors if door.change]


def test_nothing_asked_is_the_default_scenario(reader: TestClient) -> None:
    tree = page(reader, "/doors")
    assert tree.one("h1").text == "The doors in the wall"
    assert twin_of(tree) == twin_of(page(reader, f"/doors?{urlencode(REFERENCE)}"))
    assert tree.one("a", aria_current="page").text == "Doors"
    assert "Llama-3.1-8B on H100" in tree.one("section", aria_label="Scenario").text


@pytest.mark.parametrize("name", SCENARIOS)
def test_every_door_has_its_line_and_its_card(reader: TestClient, name: str) -> None:
    tree = page(reader, doors_of(name))
    doors = answers()[name].evaluation.doors
    ids = [door.id.value for door in doors]
    assert [card["id"] for card in cards(tree)] == ids
    overview = tree.one("table", **{"class": "overview"}).one("tbody").all("tr")
    assert [row.one("a")["href"] for row in overview] == [f"#{id_}" for id_ in ids]
    drawn = {chart["id"] for chart in json.loads(tree.id("chart-data").raw)}
    for door, row, card in zip(doors, overview, cards(tree), strict=True):
        state = "open here" if door.is_open else "closed here"
        assert (
            row.all("td")[0].text
            == card.one("header").one("span", data_open="yes" if door.is_open else "no").text
            == state
        )
        assert door.sentence.replace(" %", "\u00a0%") in card.raw or door.refused
        assert (f"door-{door.id}" in drawn) == (door.refused is None)
        if door.refused is not None:
            assert f"Not told here. {door.refused}" in card.text
            assert "not told of this scenario" in row.text
        links = [a["href"] for a in card.all("a", **{"class": "button"})]
        assert len(links) == bool(door.change)
        for explanation in door.explanations:
            assert explanation.substituted in card.raw


@pytest.mark.parametrize("units", ["gb", "gib"])
@pytest.mark.parametrize("name", READ)
def test_numbers_are_those_of_the_json(reader: TestClient, name: str, units: str) -> None:
    tree = page(reader, f"{doors_of(name)}&units={units}")
    twin = json_of(reader, twin_of(tree))
    for card, told in zip(cards(tree), twin["doors"], strict=True):
        shown = figures_of(card)
        assert [row[0] for row in shown] == [figure["label"] for figure in told["figures"]]
        sizes = re.findall(r"[\d,.]+ (?:[kMGT]B|[KMGT]iB)(?![\w/])", card.one("p", **{"class": "sentence"}).text)
        assert all(("iB" in size) == (units == "gib") for size in sizes)
        for row, figure in zip(shown, told["figures"], strict=True):
            assert row[1] == figure["level"]
            for text, value in ((row[2], figure["before"]), (row[3], figure["after"])):
                assert_reads(text, value)
        if told["variants"] is not None:
            assert_variants(card, told["variants"])
        if told["limits"]:
            section = card.one("section", aria_label=f"{told['title']}: what is not told")
            assert [item.text for item in section.all("li")] == told["limits"]


def assert_reads(text: str, value: float | None) -> None:
    """A written number stands for the value, to three digits."""
    if value is None:
        assert text == "–"
        return
    shown = read_quantity(text.replace("−", "-").replace("requests/s", "").replace("tokens/s", ""))
    assert math.isclose(shown, value, rel_tol=6e-3, abs_tol=1e-12), (text, value)


def assert_variants(card: Node, variants: dict[str, Any]) -> None:
    rows = card.one("table", **{"class": "variants"}).one("tbody").all("tr")
    assert [("here" in row.attributes.get("class", "")) for row in rows] == [row["here"] for row in variants["rows"]]
    for row, told in zip(rows, variants["rows"], strict=True):
        for cell, value in zip(row.all("td"), told["values"], strict=False):
            assert_reads(cell.text, value)


@pytest.mark.parametrize(("name", "id_"), doors_with_changes())
def test_a_change_leads_to_the_side_that_was_told_and_back(name: str, id_: DoorId) -> None:
    answered = answers()[name]
    door = next(found for found in answered.evaluation.doors if found.id is id_)
    href = change_href(door, answered, "gb")
    assert href is not None
    items = parse_qsl(urlsplit(href).query, keep_blank_values=True)
    changed = answer_from([item for item in items if item[0] != UNDO], shipped_catalog())
    side, measures = "before" if door.is_open else "after", changed.evaluation.measures
    for label, level, value in (
        (TPOT, Level.CEILING, measures.serving.tpot_s.ceiling),
        (ROOM, Level.EXPECTED, measures.memory.max_concurrency),
        (ROOM, Level.EXACT, measures.memory.max_concurrency),
    ):
        figure = figure_at(door.figures, label, level)
        if figure is not None:
            assert getattr(figure, side) == pytest.approx(value, rel=1e-9), label
    assert told_again(door, changed.evaluation).is_open is not door.is_open
    back = undo_of(dict(items)[UNDO], [item for item in items if item[0] != UNDO])
    assert back is not None
    before = scenario_from(parse_qsl(urlsplit(back.href).query, keep_blank_values=True))
    assert query_items(before) == query_items(answered.scenario)


def told_again(door: Door, changed: Evaluation) -> Door:
    """The same door, told of a changed scenario."""
    tell = getattr(import_module(f"app.calc.doors.{door.id}"), f"{door.id}_door")
    again: Door = tell(Asked(changed.deployment, changed.measures, changed.alternatives))
    return again


def test_a_link_of_the_page_opens_the_workbench_with_an_undo(reader: TestClient) -> None:
    tree = page(reader, doors_of("reference"))
    for card in cards(tree):
        link = card.one("a", **{"class": "button"})
        opened = page(reader, link["href"])
        assert opened.one("a", **{"class": "button quiet undo"}).text.startswith("Undo: back to ")
        assert f"/doors?{link['href'].partition('?')[2].partition('&undo=')[0]}" in [a["href"] for a in opened.all("a")]


def test_goodput_is_told_where_a_target_is_set(reader: TestClient) -> None:
    tree = page(reader, doors_of("reference"))
    link = next(a["href"] for a in tree.id("goodput").all("a") if a.text.startswith("Ask for"))
    assert link.endswith("#goodput")
    told = page(reader, link.partition("#")[0])
    twin = json_of(reader, twin_of(told))["goodput"]
    shown = {row.one("dt").text: row.one("b").text for row in told.id("goodput").one("dl").all("div")}
    assert read_quantity(shown["Goodput"]) == pytest.approx(twin["rate_per_s"], rel=6e-3)
    assert read_quantity(shown["Offered for it"]) == pytest.approx(twin["offered_per_s"], rel=6e-3)
    assert shown["What stops it"] == twin["sentence"]
    assert (twin["slo_ttft_s"], twin["slo_tpot_s"]) == (2.0, 0.05)
    assert twin["rate_per_s"] / twin["offered_per_s"] == pytest.approx(twin["attained"])
    assert "preemption" in told.id("goodput").text


@pytest.mark.parametrize(("name", "reason"), [("does not fit", "Not one request"), ("as it was once", "static batch")])
def test_no_goodput_has_its_reason(reader: TestClient, name: str, reason: str) -> None:
    section = page(reader, doors_of(name)).id("goodput")
    assert reason in section.text
    assert not section.all("figure")


def test_charts_can_be_downloaded(reader: TestClient) -> None:
    tree = page(reader, doors_of("saturated, with targets"))
    links = [a["href"] for a in tree.all("a") if "download" in a.attributes]
    assert len(links) == 22
    for href in links:
        answer = reader.get(href)
        assert answer.status_code == 200, href
        if ".json" in href:
            assert answer.json()["scenario"]["model"]["id"] == "llama-3.1-8b"
    assert reader.get(f"/export/goodput.csv?{urlencode(REFERENCE)}").status_code == 404
    assert reader.get(f"/export/door-none.csv?{urlencode(REFERENCE)}").status_code == 404


@pytest.mark.parametrize("wrong", HOSTILE)
def test_bad_input_is_told_and_kept_for_the_workbench(reader: TestClient, wrong: dict[str, str]) -> None:
    tree = page(reader, f"/doors?{urlencode({**REFERENCE, **wrong})}", 422)
    empty = tree.one("section", aria_label="Nothing told")
    assert empty.one("ul").all("li")
    assert not tree.all("script", id="chart-data")
    back = empty.one("a", **{"class": "button"})["href"]
    assert dict(parse_qsl(urlsplit(back).query)) == {**REFERENCE, **wrong}


def test_a_name_that_nothing_reads_is_said(reader: TestClient) -> None:
    assert "Not read from the address: colour." in page(reader, "/doors?colour=red").text


def test_a_hostile_name_stays_a_name(reader: TestClient) -> None:
    items = {**SCENARIOS["own card"], "hw_name": "<b>bold</b> $x$ %{x}"}
    answer = reader.get(f"/doors?{urlencode(items)}")
    assert answer.status_code == 200
    assert "<b>bold" not in answer.text


def _figure(before: float | None, after: float | None, unit: str = "s", better: Better = Better.LOWER) -> Figure:
    return Figure("x", before, after, unit, Level.EXACT, better)


@pytest.mark.parametrize(
    ("figure", "words", "judged"),
    [
        (_figure(0.0135, 0.00908), "−33 %", "better"),
        (_figure(71, 295, "", Better.HIGHER), "+315 %, 4.2 ×", "better"),
        (_figure(61.04, 99.4, "%", Better.HIGHER), "+38.4 points", "better"),
        (_figure(0.0, 131_072_000, "B", Better.NEITHER), "+131 MB", ""),
        (_figure(1.0, 1.0001), "same", ""),
        (_figure(1.0, 1.2), "+20 %", "worse"),
        (_figure(None, 1.0), "", ""),
        (_figure(4.0, 0.0, "", Better.HIGHER), "−100 %", "worse"),
    ],
)
def test_a_change_in_words(figure: Figure, words: str, judged: str) -> None:
    assert change(figure, binary=False) == words
    assert verdict(figure) == judged
    assert figure_row(figure, binary=False).level == "exact"


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (1.0, "tokens", "1 token"),
        (2.8, "tokens", "2.8 tokens"),
        (295.0, "", "295"),
        (2**30, "B", "1 GiB"),
        (None, "s", "–"),
    ],
)
def test_a_value_in_words(value: float | None, unit: str, text: str) -> None:
    assert written(value, unit, binary=True) == text
