"""The page of predicted against measured: its figures are those of the rows, its addresses can be shared."""

import json
from urllib.parse import parse_qsl, urlsplit

import pytest
from starlette.testclient import TestClient

from app.catalog.measurements import Metric
from app.features.validation.columns import ROWS_A_PAGE
from app.features.validation.compared import METRICS, value_words
from app.features.validation.errors import SLICES, slice_of, slices, worst
from app.features.validation.view import off_by, percent
from tests.factories import compared_rows, shipped_catalog
from tests.features.asking import items_of, json_of, page, partial, twin_of
from tests.features.dom import Node, parse

ROWS = compared_rows()
FROM_HEADING = {"HX_Source": "a#sort-source"}
FROM_FORM = {"HX_Source": "form#filters"}


def residuals(tree: Node) -> list[dict[str, str]]:
    """The rows of the table of measurements, by its headings."""
    return tree.one("table", **{"class": "measured"}).table() if tree.all("table", **{"class": "measured"}) else []


def error_rows(tree: Node) -> dict[str, list[str]]:
    """The cells of the error table by the name of the row."""
    body = tree.one("table", **{"class": "errors"}).one("tbody")
    return {row.one("th").text: [cell.text for cell in row.all("td")] for row in body.all("tr")}


def test_every_row_is_found_and_the_worst_stand_on_the_first_page(reader: TestClient) -> None:
    tree = page(reader, "/validation")
    assert tree.id("found").text == f"{len(ROWS)} measurements"
    shown = residuals(tree)
    assert len(shown) == ROWS_A_PAGE
    for row, cells in zip(ROWS, shown, strict=False):
        metric = row.measurement.metric
        assert cells["Measurement"].startswith(row.model)
        assert row.measurement.engine.replace("-", "").casefold() in cells["Measurement"].replace("-", "").casefold()
        assert cells["Measured"] == value_words(row.measured, metric)
        assert cells["Cross-validated"] == value_words(row.held_out, metric)
        assert cells["In-sample"] == ("unknown" if row.in_sample is None else value_words(row.in_sample, metric))
        assert cells["Off by"] == off_by(row)
        assert cells["Metric"].removeprefix("not counted ") == METRICS[metric]
        assert cells["Source"] == row.measurement.source


def test_a_row_opens_the_workbench_with_what_was_measured(reader: TestClient) -> None:
    tree = page(reader, "/validation?metric=tpot_s&engine=vllm")
    link = tree.one("table", **{"class": "measured"}).one("tbody").all("a")[0]
    measurement = next(
        row.measurement for row in ROWS if (row.measurement.metric, row.measurement.engine) == (Metric.TPOT, "vllm")
    )
    items = items_of(link["href"])
    assert (items["model"], items["hw"]) == (measurement.model, measurement.accelerator)
    assert (items["prompt"], items["out"]) == (measurement.prompt_tokens, measurement.output_tokens)
    assert (items["tp"], items["batch"], items["count"]) == (
        measurement.tensor,
        measurement.concurrency,
        measurement.gpus,
    )
    assert page(reader, link["href"]).id("f-model").one("option", selected="")["value"] == measurement.model


@pytest.mark.parametrize("by", SLICES)
def test_the_error_table_is_the_errors_of_the_slices(reader: TestClient, by: str) -> None:
    shown = error_rows(page(reader, f"/validation?by={by}"))
    found = slices(ROWS, by)
    assert list(shown) == [*(one.label for one in found), "all"]
    for one in (*found, slice_of(ROWS)):
        rows, *cells = shown[one.label]
        assert rows == f"{one.measurements:,}"
        assert one.cross_validated is not None
        assert cells[:2] == [percent(one.cross_validated.median), percent(one.cross_validated.mean)]
        assert cells[5] == (percent(one.coverage.inside) if one.coverage else "–")
        assert one.in_sample is None or cells[6:8] == [percent(one.in_sample.median), percent(one.in_sample.mean)]
        assert one.unseen is not None
        assert cells[11:] == [percent(one.unseen.median), percent(one.unseen.within_factor_2)]


def test_a_slice_leads_to_its_measurements(reader: TestClient) -> None:
    tree = page(reader, "/validation?by=engine&metric=ttft_s")
    links = tree.one("table", **{"class": "errors"}).one("tbody").all("a")
    assert links
    for link in links:
        assert items_of(link["href"]) == {
            "by": "engine",
            "metric": "ttft_s",
            "engine": items_of(link["href"])["engine"],
        }
    there = page(reader, links[0]["href"])
    assert set(error_rows(there)) == {links[0].text}


def test_figures_and_tables_follow_the_filters(reader: TestClient) -> None:
    tree = page(reader, "/validation?engine=sglang&accelerator=mi300x")
    own = [r for r in ROWS if (r.measurement.engine, r.measurement.accelerator) == ("sglang", "mi300x")]
    assert tree.id("found").text == f"{len(own)} of {len(ROWS)} measurements"
    whole = slice_of(own)
    assert whole.cross_validated is not None
    figures = {node.one("dt").text: node.one("b").text for node in tree.one("dl").all("div")}
    assert figures["Median error"] == percent(whole.cross_validated.median)
    assert figures["Within 20 %"] == percent(whole.cross_validated.within_20_percent)
    points = sum(
        len(trace["x"])
        for chart in json.loads(tree.id("chart-data").raw)
        for trace in chart["figure"]["data"]
        if trace["mode"] == "markers"
    )
    assert points == len(own)


def test_the_worst_groups_are_ranked_from_the_rows_and_lead_to_them(reader: TestClient) -> None:
    tree = page(reader, "/validation")
    lists = tree.all("ol")
    for kind, ranked in zip(("family", "model"), lists, strict=True):
        expected = worst(ROWS, kind, 6)
        assert [item.all("a")[0].text for item in ranked.all("li")] == [group.label for group in expected]
        assert all(group.direction in item.text for group, item in zip(expected, ranked.all("li"), strict=True))
        top = page(reader, ranked.all("a")[0]["href"])
        assert f"over the {expected[0].measurements} measurements" in top.text


def test_what_is_not_compared_is_counted_with_its_reason(reader: TestClient) -> None:
    catalog = shipped_catalog()
    tree = page(reader, "/validation")
    reasons = {row["Reason"]: int(row["Measurements"]) for row in tree.one("table", **{"class": "reasons"}).table()}
    said = [reason for row in catalog.measurements for reason in row.left_out.split("; ") if reason]
    assert {key.casefold(): count for key, count in reasons.items()} == {
        reason.casefold(): said.count(reason) for reason in set(said)
    }
    left_out = sum(not row.is_compared for row in catalog.measurements)
    unscored = sum(row.is_compared and not row.is_scored for row in catalog.measurements)
    assert f"{left_out:,} measurements are not compared" in tree.text
    assert f"{unscored:,} compared rows count in no error" in tree.text
    assert catalog.calibration is not None
    assert f"Calibration {catalog.calibration.version}" in tree.text


def test_a_filter_that_leaves_only_what_may_speculate_has_no_errors(reader: TestClient) -> None:
    tree = page(reader, "/validation?scored=no")
    assert not tree.all("table", **{"class": "errors"})
    assert "do not say whether they speculate" in tree.text
    assert all(cells["Metric"].startswith("not counted") for cells in residuals(tree))


def test_the_pages_hold_every_row_once(reader: TestClient) -> None:
    own = [row for row in ROWS if row.measurement.metric is Metric.PREFILL]
    names, path = list[str](), "/validation?metric=prefill_tokens_per_s"
    for number in (1, 2, 3):
        tree = page(reader, path)
        assert f"page {number} of 3" in tree.text
        names += [cells["Measurement"] for cells in residuals(tree)]
        path = tree.id("page-next-above")["href"] if number < 3 else ""
    assert len(names) == len(own) == 131
    assert not page(reader, "/validation?metric=prefill_tokens_per_s&page=3").all(id="page-next-above")
    beyond = page(reader, "/validation?metric=prefill_tokens_per_s&page=9")
    assert residuals(beyond) == []
    assert beyond.id("residuals").one("a", href="/validation?metric=prefill_tokens_per_s&page=3").text == "page 3"


def test_a_filter_begins_at_the_first_page(reader: TestClient) -> None:
    tree = page(reader, "/validation?page=2")
    hrefs = [a["href"] for a in (*tree.one("table", **{"class": "errors"}).all("a"), *tree.all("ol")[0].all("a"))]
    hrefs += [a["href"] for a in tree.one("table", **{"class": "measured"}).one("thead").all("a")]
    assert all("page=" not in href for href in hrefs)
    assert not tree.id("filters").all(name="page")


@pytest.mark.parametrize(
    "query", ["metric=ttft_s&by=model", "q=mi300x&page=2", "engine=vllm&sort=-speed", "family=hopper&interval=outside"]
)
def test_an_address_gives_the_same_page_to_whoever_opens_it(reader: TestClient, query: str) -> None:
    tree, part = page(reader, f"/validation?{query}"), partial(reader, f"/validation?{query}", **FROM_FORM)
    shared = part.headers["hx-push-url"]
    assert dict(parse_qsl(urlsplit(shared).query)) == dict(parse_qsl(query))
    assert page(reader, shared).id("results").raw == tree.id("results").raw
    document = json_of(reader, twin_of(tree))
    assert [row["id"] for row in document["rows"]]
    assert len(document["rows"]) == len(residuals(tree))


def test_a_swap_brings_the_list_and_what_follows_it(reader: TestClient) -> None:
    part = parse(partial(reader, "/validation?metric=ttft_s&sort=source", **FROM_HEADING).text)
    assert part.id("twin-head")["href"] == "/api/v1/validation?metric=ttft_s&sort=source"
    assert part.id("orders")["hx-swap-oob"] == "true"
    assert not part.all("h1")
    assert not part.all(**{"class": "panel basis"})


def test_what_is_shown_anyway_is_not_written_out(reader: TestClient) -> None:
    assert partial(reader, "/validation?by=regime", **FROM_FORM).headers["hx-push-url"] == "/validation"


@pytest.mark.parametrize(
    ("query", "name", "words"),
    [
        ("metric=speed", "metric", "Must be one of ttft_s"),
        ("by=colour", "by", "Must be one of regime, metric, engine, accelerator, model."),
        ("accelerator=h100", "accelerator", "Must be one of"),
        ("sort=colour", "sort", "Must be one of name"),
        ("engine=vllm&engine=vllm", "engine", "more than once"),
    ],
)
def test_what_is_wrong_stands_at_its_field(reader: TestClient, query: str, name: str, words: str) -> None:
    tree = page(reader, f"/validation?{query}", 422)
    assert words in tree.id(f"msg-{name}").text
    assert tree.id(f"f-{name}")["aria-invalid"] == "true"
    assert not tree.all("link", rel="alternate")
    assert not residuals(tree)
    part = partial(reader, f"/validation?{query}", **FROM_FORM)
    assert part.status_code == 422
    assert words in parse(part.text).id(f"msg-{name}").text


@pytest.mark.parametrize("number", ["0", "-1", "two", "1.5", "9999999", "٣"])
def test_a_page_is_a_whole_number(reader: TestClient, number: str) -> None:
    tree = page(reader, f"/validation?page={number}", 422)
    assert tree.id("msg-general").text == "page: Must be a whole number from 1 to 999,999."


def test_every_name_of_a_query_has_a_field_with_label_and_message(reader: TestClient) -> None:
    form = page(reader, "/validation").id("filters")
    labels = {label["for"] for label in form.all("label")}
    fields = [node for node in form if "name" in node.attributes]
    assert all(node["id"] in labels and f"msg-{node['name']}" in node["aria-describedby"] for node in fields)
    document = json_of(reader, "/api/v1/openapi.json")
    read = {p["name"] for p in document["paths"]["/api/v1/validation"]["get"]["parameters"]}
    assert {node["name"] for node in fields} == read - {"page"}
    assert (form["method"], form["action"]) == ("get", "/validation")
