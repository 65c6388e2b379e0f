"""What may be pasted to name a plan, and what may not."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.compare.typed import MOST_CHARACTERS, Typed, read_typed
from app.refusal import ScenarioError
from tests.compared_plans import BASE

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
