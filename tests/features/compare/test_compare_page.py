"""The page of a comparison: what differs first, every number the evaluation's, every action a plain link."""

import csv
import json
from collections.abc import Iterator
from urllib.parse import parse_qsl, urlencode, urlsplit

import pytest
from starlette.testclient import TestClient

from app.calc.quantity import quantity, significant
from app.features.compare.charts.gallery import COMPARED
from app.features.compare.view import change_words
from tests.compared_plans import BASE, FP8, H200, UNFIT
from tests.features.asking import items_of, json_of, page, twin_of
from tests.features.dom import Node

FOUR = (BASE, FP8, H200, UNFIT)
SCENARIO = {"model": {"id": "llama-3.1-8b"}, "hardware": {"id": "h100-sxm-80gb"}}
DANGERS = (
    '"><script>alert(1)</script>',
    "javascript:alert(1)",
    "http://169.254.169.254/latest/meta-data",
    "file:///etc/passwd",
    "/c/../../etc/passwd",
    "//c/%00",
    "model=%00&hw=%ff%fe",
    f"{BASE}&prompt=NaN",
    f"{BASE}&util=1e999",
    f"{BASE}&batch=-1",
    f"{BASE}&out={'9' * 29}",
    "{{7*7}}",
    "א‮ב ",
    "=" * 500,
    "&" * 150,
)


def compare(*texts: str, **view: str) -> str:
    return f"/compare?{urlencode([*(('s', text) for text in texts), *view.items()])}"


def plans_in(address: str) -> list[dict[str, str]]:
    """The scenarios in an address, each as the items of its query."""
    asked = parse_qsl(urlsplit(address).query, keep_blank_values=True)
    return [dict(parse_qsl(value, keep_blank_values=True)) for name, value in asked if name == "s"]


def cards(tree: Node) -> list[Node]:
    return [article for article in tree.all("article") if article.attributes.get("id", "").startswith("plan-")]


def link(node: Node, words: str) -> str:
    (found,) = [a["href"] for a in node.all("a") if a.text.startswith(words)]
    return found


def copied(tree: Node) -> str:
    """The address that the copy button hands out."""
    (button,) = [node for node in tree.all("button") if "data-copy-text" in node.attributes]
    return button["data-copy-text"]


def outcome(tree: Node) -> Iterator[tuple[str, str, list[Node]]]:
    """Id, level and cells of each row of results."""
    for row in tree.id("results").one("tbody").all("tr"):
        yield row["data-row"], row["data-level"], row.all("td")


def test_with_nothing_asked_there_are_comparisons_to_begin_with(reader: TestClient) -> None:
    tree = page(reader, "/compare")
    ready = tree.one("ul", **{"class": "ready"}).all("li")
    assert len(ready) == 4
    assert not tree.all("table")
    for item in ready:
        there = page(reader, item.one("a")["href"])
        assert len(cards(there)) == 2
        assert all(article.one("h2").text in item.text for article in cards(there))
        rates = [cells for id_, level, cells in outcome(there) if (id_, level) == ("output_tokens_per_s", "expected")]
        for cell in rates[0]:
            assert cell.one("span", **{"class": "figure"}).text.removesuffix(" tokens/s") in item.text


def test_verdicts_come_first_then_inputs_then_results_then_charts(reader: TestClient) -> None:
    tree = page(reader, compare(*FOUR))
    order = [node.attributes.get("id") for node in tree if node.tag in ("article", "section", "figure")]
    wanted = ["plan-a", "plan-b", "plan-c", "plan-d", None, "results", None, *(f"chart-{id_}" for id_ in COMPARED)]
    assert [id_ for id_ in order if id_ != "plans"][1:] == wanted
    states = [article["data-state"] for article in cards(tree)]
    assert states == ["fits", "fits", "fits", "does_not_fit"]
    assert "Does not fit" in cards(tree)[3].text
    assert "D does not fit" in tree.one("p", **{"class": "panel warning"}).text


def test_only_fields_that_differ_are_told_and_marked(reader: TestClient) -> None:
    tree = page(reader, compare(BASE, H200 + "&w=fp8"))
    table = tree.one("table", **{"class": "compared-plans of-2 inputs-differ"})
    rows = {row.one("th").text: [cell.text for cell in row.all("td")] for row in table.one("tbody").all("tr")}
    assert rows == {
        "Accelerator": ["H100 SXM5 80GB", "≠ H200 SXM 141GB, not the baseline’s"],
        "Weights": ["bf16", "≠ fp8, not the baseline’s"],
        "Arithmetic": ["bf16", "≠ fp8, not the baseline’s"],
    }
    follows = page(reader, compare(BASE, "model=llama-3.1-8b&hw=rtx-4090")).one("tr", data_path="hardware.id")
    assert "follows" not in follows.text
    step = page(reader, compare(BASE, "model=llama-3.1-8b&hw=rtx-4090")).one(
        "tr", data_path="engine.max_batched_tokens"
    )
    assert "follows" in step.text


@pytest.mark.parametrize("base", ["1", "2"])
def test_results_are_those_of_the_twin_and_so_are_the_differences(reader: TestClient, base: str) -> None:
    tree = page(reader, compare(*FOUR[:3], base=base))
    document = json_of(reader, twin_of(tree))
    assert document["baseline"] == int(base)
    numbers = {(row["id"], row["level"]): row for row in document["results"]}
    told = {(id_, level): cells for id_, level, cells in outcome(tree) if level != "words"}
    assert set(told) == set(numbers)
    for key, cells in told.items():
        row = numbers[key]
        for place, cell in enumerate(cells):
            mid, change = row["values"][place]["mid"], cell.all("span")[-1]
            figure = cell.one("span", **{"class": "figure"}).text
            if row["unit"] in ("s", "B", "J"):
                assert figure == quantity(mid, row["unit"], 3)
            elif row["unit"] == "tokens/s":
                assert figure == f"{significant(mid, 3)} tokens/s"
            verdict = row["verdicts"][place]
            if verdict in ("better", "worse"):
                assert change.text == f"{change_words(row['ratios'][place])} {verdict}"
                assert change["class"] == f"change is-{verdict}"
            assert ("best" in cell.text) is (place + 1 in row["best"])


@pytest.mark.parametrize(
    ("ratio", "words"),
    [
        (1.12, "+12 %"),
        (0.65, "−35 %"),
        (2.4, "+140 %, 2.4 ×"),
        (0.5, "−50 %, 0.5 ×"),
        (13.3, "+1,230 %, 13 ×"),
        (1.0004, "+0.04 %"),
        (0.0001, "−99.99 %, 0.0001 ×"),
        (0, "−100 %"),
        (None, ""),
    ],
)
def test_a_difference_is_told_with_its_sign_and_as_a_factor_when_large(ratio: float | None, words: str) -> None:
    assert change_words(ratio) == words


def test_another_baseline_turns_the_differences_round(reader: TestClient) -> None:
    tree = page(reader, compare(BASE, H200))
    there = page(reader, tree.id("base-b")["href"].partition("#")[0])
    assert there.id("base-b")["aria-current"] == "true"
    first, second = (
        {key: [cell.text for cell in cells] for *key_, cells in outcome(one) for key in [tuple(key_)]}
        for one in (tree, there)
    )
    throughput = ("output_tokens_per_s", "expected")
    assert first[throughput][1].endswith("better")
    assert second[throughput][0].endswith("worse")
    assert not second[throughput][1].endswith(("better", "worse"))
    assert "Against B" in cards(there)[0].text


def test_equal_rows_are_hidden_and_shown_again(reader: TestClient) -> None:
    tree = page(reader, compare(BASE, H200))
    button = tree.id("equal")
    hidden = page(reader, button["href"].partition("#")[0])
    before, after = ({(id_, level) for id_, level, _ in outcome(one)} for one in (tree, hidden))
    capacity = {(id_, "capacity") for id_ in ("needed_bytes", "served_sequences")}
    assert before - after == {*capacity, ("gpus", "input"), ("limiter", "words"), ("footing", "words")}
    assert f"Hide the {len(before - after)} equal rows" == button.text
    shown = page(reader, hidden.id("equal")["href"].partition("#")[0])
    assert {(id_, level) for id_, level, _ in outcome(shown)} == before
    assert hidden.id("compare").one("input", name="equal")["value"] == "hide"


def test_every_action_of_a_column_is_a_link_that_does_what_it_says(reader: TestClient) -> None:
    tree = page(reader, compare(BASE, H200, FP8, base="3"))
    first, second, third = cards(tree)
    assert items_of(link(second, "Open in the workbench"))["hw"] == "h200-sxm"
    assert [plan["hw"] for plan in plans_in(link(second, "Move left"))] == ["h200-sxm"] + ["h100-sxm-80gb"] * 2
    assert items_of(link(third, "Move left"))["base"] == "2"
    assert items_of(link(second, "Make it the baseline"))["base"] == "2"
    assert [plan["w"] for plan in plans_in(link(first, "Remove"))] == ["bf16", "fp8"]
    assert items_of(link(first, "Remove"))["base"] == "2"
    assert "base" not in items_of(link(third, "Remove"))
    assert [plan["hw"] for plan in plans_in(link(first, "Duplicate"))][:2] == ["h100-sxm-80gb"] * 2
    assert items_of(link(first, "Duplicate"))["base"] == "4"
    assert [a for a in first.all("a") if a.text.startswith("Move left")] == []
    assert len(cards(page(reader, link(first, "Duplicate")))) == 4
    assert [a for a in page(reader, compare(*FOUR)).all("a") if a.text.startswith("Duplicate")] == []


def test_a_copy_with_one_change_stands_beside_the_plan(reader: TestClient) -> None:
    tree = page(reader, compare(BASE))
    variants = tree.id("variants-a").all("li")
    assert len(variants) >= 2
    there = page(reader, variants[0].one("a")["href"])
    assert len(cards(there)) == 2
    assert there.one("table", **{"class": "compared-plans of-2 inputs-differ"}).one("tbody").all("tr")


def test_an_address_writes_everything_out_and_gives_the_same_page_again(reader: TestClient) -> None:
    tree = page(reader, compare(BASE, "", H200, base="3", equal="hide", units="gib"))
    shared = copied(tree)
    query = dict(parse_qsl(urlsplit(shared).query))
    assert (query["base"], query["equal"], query["units"]) == ("2", "hide", "gib")
    assert all({"v", "count", "compute", "max_batched", "basis"} <= set(plan) for plan in plans_in(shared))
    address = shared.partition("testserver")[2]
    once = page(reader, address)
    again = page(reader, copied(once).partition("testserver")[2])
    assert once.id("results").raw == again.id("results").raw
    assert "GiB" in once.id("results").text
    assert " GB" not in once.id("results").text


def test_identical_plans_stay_two(reader: TestClient) -> None:
    tree = page(reader, compare(BASE, BASE))
    assert [article.one("h2").text for article in cards(tree)] == ["Plan A", "Plan B"]
    assert "the same scenario" in tree.text
    assert len(cards(page(reader, link(cards(tree)[1], "Make it")))) == 2


def test_different_requests_are_told_of(reader: TestClient) -> None:
    assert "different requests" in page(reader, compare(BASE, f"{BASE}&prompt=4000")).text
    assert "different requests" not in page(reader, compare(BASE, f"{BASE}&ttft=1")).text


def test_what_is_wrong_stands_at_its_field_and_the_rest_is_shown(reader: TestClient) -> None:
    typed = ("hello", BASE, "model=llama-3.1-8b&hw=h10&prompt=many", "/c/nothing")
    tree = page(reader, compare(*typed, base="9"), 422)
    form = tree.id("compare")
    assert (form["method"], form["action"]) == ("get", "/compare")
    assert tuple(node["value"] for node in form.all("input", name="s")) == typed
    for place, words in ((0, "neither"), (2, "Prompt length: must be a whole number"), (3, "no saved configuration")):
        assert words in tree.id(f"msg-s{place}").text
        assert tree.id(f"f-s{place}")["aria-invalid"] == "true"
    assert "Did you mean" in tree.id("msg-s2").text
    assert tree.id("msg-s1").text == ""
    assert "from 1 to 4" in tree.id("msg-base").text
    assert [article.one("h2").text for article in cards(tree)] == ["Llama-3.1-8B on H100 SXM5 80GB"]
    assert not tree.all("link", rel="alternate")


def test_five_plans_are_refused_by_name(reader: TestClient) -> None:
    tree = page(reader, compare(*FOUR, BASE), 422)
    assert "5 plans are asked for" in tree.id("msg-general").text
    assert len(cards(tree)) == 4


@pytest.mark.parametrize("text", DANGERS)
def test_hostile_texts_are_refused_and_kept_as_they_were_typed(reader: TestClient, text: str) -> None:
    tree = page(reader, compare(BASE, text), 422)
    assert tree.id("f-s1")["value"] == text
    assert tree.id("msg-s1").text
    assert len(cards(tree)) == 1


@pytest.mark.parametrize(
    "name", ['"><script>alert(1)</script>', "<b>&amp;", "{{7*7}}", "a=b&c=d", "שלום 👩‍💻", "x" * 120]
)
def test_any_name_survives(reader: TestClient, name: str) -> None:
    card = urlencode({"hw": "custom", "hw_name": name, "hw_mem": "80", "hw_bw": "3350", "hw_bf16": "989"})
    tree = page(reader, compare(BASE, f"model=llama-3.1-8b&{card}"))
    assert [article.one("h2").text for article in cards(tree)] == ["H100 SXM5 80GB", name]
    there = page(reader, link(cards(tree)[1], "Make it"))
    assert cards(there)[1].one("h2").text == name
    assert json_of(reader, twin_of(there))["plans"][1]["name"] == name


def test_a_saved_link_keeps_its_title_and_leads_back(client: TestClient) -> None:
    made = client.post("/api/v1/configurations", json={"title": "Plan <of> record", "notes": "", "scenario": SCENARIO})
    slug = made.json()["slug"]
    saved = page(client, f"/c/{slug}")
    answer = client.get(link(saved.id("main"), "Compare"))
    assert answer.headers["cache-control"] == "private, no-store"
    tree = page(client, compare(f"https://any.example/c/{slug}", BASE))
    first, _ = cards(tree)
    assert first.one("h2").text == "Plan <of> record"
    assert link(first, "saved link") == f"/c/{slug}"
    assert tree.one("meta", name="robots")["content"] == "noindex"
    asked = parse_qsl(urlsplit(link(cards(tree)[1], "Move left")).query)
    assert asked[1] == ("s", f"/c/{slug}")
    assert plans_in(link(first, "Duplicate"))[1]["model"] == "llama-3.1-8b"
    revoked = client.delete(f"/api/v1/configurations/{slug}", headers={"X-Edit-Token": made.json()["edit_token"]})
    assert revoked.status_code == 204
    assert "no saved configuration" in page(client, compare(slug, BASE), 422).id("msg-s0").text


def test_the_workbench_leads_here_and_so_does_the_navigation(reader: TestClient) -> None:
    tree = page(reader, f"/?{BASE}&prompt=2000&units=gib")
    address = link(tree.id("results"), "Compare")
    assert plans_in(address)[0]["prompt"] == "2000"
    assert items_of(address)["units"] == "gib"
    here = page(reader, address)
    assert here.one("nav", aria_label="Pages").one("a", aria_current="page").text == "Compare"
    assert "stands alone" in here.text


@pytest.mark.parametrize("chart", COMPARED)
def test_a_chart_can_be_downloaded_as_it_stands(reader: TestClient, chart: str) -> None:
    tree = page(reader, compare(*FOUR, base="2"))
    title, shown = tree.id(f"title-{chart}").text, tree.id(f"table-{chart}").one("table").table()
    hrefs = [a["href"] for a in tree.id(f"chart-{chart}").all("a")]
    text, body = reader.get(hrefs[0]), json_of(reader, hrefs[1])
    assert text.headers["content-disposition"] == f'attachment; filename="tokenroof-{chart}.csv"'
    about = [line for line in text.text.splitlines() if line.startswith("# ")]
    assert about[0] == f"# Tokenroof: {title}"
    assert [line[2] for line in about[1:5]] == list("ABCD")
    columns, *rows = csv.reader(line for line in text.text.splitlines() if not line.startswith("# "))
    assert columns == body["table"]["columns"]
    assert len(rows) == len(shown) == len(body["table"]["rows"])
    drawn = {one["id"]: one["figure"] for one in json.loads(tree.id("chart-data").raw)}
    assert body["figure"] == drawn[chart]


def test_there_are_no_other_downloads_and_none_of_what_is_not_read(reader: TestClient) -> None:
    assert reader.get(f"/compare/none.csv?{urlencode({'s': BASE})}").status_code == 404
    assert reader.get(f"/compare/compare-time.xls?{urlencode({'s': BASE})}").status_code == 404
    assert reader.get("/compare/compare-time.csv").status_code == 422
    assert reader.get("/compare/compare-time.csv?s=hello").status_code == 422
