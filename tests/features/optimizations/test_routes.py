"""The optimizations by HTTP: the documented form, both ways of asking, evidence with its source, and refusals.

The page of the optimizations: numbers are those of its JSON twin, links lead where they say, bad input is told.
"""

import json
import math
import re
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

import pytest
from starlette.testclient import TestClient

from app.calc.evaluate import Evaluation
from app.calc.optimize.optimization import Asked, Better, Figure, Level, Optimization, Quantity, figure_at
from app.calc.optimize.registry import SPECS
from app.checkpoint.text import loads
from app.features.optimizations.schemas import DoorsAnswer, OptimizationsAnswer
from app.features.optimizations.view import change, change_href, figure_row, verdict, written_out
from app.features.workbench.undo import UNDO, undo_of
from app.scenario.query import query_items
from app.web.query import answer_from, scenario_from
from app.web.urls import API
from tests.factories import merge_patch, shipped_catalog
from tests.features.asking import json_of, page, read_quantity, twin_of
from tests.features.dom import Node
from tests.features.problems import paths
from tests.optimization_scenarios import REFERENCE, SCENARIOS, answers

DOORS, OPTIMIZATIONS = f"{API}/doors", f"{API}/optimizations"


def told(client: TestClient, name: str) -> dict[str, Any]:
    answer = client.get(f"{DOORS}?{urlencode(SCENARIOS[name])}")
    assert answer.status_code == 200, answer.text
    body: dict[str, Any] = loads(answer.content)
    return body


@pytest.mark.parametrize("name", SCENARIOS)
def test_the_answer_has_the_documented_form(calculator: TestClient, name: str) -> None:
    body = told(calculator, name)
    DoorsAnswer.model_validate(body)
    assert set(body) == set(DoorsAnswer.model_fields)
    assert [door["id"] for door in body["doors"]] == [spec.id for spec in SPECS]
    for door, found in zip(body["doors"], answers()[name].evaluation.optimizations, strict=True):
        assert (door["open"], door["sentence"], door["refused"]) == (found.is_used, found.sentence, found.refused)
        assert [(f["before"], f["after"], f["ratio"]) for f in door["figures"]] == [
            (f.before, f.after, f.ratio) for f in found.figures
        ]
    assert (body["goodput"] is None) == (answers()[name].evaluation.goodput is None)


def test_a_posted_scenario_gives_the_same(calculator: TestClient) -> None:
    body = told(calculator, "experts on eight cards")
    assert calculator.post(DOORS, json=body["scenario"]).json() == body


def test_a_change_is_a_merge_patch_on_the_scenario(calculator: TestClient) -> None:
    body = told(calculator, "reference")
    door = next(door for door in body["doors"] if door["id"] == "quantization")
    changed = calculator.post(DOORS, json=merge_patch(body["scenario"], door["change"])).json()
    again = next(door for door in changed["doors"] if door["id"] == "quantization")
    assert (door["open"], again["open"]) == (False, True)
    assert again["figures"] == door["figures"]


def test_published_evidence_states_its_numbers_and_its_source(calculator: TestClient) -> None:
    evidence = {door["id"]: door["evidence"] for door in told(calculator, "reference")["doors"]}
    for findings in evidence.values():
        for found in findings:
            assert found["source"]
            assert found["values"]
            assert all(value["text"] in found["text"] for value in found["values"])
            assert "{" not in found["text"]
    values = {value["id"]: value["value"] for findings in evidence.values() for f in findings for value in f["values"]}
    assert (values["published.paging.used_low"], values["published.paging.used_high"]) == (0.204, 0.382)
    assert values["published.batching.gain"] == 23
    assert values["evidence.speculative.eagle2"] == 244
    assert values["published.deepseek.decode"] == 14_800
    slopes = values["evidence.quantization.slope_fp8"] / values["evidence.quantization.slope_bf16"]
    assert values["evidence.quantization.slope_ratio"] == pytest.approx(slopes, abs=5e-4)


@pytest.mark.parametrize(
    ("items", "path"),
    [({"prompt": "many"}, "workload.prompt_tokens"), ({"colour": "red"}, "colour"), ({"hw": "none"}, "hardware.id")],
)
def test_bad_input_is_a_problem(calculator: TestClient, items: dict[str, str], path: str) -> None:
    assert path in paths(calculator.get(f"{DOORS}?{urlencode({**REFERENCE, **items})}"))


def test_nothing_asked_is_a_problem(calculator: TestClient) -> None:
    assert paths(calculator.get(DOORS))
    assert paths(calculator.post(DOORS, json={}))


def test_the_new_name_answers_the_same_under_its_own_key(calculator: TestClient) -> None:
    body = told(calculator, "reference")
    found = calculator.get(f"{OPTIMIZATIONS}?{urlencode(SCENARIOS['reference'])}").json()
    OptimizationsAnswer.model_validate(found)
    assert found.pop("optimizations") == body.pop("doors")
    assert found == body
    posted = calculator.post(OPTIMIZATIONS, json=body["scenario"])
    assert set(posted.json()) == {*body, "optimizations"}


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


def page_of(name: str) -> str:
    return f"/optimizations?{urlencode(SCENARIOS[name])}"


def cards(tree: Node) -> list[Node]:
    return [article for article in tree.all("article") if "optimization" in article["class"].split()]


def figures_of(card: Node) -> list[list[str]]:
    rows = card.all("table", **{"class": "figures-table"})
    return (
        [[cell.text for cell in row if cell.tag in ("th", "td")] for row in rows[0].one("tbody").all("tr")]
        if rows
        else []
    )


def doors_with_changes() -> list[tuple[str, str]]:
    """Every one with somewhere to lead to, by scenario."""
    return [(name, one.id) for name, found in answers().items() for one in found.evaluation.optimizations if one.change]


def test_nothing_asked_is_the_default_scenario(reader: TestClient) -> None:
    tree = page(reader, "/optimizations")
    assert tree.one("h1").text == "Optimizations"
    assert twin_of(tree) == twin_of(page(reader, f"/optimizations?{urlencode(REFERENCE)}"))
    assert tree.one("a", aria_current="page").text == "Optimizations"
    assert "Llama-3.1-8B on H100" in tree.one("section", aria_label="Scenario").text


@pytest.mark.parametrize("name", SCENARIOS)
def test_every_optimization_has_its_line_and_its_card(reader: TestClient, name: str) -> None:
    tree = page(reader, page_of(name))
    optimizations = answers()[name].evaluation.optimizations
    ids = [one.id for one in optimizations]
    assert [card["id"] for card in cards(tree)] == ids
    overview = tree.one("table", **{"class": "overview"}).one("tbody").all("tr")
    assert [row.one("a")["href"] for row in overview] == [f"#{id_}" for id_ in ids]
    drawn = {chart["id"] for chart in json.loads(tree.id("chart-data").raw)}
    for one, row, card in zip(optimizations, overview, cards(tree), strict=True):
        state = "used here" if one.is_used else "not used here"
        assert (
            row.all("td")[0].text
            == card.one("header").one("span", data_used="yes" if one.is_used else "no").text
            == state
        )
        assert one.sentence.replace(" %", "\u00a0%") in card.raw or one.refused
        assert (f"door-{one.id}" in drawn) == (one.refused is None)
        if one.refused is not None:
            assert f"Nothing to compare here. {one.refused}" in card.text
            assert "nothing to compare in this scenario" in row.text
        links = [a["href"] for a in card.all("a", **{"class": "button"})]
        assert len(links) == bool(one.change)
        for explanation in one.explanations:
            assert explanation.substituted in card.raw


@pytest.mark.parametrize("units", ["gb", "gib"])
@pytest.mark.parametrize("name", READ)
def test_numbers_are_those_of_the_json(reader: TestClient, name: str, units: str) -> None:
    tree = page(reader, f"{page_of(name)}&units={units}")
    twin = json_of(reader, twin_of(tree))
    for card, told in zip(cards(tree), twin["optimizations"], strict=True):
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
def test_a_change_leads_to_the_side_that_was_told_and_back(name: str, id_: str) -> None:
    answered = answers()[name]
    one = next(found for found in answered.evaluation.optimizations if found.id == id_)
    href = change_href(one, answered, "gb")
    assert href is not None
    items = parse_qsl(urlsplit(href).query, keep_blank_values=True)
    changed = answer_from([item for item in items if item[0] != UNDO], shipped_catalog())
    side, measures = "before" if one.is_used else "after", changed.evaluation.measures
    for key, level, value in (
        ("tpot", Level.CEILING, measures.serving.tpot_s.ceiling),
        ("capacity", Level.EXPECTED, measures.memory.max_concurrency),
        ("capacity", Level.EXACT, measures.memory.max_concurrency),
    ):
        figure = figure_at(one.figures, key, level)
        if figure is not None:
            assert getattr(figure, side) == pytest.approx(value, rel=1e-9), key
    assert told_again(one, changed.evaluation).is_used is not one.is_used
    back = undo_of(dict(items)[UNDO], [item for item in items if item[0] != UNDO])
    assert back is not None
    before = scenario_from(parse_qsl(urlsplit(back.href).query, keep_blank_values=True))
    assert query_items(before) == query_items(answered.scenario)


def told_again(one: Optimization, changed: Evaluation) -> Optimization:
    """The same optimization on a changed scenario."""
    return one.spec.compare(Asked(changed.deployment, changed.measures, changed.alternatives))


def test_a_link_of_the_page_opens_the_workbench_with_an_undo(reader: TestClient) -> None:
    tree = page(reader, page_of("reference"))
    for card in cards(tree):
        link = card.one("a", **{"class": "button"})
        opened = page(reader, link["href"])
        assert opened.one("a", **{"class": "button quiet undo"}).text.startswith("Undo: back to ")
        assert f"/optimizations?{link['href'].partition('?')[2].partition('&undo=')[0]}" in [
            a["href"] for a in opened.all("a")
        ]


def test_goodput_is_told_where_a_target_is_set(reader: TestClient) -> None:
    tree = page(reader, page_of("reference"))
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
    section = page(reader, page_of(name)).id("goodput")
    assert reason in section.text
    assert not section.all("figure")


def test_charts_can_be_downloaded(reader: TestClient) -> None:
    tree = page(reader, page_of("saturated, with targets"))
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
    tree = page(reader, f"/optimizations?{urlencode({**REFERENCE, **wrong})}", 422)
    empty = tree.one("section", aria_label="No answer")
    assert empty.one("ul").all("li")
    assert not tree.all("script", id="chart-data")
    back = empty.one("a", **{"class": "button"})["href"]
    assert dict(parse_qsl(urlsplit(back).query)) == {**REFERENCE, **wrong}


def test_a_name_that_nothing_reads_is_said(reader: TestClient) -> None:
    assert "Not read from the address: colour." in page(reader, "/optimizations?colour=red").text


def test_a_hostile_name_stays_a_name(reader: TestClient) -> None:
    items = {**SCENARIOS["own card"], "hw_name": "<b>bold</b> $x$ %{x}"}
    answer = reader.get(f"/optimizations?{urlencode(items)}")
    assert answer.status_code == 200
    assert "<b>bold" not in answer.text


def _figure(before: float | None, after: float | None, unit: str = "s", better: Better = Better.LOWER) -> Figure:
    return Figure(Quantity("x", "X", unit, Level.EXACT, better), before, after, Level.EXACT)


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
    assert written_out(value, unit, binary=True) == text


def test_the_old_address_leads_to_the_page_with_its_query(reader: TestClient) -> None:
    answer = reader.get("/doors?model=llama-3.1-8b&hw=h100-sxm-80gb&batch=", follow_redirects=False)
    assert answer.status_code == 308
    assert answer.headers["location"] == "/optimizations?model=llama-3.1-8b&hw=h100-sxm-80gb&batch="
    assert reader.get("/doors", follow_redirects=False).headers["location"] == "/optimizations"
