"""Queries that are not right: each refused at its name, none an exception."""

from urllib.parse import parse_qsl

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.web.listing import query_names
from app.web.listing_query import MOST_CHARACTERS, read_listing
from tests.web.test_listing import COLUMNS, TOYS, asked

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
