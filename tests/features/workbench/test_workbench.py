"""The workbench as a page: six numbers with scope and working, the form around them, words and ways onward."""

import json

import pytest
from starlette.testclient import TestClient

from app.features.workbench.charts.gallery import CHARTS
from app.features.workbench.undo import presets
from app.scenario.query import BY_NAME
from app.web import urls
from tests.features.asking import SCENARIOS, address, items_of, json_of, page, twin_of

SIX = ("memory", "room", "ttft", "tpot", "latency", "throughput")
SCOPES = ("per GPU", "GPUs", "per user", "all users", "one user")


@pytest.mark.parametrize("name", SCENARIOS)
def test_six_numbers_each_with_scope_and_working(reader: TestClient, name: str) -> None:
    tree = page(reader, address(SCENARIOS[name]))
    assert [node["id"] for node in tree if node.attributes.get("id", "").startswith("metric-")] == [
        f"metric-{id_}" for id_ in SIX
    ]
    for id_ in SIX:
        metric = tree.id(f"metric-{id_}")
        assert any(scope in metric.text for scope in SCOPES)
        working = metric.id(f"working-{id_}")
        assert working.tag == "details"
        assert working.one("summary").text.startswith("Working")
        tables = [node for node in working if node.tag == "table"]
        assert tables, f"{id_} has no working"
        assert all(table.one("caption").text for table in tables)
        derivations = [table for table in tables if not table.one("caption").text.startswith("Operators of")]
        assert working.text.count("Source:") == len(derivations)


@pytest.mark.parametrize("name", SCENARIOS)
def test_the_verdict_is_the_evaluations_sentence(reader: TestClient, name: str) -> None:
    tree = page(reader, address(SCENARIOS[name]))
    verdict = json_of(reader, twin_of(tree))["verdict"]
    shown = f"{tree.id('verdict-title').text} {tree.id('verdict').text}".replace(" — verdict", ":")
    assert shown.casefold() == verdict["sentence"].casefold()
    assert next(n for n in tree if n.attributes.get("data-state"))["data-state"] == verdict["state"]


def test_every_chart_has_heading_summary_table_and_downloads(reader: TestClient) -> None:
    tree = page(reader, "/")
    for id_, made in zip(CHARTS, json.loads(tree.id("chart-data").raw), strict=True):
        figure = tree.id(f"chart-{id_}")
        assert made["id"] == id_
        assert tree.id(figure["aria-labelledby"]).text == made["title"]
        assert tree.id(f"plot-{id_}")["aria-hidden"] == "true"
        table = tree.id(f"table-{id_}")
        assert all(cell["scope"] == "col" for cell in table.one("thead").all("th"))
        assert all(row.all("th")[0]["scope"] == "row" for row in table.one("tbody").all("tr"))
        links = [a["href"] for a in figure.all("a")]
        assert [link.partition("?")[0] for link in links] == [f"/export/{id_}.csv", f"/export/{id_}.json"]
        assert {b["data-picture"] for b in figure.all("button", data_chart=id_)} == {"png", "svg"}


def test_the_skeleton_of_the_page(reader: TestClient) -> None:
    tree = page(reader, "/")
    assert tree.one("html")["lang"] == "en"
    assert tree.one("title").text == "Workbench · Tokenroof"
    assert len(tree.all("h1")) == 1
    assert tree.all("a")[0]["href"] == "#main"
    assert tree.id("main").tag == "main"
    assert tree.one(aria_current="page").text == "Workbench"
    assert tree.id("status")["role"] == "status"
    for script in tree.all("script"):
        assert script.attributes.get("src", "/").startswith("/")
    for link in tree.all("link"):
        assert link["href"].startswith("/")


@pytest.mark.parametrize("path", ["/", "/live", "/docs"])
def test_ids_are_there_once_and_every_reference_is_met(reader: TestClient, path: str) -> None:
    tree = page(reader, path)
    ids = [node["id"] for node in tree if "id" in node.attributes]
    assert len(ids) == len(set(ids))
    for node in tree:
        for name in ("for", "aria-labelledby", "aria-describedby", "aria-controls"):
            for id_ in node.attributes.get(name, "").split():
                assert id_ in ids, f"{name}={id_}"
        if node.attributes.get("href", "").startswith("#"):
            assert node["href"][1:] in ids


def test_every_field_of_the_query_is_in_the_form(reader: TestClient) -> None:
    """What the form does not send would fall back to a default in silence."""
    form = page(reader, "/").id("scenario")
    sent = [node["name"] for node in form if "name" in node.attributes]
    assert set(sent) == set(BY_NAME) | {"units"}
    assert len(sent) == len(set(sent))
    assert (form["method"], form["action"]) == ("get", "/")


def test_every_control_has_a_label_and_a_message(reader: TestClient) -> None:
    form = page(reader, "/").id("scenario")
    labels = {label["for"] for label in form.all("label")}
    for node in form:
        if "name" in node.attributes and node.attributes.get("type") != "hidden":
            assert node["id"] in labels
            assert f"msg-{node['name']}" in node["aria-describedby"].split()
    assert {n["id"] for n in form if n.attributes.get("id", "").startswith("msg-")} == {
        f"msg-{name}" for name in (*BY_NAME, "general")
    }


def test_presets_answer_and_show_what_they_say(reader: TestClient) -> None:
    tree = page(reader, "/")
    links = tree.one("nav", aria_label="Start from a question").all("a")
    assert len(links) == len(presets()) == 6
    for link, preset in zip(links, presets(), strict=True):
        assert preset.person in link.text
        assert preset.question in link.text
        shown = page(reader, link["href"])
        assert shown.id("f-model").one("option", selected="")["value"] == preset.scenario.model.id
        assert json_of(reader, twin_of(shown))["scenario"]["workload"] == preset.scenario.document()["workload"]


def test_the_students_preset_says_some_200_tokens(reader: TestClient) -> None:
    student = next(p for p in presets() if p.person == "Student")
    numbers = json_of(reader, urls.evaluate_api(urls.scenario_items(student.scenario)))
    assert 195 < numbers["serving"]["output_tokens_per_s_per_user"]["ceiling"] < 230
    assert 195 < numbers["rule_of_thumb"]["decode_tokens_per_s"] < 215


@pytest.mark.parametrize("name", SCENARIOS)
def test_levers_lead_to_the_numbers_they_promise(reader: TestClient, name: str) -> None:
    tree = page(reader, address(SCENARIOS[name]))
    levers = json_of(reader, twin_of(tree))["levers"]
    links = {a.text: a["href"] for a in tree.all("a")}
    for lever in levers:
        there = json_of(reader, twin_of(page(reader, links[lever["label"]])))
        effect = lever["effect"]
        assert there["verdict"]["state"] == effect["state"]["after"]
        assert there["memory"]["max_concurrency"] == effect["max_concurrency"]["after"]
        assert there["serving"]["tpot_s"]["mid"] == pytest.approx(effect["tpot_s"]["after"])
        promised = effect["output_tokens_per_s"]["after"]
        assert there["serving"]["output_tokens_per_s"]["mid"] == pytest.approx(promised)


def test_levers_keep_the_units(reader: TestClient) -> None:
    tree = page(reader, address(units="gib"))
    levers = {lever["label"] for lever in json_of(reader, twin_of(tree))["levers"]}
    links = [a["href"] for a in tree.all("a") if a.text in levers]
    assert links
    assert all(items_of(link)["units"] == "gib" for link in links)


def test_nothing_that_would_help_is_said_where_nothing_does(reader: TestClient) -> None:
    tree = page(reader, address(model="llama-3.1-405b", hw="rtx-4090", w="fp16"))
    if not json_of(reader, twin_of(tree))["levers"]:
        assert "No single change makes it fit" in tree.text


@pytest.mark.parametrize("path", ["/", "/?model=llama-3.1-8b&hw=h100-sxm-80gb", "/live", "/docs"])
def test_pages_advertise_a_json_twin_that_answers(reader: TestClient, path: str) -> None:
    tree = page(reader, path)
    link = tree.one("link", rel="alternate")
    assert link["type"] == "application/json"
    assert reader.get(link["href"]).headers["content-type"].startswith("application/json")
    assert link["href"] in [a["href"] for a in tree.all("a")]
