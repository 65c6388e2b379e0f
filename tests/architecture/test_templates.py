"""The templates keep to what the content security policy allows, and escape whatever they print."""

import re
from pathlib import Path

import pytest

from app.settings import ROOT

FOLDER = ROOT / "templates"
TEMPLATES = sorted(FOLDER.rglob("*.html"))
MOST_LINES = 149
FORBIDDEN = {
    "style attribute": r"<[^>{}]*\sstyle\s*=",
    "style element": r"<style\b",
    "event handler": r"<[^>]*\son[a-z]+\s*=",
    "javascript: address": r"javascript:",
    "hx-on": r"\b(data-)?hx-on\b",
    "js: value": r"""=\s*["']\s*js:""",
    "bracketed trigger filter": r"""hx-trigger\s*=\s*["'][^"']*\[""",
    "foreign address": r"""(src|href|action|formaction)\s*=\s*["'](https?:)?//""",
    "target": r"""target\s*=\s*["']_blank""",
    "autoescape off": r"autoescape\s+false",
}
SAFE = re.compile(r"\{\{[^}]*\|\s*safe\b[^}]*\}\}")


def text_of(template: Path) -> str:
    return template.read_text(encoding="utf-8")


def label(template: Path) -> str:
    return str(template.relative_to(FOLDER))


def broken_rules(text: str) -> list[str]:
    return [rule for rule, pattern in FORBIDDEN.items() if re.search(pattern, text, re.IGNORECASE)]


def inline_scripts(text: str) -> list[str]:
    """Bodies of script elements, but for data."""
    found = re.findall(r"<script\b([^>]*)>(.*?)</script>", text, re.IGNORECASE | re.DOTALL)
    return [body for attributes, body in found if body.strip() and 'type="application/json"' not in attributes]


@pytest.mark.parametrize("template", TEMPLATES, ids=label)
def test_a_template_needs_nothing_that_the_policy_forbids(template: Path) -> None:
    text = text_of(template)
    assert broken_rules(text) == []
    assert inline_scripts(text) == []


@pytest.mark.parametrize("template", TEMPLATES, ids=label)
def test_only_escaped_json_is_marked_safe(template: Path) -> None:
    for mark in SAFE.findall(text_of(template)):
        assert re.search(r"\|\s*json_data\s*\|\s*safe\s*\}\}$", mark), mark
    assert "Markup(" not in text_of(template)


@pytest.mark.parametrize("template", TEMPLATES, ids=label)
def test_a_template_can_be_read_in_one_go(template: Path) -> None:
    assert len(text_of(template).splitlines()) <= MOST_LINES


@pytest.mark.parametrize("template", TEMPLATES, ids=label)
def test_every_attribute_is_quoted(template: Path) -> None:
    """Autoescaping makes a value safe between quotation marks, not outside them."""
    assert not re.search(r"<[a-z][^<>]*=\s*\{\{", text_of(template))


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ('<p style="color: red">', "style attribute"),
        ("<style>p {}</style>", "style element"),
        ('<button onclick="x()">', "event handler"),
        ('<a href="javascript:x()">', "javascript: address"),
        ('<div hx-on:click="x()">', "hx-on"),
        ("""<div hx-vals='js:{a: b}'>""", "js: value"),
        ("""<input hx-trigger="keyup[key=='Enter']">""", "bracketed trigger filter"),
        ('<script src="https://cdn.example/x.js"></script>', "foreign address"),
    ],
)
def test_the_rules_find_what_they_are_for(text: str, rule: str) -> None:
    assert rule in broken_rules(text)


def test_inline_scripts_are_found_and_data_is_not() -> None:
    assert inline_scripts("<script>x()</script>") == ["x()"]
    assert inline_scripts('<script type="application/json">{}</script><script src="a.js"></script>') == []
