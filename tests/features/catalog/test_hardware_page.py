"""The list of accelerators: the catalog's numbers, shareable addresses, refusals at the field."""

from urllib.parse import parse_qsl, urlsplit

import pytest
from starlette.testclient import TestClient

from tests.factories import shipped_catalog
from tests.features.asking import json_of, page, partial, twin_of
from tests.features.dom import Node, parse

RECORDS = shipped_catalog().accelerators
FROM_HEADING = {"HX_Source": "a#sort-bandwidth"}
FROM_FORM = {"HX_Source": "form#filters"}


def names(tree: Node) -> list[str]:
    """The links of the rows, in order."""
    return [row.one("th").one("a").text for row in tree.one("tbody").all("tr")]


def cells(tree: Node, name: str) -> dict[str, str]:
    """The row of a name by its headings."""
    for row in tree.table():
        first, *_ = row.values()
        if first.startswith(name):
            return row
    raise AssertionError(name)


def test_every_accelerator_is_listed_in_the_order_of_the_catalog(reader: TestClient) -> None:
    tree = page(reader, "/hardware")
    assert names(tree) == [record.name for record in RECORDS.values()]
    assert tree.id("found").text == f"{len(RECORDS)} accelerators"
    hrefs = [row.one("th").one("a")["href"] for row in tree.one("tbody").all("tr")]
    assert hrefs == [f"/hardware/{id_}" for id_ in RECORDS]


def test_a_row_shows_what_the_catalog_has(reader: TestClient) -> None:
    row = cells(page(reader, "/hardware?q=h100+sxm"), "H100 SXM5 80GB")
    assert row.pop("Name") == "H100 SXM5 80GBNVIDIA · data center · 2022"
    assert row == {
        "Maker": "NVIDIA",
        "Kind": "data center",
        "Year": "2022",
        "Memory GB": "80",
        "Reported GiB": "79.65",
        "Bandwidth GB/s": "3,350",
        "FP16 TFLOP/s": "989.4",
        "BF16 TFLOP/s": "989.4",
        "FP8 TFLOP/s": "1,978.9",
        "INT8 TOP/s": "1,978.9",
        "FP4 TFLOP/s": "unknown",
        "Ridge FLOP/B": "295.3",
        "Link GB/s": "450",
        "Power W": "700",
        "Rent $/h": "2.95",
        "Confidence": "A",
    }


def test_unknown_none_and_uncertain_are_told_apart(reader: TestClient) -> None:
    tree = page(reader, "/hardware")
    apple = cells(tree, "Apple M1 (8-core GPU)")
    assert (apple["Link GB/s"], apple["Reported GiB"]) == ("none", "unknown")
    assert apple["FP16 TFLOP/s"] == "? uncertain: 2.6"
    assert apple["Ridge FLOP/B"] == "? uncertain: 38.1"
    assert all(text not in ("", "0", "0.0", "None", "nan") for row in tree.table() for text in row.values())
    assert "announced" in cells(tree, "Rubin CPX")["Name"]


@pytest.mark.parametrize("vendor", sorted({record.vendor for record in RECORDS.values()}))
def test_a_maker_has_exactly_its_rows(reader: TestClient, vendor: str) -> None:
    tree = page(reader, f"/hardware?vendor={vendor}")
    expected = [record.name for record in RECORDS.values() if record.vendor == vendor]
    assert names(tree) == expected
    assert tree.id("found").text == f"{len(expected)} of {len(RECORDS)} accelerators"
    assert tree.id("f-vendor").one("option", selected="")["value"] == vendor


@pytest.mark.parametrize(
    "query",
    [
        "q=h100&vendor=NVIDIA&sort=-bandwidth",
        "min_memory=80&has_fp8=yes&sort=price",
        "kind=edge",
        "min_year=2024&max_year=2025&min_bandwidth=1000.5&has_fp4=no&sort=-year",
        "q=%3Cb%3E+%26",
    ],
)
def test_an_address_gives_the_same_list_to_whoever_opens_it(reader: TestClient, query: str) -> None:
    tree, part = page(reader, f"/hardware?{query}"), partial(reader, f"/hardware?{query}", **FROM_FORM)
    shared = part.headers["hx-push-url"]
    assert dict(parse_qsl(urlsplit(shared).query)) == dict(parse_qsl(query))
    again = page(reader, shared)
    assert again.id("results").raw == tree.id("results").raw
    form = again.id("filters")
    typed = {n["name"]: n["value"] for n in form.all("input") if n["value"]}
    chosen = {n["name"]: n.one("option", selected="")["value"] for n in form.all("select")}
    assert typed | {name: value for name, value in chosen.items() if value} == dict(parse_qsl(query))
    listed = json_of(reader, twin_of(again))["hardware"]
    assert [row["name"] for row in listed] == (names(again) if listed else [])


def test_headings_order_the_rows_and_say_so(reader: TestClient) -> None:
    tree = page(reader, "/hardware?vendor=AMD")
    descending = page(reader, tree.id("sort-bandwidth")["href"])
    assert names(descending)[:2] == ["Instinct MI455X", "Instinct MI350X"]
    assert [th["aria-sort"] for th in descending.all("th") if "aria-sort" in th.attributes] == ["descending"]
    ascending = page(reader, descending.id("sort-bandwidth")["href"])
    assert names(ascending)[0].startswith("Ryzen AI Max+ 395")
    assert len(names(ascending)) == sum(record.vendor == "AMD" for record in RECORDS.values())
    heads = tree.one("thead").all("a")
    assert all(a["href"] == a["hx-get"] for a in heads)
    for link in heads:
        (marked,) = [th for th in page(reader, link["href"]).all("th") if "aria-sort" in th.attributes]
        assert marked.one("a")["id"] == link["id"]


def test_nothing_found_says_so_and_offers_to_clear(reader: TestClient) -> None:
    tree = page(reader, "/hardware?vendor=Groq&min_memory=90")
    assert tree.id("found").text == f"0 of {len(RECORDS)} accelerators"
    assert not tree.all("table")
    clear = tree.id("results").one("a", href="/hardware")
    assert clear.text == "Clear the filters"


@pytest.mark.parametrize(
    ("query", "name", "words", "kept"),
    [
        ("min_memory=nan", "min_memory", "Must be a number, and a finite one.", "nan"),
        ("min_bandwidth=1e300", "min_bandwidth", "Must be from 0 to 1,000,000,000 GB/s.", "1e300"),
        ("min_year=1850", "min_year", "Must be from 2000 to 2100.", "1850"),
        ("min_year=2026&max_year=2020", "max_year", "nothing could be both", "2020"),
        ("sort=colour", "sort", "Must be one of name, vendor", "colour"),
        ("vendor=%3Cb%3E", "vendor", "Must be one of AMD", "<b>"),
        ("kind=edge&kind=consumer", "kind", "more than once", "edge"),
        ("has_fp8=perhaps", "has_fp8", "Must be one of yes, no.", "perhaps"),
        (f"q={'w' * 101}", "q", "At most 100 characters.", "w" * 101),
    ],
)
def test_what_is_wrong_stands_at_its_field_and_what_was_typed_stays(
    reader: TestClient, query: str, name: str, words: str, kept: str
) -> None:
    tree = page(reader, f"/hardware?{query}", 422)
    assert words in tree.id(f"msg-{name}").text
    field = tree.id(f"f-{name}")
    assert field["aria-invalid"] == "true"
    assert (field.one("option", selected="") if field.tag == "select" else field)["value"] == kept
    assert not tree.all("table")
    assert not tree.all("link", rel="alternate")
    assert words in tree.id("results").text
    part = partial(reader, f"/hardware?{query}", **FROM_FORM)
    assert part.status_code == 422
    assert "hx-push-url" not in part.headers
    assert words in parse(part.text).id(f"msg-{name}").text


@pytest.mark.parametrize(("query", "status"), [("min_year=2024", 200), ("has_fp4=yes", 200), ("min_bandwidth=x", 422)])
def test_filters_that_hold_something_stand_open(reader: TestClient, query: str, status: int) -> None:
    assert not page(reader, "/hardware?vendor=AMD").id("filters").all("details", open="")
    assert page(reader, f"/hardware?{query}", status).id("filters").all("details", open="")


def test_an_unknown_name_is_told(reader: TestClient) -> None:
    tree = page(reader, "/hardware?colour=red", 422)
    assert tree.id("msg-general").text == "colour: There is no such query parameter."


def test_too_many_parameters_are_a_page(reader: TestClient) -> None:
    assert "More than 200" in page(reader, f"/hardware?{'q=a&' * 300}", 422).text


def test_a_swap_brings_the_list_and_what_follows_it(reader: TestClient) -> None:
    part = parse(partial(reader, "/hardware?vendor=AMD&sort=-year", **FROM_HEADING).text)
    assert len(names(part)) == 14
    assert part.id("twin-head")["href"] == "/api/v1/hardware?vendor=AMD&sort=-year"
    assert part.id("orders")["hx-swap-oob"] == "true"
    assert part.id("f-sort").one("option", selected="")["value"] == "-year"
    from_form = parse(partial(reader, "/hardware?vendor=AMD&sort=-year", **FROM_FORM).text)
    assert not from_form.all(id="orders")  # the field that was just used is not taken from under the hand
    current = "http://testserver/hardware?vendor=AMD"
    assert "hx-push-url" not in partial(reader, "/hardware?vendor=AMD&q=", HX_Current_URL=current).headers


def test_every_name_of_a_query_has_a_field_with_label_and_message(reader: TestClient) -> None:
    tree = page(reader, "/hardware")
    form = tree.id("filters")
    labels = {label["for"] for label in form.all("label")}
    fields = [node for node in form if "name" in node.attributes]
    assert all(node["id"] in labels and f"msg-{node['name']}" in node["aria-describedby"] for node in fields)
    document = json_of(reader, "/api/v1/openapi.json")
    read = [p["name"] for p in document["paths"]["/api/v1/hardware"]["get"]["parameters"]]
    assert sorted(node["name"] for node in fields) == sorted(read)
    assert (form["method"], form["action"]) == ("get", "/hardware")
