"""Saved links at the edge: expiry, texts, and the store's refusals as problems."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from pydantic import ValidationError

from app.settings import Settings
from app.store.errors import (
    CorruptStoreError,
    ExpiredError,
    ForeignStoreError,
    NotFoundError,
    StoreBusyError,
    StoreUnavailableError,
    UnstorableError,
    WrongEditTokenError,
)
from app.web.links import LinkTexts, expiry, store_problems
from app.web.problem import ProblemError

THEN = datetime(2026, 11, 29, 23, 59, tzinfo=UTC)


@pytest.mark.parametrize(
    ("error", "status", "words"),
    [
        (NotFoundError(), 404, "no saved configuration at this address"),
        (ExpiredError(THEN), 410, "expired on 2026-11-29"),
        (WrongEditTokenError(), 403, "not that of the link"),
        (UnstorableError("title is too long."), 422, "title is too long."),
        (StoreBusyError("locked"), 503, "nothing was changed"),
        (StoreUnavailableError("/secret/path is gone"), 503, "needs its operator"),
        (CorruptStoreError("/secret/path is damaged"), 503, "needs its operator"),
        (ForeignStoreError(Path("/secret/path"), "it is theirs"), 503, "needs its operator"),
    ],
)
def test_each_refusal_of_the_store_has_its_status(error: Exception, status: int, words: str) -> None:
    with pytest.raises(ProblemError) as found, store_problems():
        raise error
    assert found.value.status == status
    assert words in found.value.detail
    assert "/secret" not in found.value.detail


def test_a_busy_store_says_when_to_come_back() -> None:
    with pytest.raises(ProblemError) as found, store_problems():
        raise StoreBusyError("locked", retry_after_s=7)
    assert found.value.headers == {"Retry-After": "7"}


def test_other_errors_pass_as_they_are() -> None:
    with pytest.raises(ZeroDivisionError), store_problems():
        raise ZeroDivisionError
    with pytest.raises(ProblemError) as found, store_problems():
        raise ProblemError(503, "Saved links are not available.")
    assert found.value.status == 503


@pytest.mark.parametrize(("days", "expected"), [(None, 90), (1, 1), (3650, 3650)])
def test_expiry_is_counted_from_now(days: int | None, expected: int) -> None:
    found = expiry(days, Settings(link_expiry_days=90))
    assert found is not None
    assert abs(found - datetime.now(UTC) - timedelta(days=expected)) < timedelta(seconds=5)


def test_no_expiry_only_where_it_is_allowed() -> None:
    assert expiry(0, Settings(allow_unexpiring_links=True)) is None
    with pytest.raises(ProblemError) as found:
        expiry(0, Settings())
    assert found.value.status == 422
    assert [refusal.path for refusal in found.value.errors] == ["expires_in_days"]


@pytest.mark.parametrize(
    ("title", "cleaned"),
    [
        (" a ", "a"),
        ("a\tb\nc", "abc"),
        ("a\u202eb\u2066c\ufeff", "abc"),
        ("e\u0301", "é"),
        ("👩\u200d💻", "👩\u200d💻"),
        ("می\u200cخواهم", "می\u200cخواهم"),
        ("t" * 120, "t" * 120),
    ],
)
def test_titles_are_cleaned(title: str, cleaned: str) -> None:
    assert LinkTexts(title=title).title == cleaned


@pytest.mark.parametrize("title", ["", " ", "\n", "\u200b", "\u200d\u200c", "\u202e", "t" * 121])
def test_titles_without_anything_to_see_are_refused(title: str) -> None:
    with pytest.raises(ValidationError):
        LinkTexts(title=title)


def test_notes_keep_their_lines() -> None:
    assert LinkTexts(title="t", notes="one\r\n\r\ntwo\x00\u202e").notes == "one\n\ntwo"
    assert LinkTexts(title="t", notes="\u200b").notes == ""
    with pytest.raises(ValidationError):
        LinkTexts(title="t", notes="n" * 4_001)
