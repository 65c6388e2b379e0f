"""What the lesson says without computing it: words with one definition each, published figures with their sources."""

import re

import pytest

from app.features.learn.lesson import lesson
from app.features.learn.published import load_glossary, load_published
from app.settings import ROOT
from app.web.query import answer_from
from tests.factories import shipped_catalog
from tests.features.learn.cases import told

TEMPLATES = sorted(
    [
        ROOT / "templates" / "macros" / "doorway.html",
        *(ROOT / "templates" / "learn").glob("*.html"),
        *(ROOT / "templates").glob("**/*learn*.html"),
    ]
)
WORDS = {
    "prefill", "decode", "ttft", "tpot", "throughput", "goodput", "intensity", "ridge", "wall", "kv", "batch", "mbu",
    "mfu",
    "roofline", "token", "weights", "tp", "pp", "ep", "moe", "gqa", "quantization", "speculation", "paging", "prefix",
    "chunked", "disaggregation",
}  # fmt: skip


def visible(template: str) -> str:
    """What a template prints of itself: no comments, expressions, statements or tags."""
    for pattern in (r"\{#.*?#\}", r"\{\{.*?\}\}", r"\{%.*?%\}", r"<[^<>]*>"):
        template = re.sub(pattern, " ", template, flags=re.DOTALL)
    return template


@pytest.mark.parametrize("template", TEMPLATES, ids=lambda path: path.name)
def test_no_number_is_written_into_the_prose(template: object) -> None:
    """A digit in a template would be true for one model and one card at most."""
    text = template.read_text(encoding="utf-8")  # type: ignore[attr-defined]
    assert re.findall(r".{0,20}\d.{0,20}", visible(text)) == []
    inside = re.findall(r'"([^"]*)"', " ".join(re.findall(r"\{%.*?%\}|\{\{.*?\}\}", text, flags=re.DOTALL)))
    sentences = [string for string in inside if len(string.split()) > 3]
    assert [string for string in sentences if re.search(r"\d", string)] == []


def test_the_scan_finds_what_it_is_for() -> None:
    assert "208" in visible("<p>It is {{ n(x) }} or 208 tokens/s.</p>")
    assert not re.search(r"\d", visible('<h3 class="h3">{% if x > 3 %}{{ n(y[2]) }}{% endif %}</h3>{# 1 #}'))


def test_every_word_of_the_field_is_defined_once_and_leads_to_a_chapter() -> None:
    words = load_glossary()
    assert set(words) >= WORDS
    chapters = {chapter.id for chapter in told("usual").chapters}
    assert list(words) == [word.id for word in sorted(words.values(), key=lambda word: word.word.casefold())]
    for word in words.values():
        assert word.chapter in chapters
        assert word.meaning.endswith(".")
        assert not re.search(r"\d", word.meaning), word.id


def test_every_published_figure_has_a_source_and_is_of_use() -> None:
    used = " ".join(path.read_text(encoding="utf-8") for path in TEMPLATES)
    used += " ".join(path.read_text(encoding="utf-8") for path in (ROOT / "app" / "features" / "learn").glob("*.py"))
    for fact in load_published().facts.values():
        assert fact.source
        assert fact.url == "" or fact.url.startswith("https://")
        assert fact.id in used or fact.id.removeprefix("targets.") in used, fact.id


def test_the_targets_of_a_scenario_take_the_place_of_the_examples() -> None:
    catalog = shipped_catalog()
    query = {"model": "llama-3.1-8b", "hw": "h100-sxm-80gb", "ttft": "1.5", "tpot": "0.04"}
    numbers = lesson(answer_from(query.items(), catalog), 4096, catalog)["request"].numbers
    assert (numbers["first"].value, numbers["each"].value) == (1.5, 0.04)
    assert numbers["promised"].value == pytest.approx(1.5 + 0.04 * 500)
