"""A comparison as its address asks for it: every refusal at its place, nothing merged, nothing lost.

What may be pasted to name a plan, and what may not.
"""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.features.compare.plans import MOST_CHARACTERS, Typed, read_comparison, read_typed
from app.features.links.links import contents_of
from app.scenario.refusal import ScenarioError
from app.scenario.scenario import Scenario
from app.store.links import Saved, new_token
from tests.compared_plans import BASE, FP8, H200, compared
from tests.factories import answer_to, shipped_catalog


def test_what_is_left_empty_is_no_plan_and_keeps_the_others_in_their_places() -> None:
    found = compared(BASE, "", H200, base="3")
    assert [plan.letter for plan in found.plans] == ["A", "C"]
    assert found.baseline.letter == "C"
    assert found.refusals == ()


def test_the_same_scenario_twice_is_two_plans_with_two_names() -> None:
    found = compared(BASE, BASE, f"{BASE}&tp=1")
    assert len(found.plans) == 3
    assert [plan.name for plan in found.plans] == ["Plan A", "Plan B", "Plan C"]


def test_refusals_stand_at_the_place_of_their_plan_and_the_rest_is_read() -> None:
    found = compared("hello", BASE, "model=llama-3.1-8b&hw=h10&prompt=many", "/c/nothing")
    assert [refusal.path for refusal in found.refusals] == [
        "s.0",
        "s.2.workload.prompt_tokens",
        "s.2.hardware.id",
        "s.3",
    ]
    assert [plan.letter for plan in found.plans] == ["B"]
    assert found.refusals[-1].message == "There is no nothing."


def test_a_fifth_plan_is_refused_by_name_and_four_are_read() -> None:
    found = compared(BASE, FP8, H200, BASE, H200)
    assert len(found.plans) == 4
    assert [(refusal.path, "5 plans" in refusal.message) for refusal in found.refusals] == [("s.4", True)]
    assert compared(BASE, FP8, H200, BASE, " ").refusals == ()


@pytest.mark.parametrize("base", ["0", "5", "-1", "two", "1.0", "NaN", "1e9", "٢", "9" * 5000])
def test_a_baseline_is_a_place(base: str) -> None:
    found = compared(BASE, H200, base=base)
    assert [refusal.path for refusal in found.refusals] == ["base"]
    assert found.base == 0


def test_a_baseline_that_is_not_there_is_refused_and_one_that_is_not_read_is_not_told_twice() -> None:
    assert [refusal.path for refusal in compared(BASE, H200, base="3").refusals] == ["base"]
    assert [refusal.path for refusal in compared(BASE, "hello", base="2").refusals] == ["s.1"]


def test_equal_is_hide_or_show_and_other_names_are_told() -> None:
    assert compared(BASE, equal="hide").hides_equal
    assert not compared(BASE, equal="show").hides_equal
    assert [refusal.path for refusal in compared(BASE, equal="maybe").refusals] == ["equal"]
    found = compared(f"{BASE}&colour=red&units=gib&undo=x", colour="blue")
    assert (found.unknown, found.plans[0].ignored) == (("colour",), ("colour",))


def test_a_plan_is_written_out_in_full_and_reads_back() -> None:
    plan = compared(f"{BASE}&units=gib").plans[0]
    again = compared(plan.text).plans[0]
    assert again.text == plan.text
    assert again.answer.scenario == plan.answer.scenario
    assert "max_batched=8192" in plan.text


def test_a_saved_link_keeps_its_title_and_its_address() -> None:
    slug, contents = new_token(), contents_of(answer_to(), "Plan of record", "", None)
    saved = _saved(
        contents.title, contents.document["scenario"], {**contents.document["headline"], "decode.ceiling_s": 1.0}
    )
    asked = [("s", BASE), ("s", f"https://any.example/c/{slug}")]
    found = read_comparison(asked, shipped_catalog(), {slug: saved}.__getitem__)
    own, linked = found.plans
    assert (linked.title, linked.name, linked.text) == ("Plan of record", "Plan of record", f"/c/{slug}")
    assert linked.changed == 1
    assert linked.answer.scenario == own.answer.scenario


def test_a_saved_link_that_can_no_longer_be_answered_is_refused_at_its_place() -> None:
    document = Scenario.model_validate({"model": {"id": "gone"}, "hardware": {"id": "h100-sxm-80gb"}}).document()
    found = read_comparison([("s", new_token())], shipped_catalog(), lambda slug: _saved("Old", document, {}))
    assert [(refusal.path, "no longer" in refusal.message) for refusal in found.refusals] == [("s.0", True)]


def _saved(title: str, scenario: Mapping[str, Any], headline: Mapping[str, Any]) -> Saved:
    moment = datetime(2026, 1, 1, tzinfo=UTC)
    return Saved(
        title=title,
        document={"scenario": scenario, "notes": "", "headline": headline},
        formula_version="1",
        catalog_version="1",
        created_at=moment,
        updated_at=moment,
        expires_at=None,
    )


SLUG = "0123456789abcdefghjkmnpqrs"
ITEMS = (("model", "llama-3.1-8b"), ("hw", "h100-sxm-80gb"))


@pytest.mark.parametrize(
    "text",
    [
        BASE,
        f"?{BASE}",
        f"/?{BASE}",
        f"  /?{BASE}\n",
        f"https://any.example/?{BASE}",
        f"http://127.0.0.1:8000/launch?{BASE}",
        f"any.example/below/?{BASE}#results",
    ],
)
def test_a_scenario_is_read_from_its_query_or_its_address(text: str) -> None:
    assert read_typed(text) == Typed(items=ITEMS)


@pytest.mark.parametrize(
    "text",
    [
        SLUG,
        f"/c/{SLUG}",
        f"/c/{SLUG}/",
        f"https://any.example/c/{SLUG}",
        f"any.example/c/{SLUG}?units=gib",
        f"http://[::1]:8000/below/c/{SLUG}#drift",
        f"/api/v1/configurations/{SLUG}",
    ],
)
def test_a_saved_link_is_read_from_its_slug_or_its_address(text: str) -> None:
    assert read_typed(text) == Typed(slug=SLUG)


def test_a_question_mark_or_a_slash_inside_a_value_is_no_address() -> None:
    typed = read_typed(f"{BASE}&hw_name=what?/c/this")
    assert typed.items == (*ITEMS, ("hw_name", "what?/c/this"))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("hello", "this text is neither"),
        ("https://any.example/", "this text is neither"),
        ("javascript:alert(1)", "this text is neither"),
        ("colour=red", "this text is neither"),
        (f"/compare?s={BASE}", "address of a comparison"),
        ("x" * (MOST_CHARACTERS + 1), "too long"),
        ("&".join(["model=x"] * 300), "more than 200"),
    ],
)
def test_what_is_neither_is_refused_in_words(text: str, words: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        read_typed(text)
    assert [words in refusal.message for refusal in caught.value.refusals] == [True]


@settings(max_examples=40)
@given(st.text(max_size=80))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        typed = read_typed(text)
    except ScenarioError:
        return
    assert (typed.slug is None) is bool(typed.items)
