"""A saved configuration as it was and as it is.

Saved links at the edge: expiry, texts, and the store's refusals as problems.
"""

import json
from dataclasses import fields, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from app.features.links.links import Difference, LinkTexts, contents_of, expiry, store_problems, view
from app.scenario.document import document, headline
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
from app.store.links import Contents, Saved
from app.web.problem import ProblemError
from tests.factories import answer_to, shipped_catalog

NOW = datetime(2026, 11, 29, tzinfo=UTC)


def saved(**changes: Any) -> Saved:
    """The reference case as it comes out of the store, and `changes`."""
    contents = contents_of(answer_to(), "Title", "Notes", NOW)
    values = {field.name: getattr(contents, field.name) for field in fields(Contents)}
    values["document"] = json.loads(json.dumps(values["document"])) | changes
    return Saved(**values, created_at=NOW, updated_at=NOW)


def test_contents_are_the_scenario_written_out_and_every_explained_number() -> None:
    answered = answer_to(workload={"concurrency": 3})
    contents = contents_of(answered, "Title", "Notes", NOW)
    assert contents.document["scenario"] == answered.scenario.document()
    assert contents.document["headline"] == headline(document(answered))
    assert len(contents.document["headline"]) == len(answered.evaluation.explanations)
    assert (contents.title, contents.document["notes"], contents.expires_at) == ("Title", "Notes", NOW)
    assert contents.formula_version == answered.formula_version
    assert contents.catalog_version == shipped_catalog().version


def test_nothing_has_changed_on_the_same_day() -> None:
    seen = view(saved(), shipped_catalog())
    assert seen.is_as_saved
    assert seen.differences == ()
    assert seen.obstacle is None
    assert seen.answer is not None
    assert seen.answer.scenario == answer_to().scenario


def test_a_number_that_differs_is_told_with_its_label_and_unit() -> None:
    then = dict(saved().document["headline"])
    id_ = "rule_of_thumb.decode_step_s"
    now = then[id_]
    then[id_] = now * (1 + 1e-8)
    seen = view(saved(headline=then), shipped_catalog())
    assert not seen.is_as_saved
    (difference,) = seen.differences
    assert difference == Difference(id_, difference.label, "s", then[id_], now)
    assert difference.label not in ("", id_)


def test_a_rounding_of_the_last_digits_is_no_difference() -> None:
    then = {id_: value * (1 + 1e-13) for id_, value in saved().document["headline"].items()}
    assert view(saved(headline=then), shipped_catalog()).is_as_saved


def test_a_number_of_old_that_is_explained_no_more_has_no_now() -> None:
    then = dict(saved().document["headline"]) | {"of.old": 3.0}
    (difference,) = view(saved(headline=then), shipped_catalog()).differences
    assert difference == Difference("of.old", "of.old", "", 3.0, None)


def test_a_number_of_today_that_was_not_saved_is_no_difference() -> None:
    then = dict(saved().document["headline"])
    then.pop("rule_of_thumb.decode_step_s")
    assert view(saved(headline=then), shipped_catalog()).is_as_saved


def test_zero_then_and_something_now_is_a_difference() -> None:
    then = dict(saved().document["headline"]) | {"rule_of_thumb.decode_step_s": 0.0}
    assert len(view(saved(headline=then), shipped_catalog()).differences) == 1


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"model": {"id": "forgotten"}}, "no model 'forgotten'"),
        ({"hardware": {"id": "forgotten"}}, "no accelerator 'forgotten'"),
        ({"schema_version": 2}, "no longer read"),
        ({"model": 1}, "no longer read"),
    ],
)
def test_what_cannot_be_answered_any_more_says_why(change: dict[str, Any], words: str) -> None:
    scenario = dict(saved().document["scenario"]) | change
    seen = view(saved(scenario=scenario), shipped_catalog())
    assert seen.answer is None
    assert words in str(seen.obstacle)
    assert not seen.is_as_saved
    assert [difference.now for difference in seen.differences] == [None] * len(saved().document["headline"])


def test_another_catalog_changes_the_numbers() -> None:
    catalog = shipped_catalog()
    device = catalog.devices["h100-sxm-80gb"]
    devices = dict(catalog.devices) | {"h100-sxm-80gb": replace(device, bandwidth_bytes_per_s=6.7e12)}
    faster = replace(catalog, devices=devices)
    changed = {difference.id for difference in view(saved(), faster).differences}
    assert "rule_of_thumb.decode_step_s" in changed
    assert "memory.kv_bytes_per_sequence" not in changed


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
