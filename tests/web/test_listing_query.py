"""What the documentation says of the names by which a list is asked.

Queries that are not right: each refused at its name, none an exception.
"""

import re
from urllib.parse import parse_qsl

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.features.catalog.hardware_rows import hardware_columns
from app.features.catalog.model_rows import model_columns
from app.web.listing import query_names
from app.web.listing_query import MOST_CHARACTERS, list_parameters, read_listing, scenario_parameters
from tests.web.test_listing import COLUMNS, TOYS, asked


def said(additions: dict[str, list[dict[str, object]]]) -> dict[object, object]:
    return {parameter["name"]: parameter["description"] for parameter in additions["parameters"]}


def test_every_name_says_which_end_of_what_it_sets() -> None:
    words = said(list_parameters(hardware_columns(), "name or id"))
    assert words["q"] == "Words that name or id must all hold."
    assert words["min_memory"] == "Least memory, GB."
    assert words["max_year"] == "Most year."
    assert words["has_fp8"] == "Only this FP8 arithmetic."


def test_every_name_says_what_it_takes() -> None:
    parameters = list_parameters(hardware_columns(), "name or id", 50)["parameters"]
    schemas = {parameter["name"]: parameter["schema"] for parameter in parameters}
    assert schemas["has_fp8"] == {"type": "string", "enum": ["yes", "no"]}
    assert schemas["min_memory"] == {"type": "number", "minimum": 0, "maximum": 1e9}
    assert {"memory", "-memory"} <= set(schemas["sort"]["enum"])
    assert schemas["page"]["type"] == "integer"


def test_the_inputs_of_a_scenario_are_typed() -> None:
    parameters = {parameter["name"]: parameter for parameter in scenario_parameters()}
    assert len(parameters) == 91
    assert parameters["prompt"]["schema"] == {"type": "integer", "minimum": 1, "maximum": 10**8, "default": 1000}
    assert parameters["prompt"]["description"].startswith("Prompt length, tokens. ")
    assert parameters["hit"]["schema"] == {"type": "number", "minimum": 0, "maximum": 1, "default": 0.0}
    assert parameters["eager"]["schema"] == {"type": "boolean", "default": False}
    assert parameters["kv"]["schema"]["enum"] == ["bf16", "fp16", "fp8", "int8", "fp4", "int4", "fp32"]
    assert parameters["batch"]["allowEmptyValue"]
    assert [name for name, parameter in parameters.items() if parameter["required"]] == ["model", "hw"]


@pytest.mark.parametrize(
    ("text", "is_size"), [("46.8 GiB", True), ("5e10", True), (" 12 b", True), ("4 PB", False), ("GiB", False)]
)
def test_a_size_may_have_its_unit(text: str, is_size: bool) -> None:
    (schema,) = (one["schema"] for one in scenario_parameters() if one["name"] == "pool")
    assert bool(re.fullmatch(schema["anyOf"][1]["pattern"], text)) == is_size


def test_an_acronym_keeps_its_letters() -> None:
    for columns in (hardware_columns(), model_columns()):
        assert not any(
            word[:1].islower() and word[1:2].isupper()
            for text in said(list_parameters(columns, "id")).values()
            for word in str(text).split()
        )


def test_no_name_is_told_twice_and_none_is_required() -> None:
    parameters = list_parameters(model_columns(), "id")["parameters"]
    names = [parameter["name"] for parameter in parameters]
    assert len(names) == len(set(names)) > 10
    assert not any(parameter["required"] for parameter in parameters)


NAMES = query_names(COLUMNS)
TEXTS = st.one_of(
    st.text(max_size=120),
    st.sampled_from(["nan", "inf", "-inf", "1e999", "-1", "0x10", "1_0", "٣", "1,5", "--weight", "-", "Ark", "3"]),
    st.floats().map(str),
)


def refused(query: str) -> dict[str, str]:
    return {refusal.path: refusal.message for refusal in asked(query).refusals}


@pytest.mark.parametrize(
    ("query", "path", "words"),
    [
        ("min_weight=nan", "min_weight", "a finite one"),
        ("min_weight=inf", "min_weight", "a finite one"),
        ("min_weight=lots", "min_weight", "a number"),
        ("min_weight=1_0", "min_weight", "a number"),
        ("min_weight=%D9%A3", "min_weight", "a number"),
        ("min_weight=1,5", "min_weight", "a number"),
        ("min_weight=1e999", "min_weight", "from 0 to 100 kg"),
        ("max_weight=-1", "max_weight", "from 0 to 100 kg"),
        ("min_weight=3&max_weight=2", "max_weight", "nothing could be both"),
        ("maker=Cat", "maker", "Must be one of Ark, bee."),
        ("maker=Ark&maker=Ark", "maker", "more than once"),
        ("q=a&q=b", "q", "more than once"),
        ("sort=colour", "sort", "Must be one of name, maker, weight"),
        ("sort=note", "sort", "Must be one of"),
        ("sort=-", "sort", "Must be one of"),
        ("sort=--weight", "sort", "Must be one of"),
        ("sort=weight&sort=-weight", "sort", "more than once"),
        (f"q={'w' * (MOST_CHARACTERS + 1)}", "q", "At most 100 characters."),
        ("colour=red&colour=blue", "colour", "no such query parameter"),
        (f"{'x' * 200}=1", "x" * 60, "no such query parameter"),
        ("weight=3", "weight", "no such query parameter"),
        ("=3", "", "no such query parameter"),
    ],
)
def test_it_is_refused_at_its_name(query: str, path: str, words: str) -> None:
    found = refused(query)
    assert list(found) == [path]
    assert words in found[path]


def test_everything_wrong_is_told_at_once_and_nothing_is_asked() -> None:
    query = "colour=red&min_weight=lots&maker=Cat&sort=up&q=bear"
    assert set(refused(query)) == {"colour", "min_weight", "maker", "sort"}
    listing = asked(query)
    assert (listing.words, listing.tests, listing.sorted_by) == ((), (), None)


def test_a_message_never_repeats_what_was_typed() -> None:
    assert not [text for text in refused("maker=hostile&min_weight=hostile&sort=hostile").values() if "hostile" in text]


@given(st.lists(st.tuples(st.one_of(st.sampled_from(NAMES), st.text(max_size=80)), TEXTS), max_size=8))
def test_any_query_is_read_or_refused(items: list[tuple[str, str]]) -> None:
    listing = read_listing(items, COLUMNS)
    if not listing.refusals:
        rows = listing.of(TOYS)
        assert set(rows) <= set(TOYS)
        again = read_listing(listing.items, COLUMNS)
        assert again.items == listing.items
        assert again.of(TOYS) == rows
    for name, text in dict(reversed(items)).items():
        if name in NAMES:
            assert listing.value(name).casefold() == (text if listing.refusals else text.strip()).casefold()
    assert all(refusal.message for refusal in listing.refusals)


def test_blank_values_are_not_asked() -> None:
    assert asked("&".join(f"{name}=" for name in NAMES)).refusals == ()
    assert parse_qsl("q=", keep_blank_values=True) == [("q", "")]
