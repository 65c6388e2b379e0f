"""A saved configuration as it was and as it is."""

import json
from dataclasses import fields, replace
from datetime import UTC, datetime
from typing import Any

import pytest

from app.document import document, headline
from app.saved_view import Difference, contents_of, view
from app.store.links import Contents, Saved
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
