from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.store.errors import UnstorableError
from app.store.records import Contents
from app.store.tables import NOTES_MAX_CHARS, SCENARIO_MAX_CHARS, TITLE_MAX_CHARS

Make = Callable[..., Contents]


def test_json_is_stored_in_one_spelling(contents: Make, now: datetime) -> None:
    one, other = contents(scenario={"b": 1, "a": "ü"}), contents(scenario={"a": "ü", "b": 1})
    assert one.columns(now)["scenario"] == other.columns(now)["scenario"] == '{"a":"ü","b":1}'


def test_longest_values_are_stored(contents: Make, now: datetime) -> None:
    columns = contents(title="×" * TITLE_MAX_CHARS, notes="n" * NOTES_MAX_CHARS).columns(now)
    assert len(columns["title"]) == TITLE_MAX_CHARS


@pytest.mark.parametrize(
    "changes",
    [
        {"title": "t" * (TITLE_MAX_CHARS + 1)},
        {"notes": "n" * (NOTES_MAX_CHARS + 1)},
        {"scenario": {"x": "s" * SCENARIO_MAX_CHARS}},
        {"formula_version": "1" * 65},
        {"title": "before\0behind"},
        {"notes": "half \ud83d"},
        {"scenario": {"x": "half \ud83d"}},
        {"scenario": {"x": float("nan")}},
        {"headline": {"x": float("inf")}},
        {"headline": {"x": object()}},
        {"expires_at": datetime(2099, 1, 1)},  # no zone
        {"expires_at": datetime.fromisoformat("2026-11-29T12:00:00Z")},  # this very moment
    ],
)
def test_value_that_breaks_a_rule_is_refused_before_the_database(
    contents: Make, now: datetime, changes: dict[str, Any]
) -> None:
    with pytest.raises(UnstorableError):
        contents(**changes).columns(now)


@given(st.text(max_size=200), st.integers(min_value=-5, max_value=5))
def test_text_is_stored_whole_or_not_at_all(text: str, hours: int) -> None:
    now = datetime.fromisoformat("2026-11-29T12:00:00Z")
    value = Contents(
        scenario={text: text},
        title=text,
        notes=text,
        headline={},
        formula_version="1",
        catalog_version="1",
        expires_at=now + timedelta(hours=hours),
    )
    try:
        columns = value.columns(now)
    except UnstorableError:
        assert hours <= 0 or len(text) > TITLE_MAX_CHARS or "\0" in text
    else:
        assert columns["title"] == text
