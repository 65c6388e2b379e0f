"""A name that a person typed stays a name: Plotly must read no tag, template or formula in it."""

import html
from typing import Any

import pytest

from app.features.workbench.charts.gallery import CHARTS
from app.scenario.answer import Answer, answer
from app.scenario.scenario import Scenario
from app.web.figure import MOST_CHARACTERS, plain
from tests.factories import custom_card, shipped_catalog
from tests.features.workbench.charts.cases import TINY_CONFIG, leaves

HOSTILE = (
    "<b>bold</b>",
    '<a href="javascript:alert(1)">click</a>',
    "$x^2$",
    "%{x}",
    "@decode",
    "&lt;b&gt;",
    "عربي אבג 𝓊 👩‍💻",
    "<br>",
    "' onload='x",
    "W" * 120,
)


def named(text: str) -> Answer:
    """An own model on an own card, both called `text`."""
    document: dict[str, Any] = {
        "model": {"name": text, "config": dict(TINY_CONFIG)},
        "hardware": {"custom": {**custom_card(), "name": text}},
    }
    return answer(Scenario.model_validate(document), shipped_catalog())


@pytest.mark.parametrize("text", HOSTILE)
@pytest.mark.parametrize("id_", CHARTS)
def test_a_name_is_a_literal_wherever_a_figure_holds_it(text: str, id_: str) -> None:
    plainly, hostile = (CHARTS[id_](named(name).evaluation, False).figure for name in ("Plain", text))
    for before, after in zip(leaves(plainly), leaves(hostile), strict=True):
        if before == after:
            continue
        assert before == "Plain"
        assert not set("<>$%@\"'") & set(after)
        shown = html.unescape(after)
        assert shown == text or (shown[-1] == "…" and text.startswith(shown[:-1]))


def test_the_roofline_names_the_card() -> None:
    figure = CHARTS["roofline"](named("<b>bold</b>").evaluation, False).figure
    assert "&lt;b&gt;bold&lt;/b&gt;" in [note["text"] for note in figure["layout"]["annotations"]]


@pytest.mark.parametrize("text", [*HOSTILE, "x" * 500, "\u202ereversed", "a\nb"])
def test_plain_text_reads_back_as_it_was(text: str) -> None:
    shown = html.unescape(plain(text))
    assert shown == (text if len(text) <= MOST_CHARACTERS else f"{text[: MOST_CHARACTERS - 1]}…")
    assert len(shown) <= MOST_CHARACTERS


def test_direction_marks_never_reach_a_name() -> None:
    assert named("\u202eevil\u2066").evaluation.deployment.accelerator.name == "evil"
