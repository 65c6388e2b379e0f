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


def test_the_templates_keep_the_rules() -> None:
    """Unquoted attributes are refused too: autoescaping makes a value safe between quotation marks, not outside."""
    found = {label(template): faults for template in TEMPLATES if (faults := faults_of(text_of(template)))}
    assert TEMPLATES
    assert found == {}


def faults_of(text: str) -> list[str]:
    """What a template must not hold: what the policy forbids, unescaped text, an unquoted value, too many lines."""
    faults = broken_rules(text) + inline_scripts(text)
    faults += [mark for mark in SAFE.findall(text) if not re.search(r"\|\s*json_data\s*\|\s*safe\s*\}\}$", mark)]
    faults += ["Markup("] if "Markup(" in text else []
    faults += re.findall(r"<[a-z][^<>]*=\s*\{\{", text)
    lines = len(text.splitlines())
    return faults + ([f"{lines} lines"] if lines > MOST_LINES else [])


def test_a_fault_of_each_kind_is_found() -> None:
    for text in ("{{ x | safe }}", "Markup(x)", "<a class={{ x }}>", "\n" * 150, "<script>x()</script>"):
        assert len(faults_of(text)) == 1
    assert faults_of('<a class="{{ x }}">{{ x | json_data | safe }}</a>') == []


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
