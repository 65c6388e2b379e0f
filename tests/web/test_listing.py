"""A list of toys: what its columns can be asked, in which order its rows come, and the addresses that say so."""

from dataclasses import dataclass
from urllib.parse import parse_qsl

import pytest

from app.web.listing import Bound, Column, Kind, Listing, query_names
from app.web.listing_query import read_listing
from app.web.urls import query_string


@dataclass(frozen=True)
class Toy:
    name: str
    maker: str
    weight: float | None = None
    note: str = ""


COLUMNS: tuple[Column[Toy], ...] = (
    Column("name", "Name", Kind.TEXT, lambda toy: toy.name, searched=True),
    Column("note", "Note", Kind.TEXT, lambda toy: toy.note or None, searched=True, sortable=False),
    Column("maker", "Maker", Kind.CHOICE, lambda toy: toy.maker, choices=(("Ark", "Ark Ltd"), ("bee", "Bee"))),
    Column("weight", "Weight", Kind.NUMBER, lambda toy: toy.weight, "kg", bounds=(Bound.MIN, Bound.MAX), most=100),
)
TOYS = (
    Toy("Zebra GX300B", "Ark", 3.0),
    Toy("ant-2", "bee", None, "small RTX-40"),
    Toy("Bear", "Ark", 1.5),
    Toy("cat", "bee", 3.0),
    Toy("Dog", "Ark", None),
)


def asked(query: str) -> Listing[Toy]:
    return read_listing(parse_qsl(query, keep_blank_values=True), COLUMNS)


def names(query: str) -> list[str]:
    listing = asked(query)
    assert listing.refusals == ()
    return [toy.name.split()[0] for toy in listing.of(TOYS)]


def test_the_names_follow_from_the_columns() -> None:
    assert query_names(COLUMNS) == ("q", "maker", "min_weight", "max_weight", "sort")


def test_nothing_asked_is_every_row_as_it_came() -> None:
    assert names("") == names("q=&maker=&min_weight=&sort=") == ["Zebra", "ant-2", "Bear", "cat", "Dog"]
    assert asked("q=+&maker=").items == []


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("maker=Ark", ["Zebra", "Bear", "Dog"]),
        ("maker=BEE", ["ant-2", "cat"]),
        ("min_weight=1.5", ["Zebra", "Bear", "cat"]),
        ("min_weight=2", ["Zebra", "cat"]),
        ("max_weight=2", ["Bear"]),
        ("min_weight=1.5&max_weight=1.5", ["Bear"]),
        ("min_weight=3e0&maker=bee", ["cat"]),
        ("min_weight=0", ["Zebra", "Bear", "cat"]),
        ("min_weight=100", []),
    ],
)
def test_filters(query: str, found: list[str]) -> None:
    assert names(query) == found


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("BEA", ["Bear"]),
        ("gx300", ["Zebra"]),
        ("300b", ["Zebra"]),  # digits may begin inside a word
        ("00b", []),  # but not inside digits
        ("x300", []),  # nor letters inside letters
        ("rtx-40", ["ant-2"]),
        ("40 small", ["ant-2"]),
        ("small bear", []),
        ("ark", []),  # the maker is not searched here
        (".*", []),
        ("(", []),
    ],
)
def test_each_word_begins_a_word_of_the_row(words: str, found: list[str]) -> None:
    assert names(query_string([("q", words)])) == found


@pytest.mark.parametrize(
    ("order", "found"),
    [
        ("weight", ["Bear", "Zebra", "cat", "ant-2", "Dog"]),
        ("-weight", ["Zebra", "cat", "Bear", "ant-2", "Dog"]),  # ties as they come, unknowns last both ways
        ("name", ["ant-2", "Bear", "cat", "Dog", "Zebra"]),
        ("-name", ["Zebra", "Dog", "cat", "Bear", "ant-2"]),
        ("maker", ["Zebra", "Bear", "Dog", "ant-2", "cat"]),
    ],
)
def test_orders(order: str, found: list[str]) -> None:
    assert names(f"sort={order}") == found


def test_the_spelling_of_a_query_is_one() -> None:
    listing = asked("sort=-weight&max_weight=+2+&maker=ARK&q=++bear+")
    assert listing.items == [("q", "bear"), ("maker", "Ark"), ("max_weight", "2"), ("sort", "-weight")]
    again = read_listing(listing.items, COLUMNS)
    assert again.items == listing.items
    assert again.of(TOYS) == listing.of(TOYS)
    assert listing.filters == listing.items[:-1]


def test_a_heading_asks_for_its_order_and_then_for_the_other() -> None:
    name, _, _, weight = COLUMNS
    assert asked("maker=Ark").items_sorted(weight) == [("maker", "Ark"), ("sort", "-weight")]
    assert asked("sort=-weight").items_sorted(weight) == [("sort", "weight")]
    assert asked("sort=weight").items_sorted(weight) == [("sort", "-weight")]
    assert asked("sort=-weight").items_sorted(name) == [("sort", "name")]


def test_orders_in_words_are_those_that_can_be_asked() -> None:
    values = [value for value, _ in asked("").orders]
    assert values == ["name", "-name", "maker", "-maker", "-weight", "weight"]
    assert dict(asked("").orders)["-weight"] == "Weight, most first"
    assert all(not asked(f"sort={value}").refusals for value in values)


def test_a_field_keeps_what_was_typed_and_says_what_is_wrong() -> None:
    listing = asked("q=bear&min_weight=+lots&colour=red")
    assert listing.value("q") == "bear"
    assert listing.value("min_weight") == " lots"
    assert listing.value("maker") == ""
    assert "number" in listing.error("min_weight")
    assert listing.error("q") == ""
    assert listing.general == ("colour: There is no such query parameter.",)
    assert listing.holds(["max_weight", "min_weight"])
    assert not listing.holds(["maker", "max_weight"])


def test_every_field_has_a_label() -> None:
    assert [asked("").label(name) for name in query_names(COLUMNS)] == [
        "Search",
        "Maker",
        "Weight, least",
        "Weight, most",
        "Order",
    ]


SHOWN: Column[Toy] = Column(
    "as", "Shown", Kind.VIEW, lambda _: None, choices=(("list", "a list"), ("grid", "a grid")), sortable=False
)


def viewed(query: str) -> Listing[Toy]:
    return read_listing(parse_qsl(query, keep_blank_values=True), (*COLUMNS, SHOWN), rows_a_page=2)


def test_a_view_narrows_nothing_and_its_first_choice_is_not_written_out() -> None:
    assert viewed("as=grid").of(TOYS) == list(TOYS)
    assert (viewed("").view("as"), viewed("as=list").view("as"), viewed("as=GRID").view("as")) == (
        "list",
        "list",
        "grid",
    )
    assert viewed("as=list").items == []
    assert viewed("as=grid&maker=bee").items == [("maker", "bee"), ("as", "grid")]
    assert viewed("as=grid&maker=bee&sort=name").filters == [("maker", "bee")]
    assert "as" not in [value.lstrip("-") for value, _ in viewed("").orders]
    assert [refusal.path for refusal in viewed("as=pile").refusals] == ["as"]


def test_a_long_list_is_told_page_by_page() -> None:
    names_of = {n: [toy.name for toy in viewed(f"page={n}").on_page(TOYS)] for n in (1, 2, 3, 4)}
    assert names_of == {1: ["Zebra GX300B", "ant-2"], 2: ["Bear", "cat"], 3: ["Dog"], 4: []}
    assert (viewed("").pages(TOYS), viewed("").pages(TOYS[:2]), viewed("").pages([])) == (3, 1, 1)
    assert viewed("page=1").items == []
    assert viewed("page=02").refusals[0].path == "page"
    assert viewed("maker=bee&page=2").items == [("maker", "bee"), ("page", "2")]
    assert viewed("maker=bee&page=2").items_on(3) == [("maker", "bee"), ("page", "3")]
    assert viewed("maker=bee&page=2").items_with("as", "grid") == [("maker", "bee"), ("as", "grid")]
    assert viewed("page=2").items_sorted(COLUMNS[0]) == [("sort", "name")]
    assert asked("page=2").refusals[0].path == "page"  # a list that is not told by pages has none
    assert asked("").on_page(TOYS) == TOYS
