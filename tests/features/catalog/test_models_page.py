"""The list of models: the catalog's numbers, shareable addresses, refusals at the field."""

from urllib.parse import parse_qsl, urlsplit

import pytest
from starlette.testclient import TestClient

from tests.factories import shipped_catalog
from tests.features.asking import json_of, page, partial, twin_of
from tests.features.dom import Node, parse

RECORDS = shipped_catalog().models
FROM_HEADING = {"HX_Source": "a#sort-params"}
FROM_FORM = {"HX_Source": "form#filters"}


def ids(tree: Node) -> list[str]:
    """The ids of the rows, in order."""
    return [row.one("th").one("a")["href"].removeprefix("/models/") for row in tree.one("tbody").all("tr")]


def cells(tree: Node, name: str) -> dict[str, str]:
    """The row of a name by its headings."""
    for row in tree.table():
        first, *_ = row.values()
        if first.startswith(name):
            return row
    raise AssertionError(name)


def test_every_model_is_listed_in_the_order_of_the_catalog(reader: TestClient) -> None:
    tree = page(reader, "/models")
    assert ids(tree) == list(RECORDS)
    assert tree.id("found").text == f"{len(RECORDS)} models"
    assert [row.one("th").one("a").text for row in tree.one("tbody").all("tr")] == [r.name for r in RECORDS.values()]


def test_a_row_shows_what_the_catalog_has(reader: TestClient) -> None:
    row = cells(page(reader, "/models?q=deepseek-v3"), "DeepSeek-V3")
    assert row.pop("Name") == "DeepSeek-V3DeepSeek · 671B, 37.6B active"
    released = RECORDS["deepseek-v3"].released
    assert row.pop("Released") == (released.date if released else "unknown")
    assert row == {
        "Family": "DeepSeek",
        "Kind": "mixture of experts",
        "Parameters 10⁹": "671",
        "Active 10⁹": "37.55",
        "Attention": "latent (MLA)",
        "Layers": "61",
        "Context tokens": "163,840",
        "Cache a token KiB": "68.62",
        "As shipped GB": "673.2",
        "Format": "fp8",
    }


def test_what_is_unknown_or_beyond_a_limit_says_so(reader: TestClient) -> None:
    tree = page(reader, "/models")
    assert cells(tree, "falcon-7b")["Cache a token KiB"] == "* beyond its own context: 8"
    assert all(text not in ("", "0", "0.0", "None", "nan") for row in tree.table() for text in row.values())
    unknown = [record.name for record in RECORDS.values() if record.released is None]
    assert [row for row in tree.table() if row["Released"] == "unknown"] == [cells(tree, name) for name in unknown]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("q=kimi", ["kimi-k2", "kimi-k2.5", "kimi-linear-48b-a3b", "kimi-k3"]),
        ("q=Kimi-K2-Thinking", ["kimi-k2"]),  # a release of the same shape
        ("q=meta-llama+405b", ["llama-3.1-405b"]),
        ("q=deepseek-r1-distill-qwen-7b", ["deepseek-r1-distill-qwen-7b"]),
        ("attention=chunk", ["llama-4-scout", "llama-4-maverick"]),
        ("attention=compressed", ["deepseek-v4-flash", "deepseek-v4-pro"]),
        ("attention=sparse&sort=-params", ["glm-5", "glm-5.2", "deepseek-v3.2", "minimax-m3"]),
        ("family=gpt-oss", ["gpt-oss-20b", "gpt-oss-120b"]),
        ("kind=experts&max_params=20&sort=params", ["granite-4.0-h-tiny", "deepseek-v2-lite"]),
        ("min_params=1000&sort=-params", ["kimi-k3", "deepseek-v4-pro", "kimi-k2", "kimi-k2.5"]),  # ties as they come
        ("kind=dense&max_kv=10&max_params=2", ["gemma-3-1b"]),
        ("min_context=2000000", ["llama-4-scout", "minimax-m1"]),
        ("q=llama+3&kind=dense&max_params=8&sort=-context", ["llama-3.2-1b", "llama-3.2-3b"]),
    ],
)
def test_golden_lists(reader: TestClient, query: str, expected: list[str]) -> None:
    found = ids(page(reader, f"/models?{query}"))
    assert sorted(found) == sorted(expected)
    if "sort=" in query:
        assert found == expected


def test_dense_models_and_those_of_experts_are_all(reader: TestClient) -> None:
    dense, experts = (ids(page(reader, f"/models?kind={kind}")) for kind in ("dense", "experts"))
    assert sorted(dense + experts) == sorted(RECORDS)
    assert experts == [id_ for id_, record in RECORDS.items() if record.architecture.has_experts]


def test_every_sort_of_attention_is_a_part_of_the_whole(reader: TestClient) -> None:
    choices = [option["value"] for option in page(reader, "/models").id("f-attention").all("option")]
    parts = [ids(page(reader, f"/models?attention={choice}")) for choice in choices if choice]
    assert all(parts)
    assert sorted(id_ for part in parts for id_ in part) == sorted(RECORDS)


def test_a_year_finds_what_came_out_in_it_and_nothing_of_an_unknown_date(reader: TestClient) -> None:
    dated = {id_: record.released.date for id_, record in RECORDS.items() if record.released}
    found = [id_ for id_, date in dated.items() if date.startswith("2025")]
    tree = page(reader, "/models?min_year=2025&max_year=2025")
    assert (ids(tree) if found else []) == found
    by_date = ids(page(reader, "/models?sort=released"))
    assert [dated[id_] for id_ in by_date[: len(dated)]] == sorted(dated.values())
    assert not set(by_date[len(dated) :]) & set(dated)


@pytest.mark.parametrize(
    "query",
    [
        "q=llama&kind=dense&sort=-params",
        "attention=recurrent&max_params=50&sort=kv",
        "min_year=2024&max_year=2026&min_context=100000&max_kv=100.5",
        "family=Llama+3&min_params=1&max_params=100",
        "q=%3Cb%3E+%26",
    ],
)
def test_an_address_gives_the_same_list_to_whoever_opens_it(reader: TestClient, query: str) -> None:
    tree, part = page(reader, f"/models?{query}"), partial(reader, f"/models?{query}", **FROM_FORM)
    shared = part.headers["hx-push-url"]
    assert dict(parse_qsl(urlsplit(shared).query)) == dict(parse_qsl(query))
    again = page(reader, shared)
    assert again.id("results").raw == tree.id("results").raw
    form = again.id("filters")
    typed = {n["name"]: n["value"] for n in form.all("input") if n["value"]}
    chosen = {n["name"]: n.one("option", selected="")["value"] for n in form.all("select")}
    assert typed | {name: value for name, value in chosen.items() if value} == dict(parse_qsl(query))
    listed = json_of(reader, twin_of(again))["models"]
    assert [row["id"] for row in listed] == (ids(again) if listed else [])


def test_headings_order_the_rows_and_say_so(reader: TestClient) -> None:
    tree = page(reader, "/models?family=Llama+3")
    descending = page(reader, tree.id("sort-params")["href"])
    assert ids(descending)[0] == "llama-3.1-405b"
    assert ids(page(reader, descending.id("sort-params")["href"]))[0] == "llama-3.2-1b"
    for link in tree.one("thead").all("a"):
        assert link["href"] == link["hx-get"]
        (marked,) = [th for th in page(reader, link["href"]).all("th") if "aria-sort" in th.attributes]
        assert marked.one("a")["id"] == link["id"]


def test_nothing_found_says_so_and_offers_to_clear(reader: TestClient) -> None:
    tree = page(reader, "/models?family=Falcon&kind=experts")
    assert tree.id("found").text == f"0 of {len(RECORDS)} models"
    assert not tree.all("table")
    assert tree.id("results").one("a", href="/models").text == "Clear the filters"


@pytest.mark.parametrize(
    ("query", "name", "words", "kept"),
    [
        ("min_params=nan", "min_params", "Must be a number, and a finite one.", "nan"),
        ("max_kv=1e300", "max_kv", "Must be from 0 to 1,000,000,000 KiB.", "1e300"),
        ("min_year=1850", "min_year", "Must be from 2000 to 2100.", "1850"),
        ("min_params=70&max_params=8", "max_params", "nothing could be both", "8"),
        ("sort=colour", "sort", "Must be one of name, family", "colour"),
        ("family=%3Cb%3E", "family", "Must be one of", "<b>"),
        ("kind=dense&kind=experts", "kind", "more than once", "dense"),
        ("attention=perhaps", "attention", "Must be one of full, window", "perhaps"),
        (f"q={'w' * 101}", "q", "At most 100 characters.", "w" * 101),
    ],
)
def test_what_is_wrong_stands_at_its_field_and_what_was_typed_stays(
    reader: TestClient, query: str, name: str, words: str, kept: str
) -> None:
    tree = page(reader, f"/models?{query}", 422)
    assert words in tree.id(f"msg-{name}").text
    field = tree.id(f"f-{name}")
    assert field["aria-invalid"] == "true"
    assert (field.one("option", selected="") if field.tag == "select" else field)["value"] == kept
    assert not tree.all("table")
    assert not tree.all("link", rel="alternate")
    part = partial(reader, f"/models?{query}", **FROM_FORM)
    assert (part.status_code, "hx-push-url" in part.headers) == (422, False)
    assert words in parse(part.text).id(f"msg-{name}").text


def test_an_unknown_name_is_told(reader: TestClient) -> None:
    tree = page(reader, "/models?colour=red", 422)
    assert tree.id("msg-general").text == "colour: There is no such query parameter."


def test_a_swap_brings_the_list_and_what_follows_it(reader: TestClient) -> None:
    part = parse(partial(reader, "/models?family=Llama+4&sort=-params", **FROM_HEADING).text)
    assert ids(part) == ["llama-4-maverick", "llama-4-scout"]
    assert part.id("twin-head")["href"] == "/api/v1/models?family=Llama%204&sort=-params"
    assert part.id("f-sort").one("option", selected="")["value"] == "-params"
    assert not parse(partial(reader, "/models?family=Llama+4", **FROM_FORM).text).all(id="orders")


def test_every_name_of_a_query_has_a_field_with_label_and_message(reader: TestClient) -> None:
    form = page(reader, "/models").id("filters")
    labels = {label["for"] for label in form.all("label")}
    fields = [node for node in form if "name" in node.attributes]
    assert all(node["id"] in labels and f"msg-{node['name']}" in node["aria-describedby"] for node in fields)
    document = json_of(reader, "/api/v1/openapi.json")
    read = [p["name"] for p in document["paths"]["/api/v1/models"]["get"]["parameters"]]
    assert sorted(node["name"] for node in fields) == sorted(read)


def test_the_workbench_offers_every_model_with_its_size(reader: TestClient) -> None:
    options = {option["value"]: option.text for option in page(reader, "/").id("f-model").all("option")}
    assert set(RECORDS) < set(options)
    assert options["deepseek-v3"] == "DeepSeek-V3 · 671B, 37.6B active"
    assert options["llama-3.1-8b"].endswith(" · 8.03B")
    assert options["deepseek-v4-pro"].endswith(" · 1,573B, 49.8B active")
