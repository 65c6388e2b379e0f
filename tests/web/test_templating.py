"""Templates: escaped, strict, and data that cannot end the element it stands in."""

import json
from pathlib import Path

import pytest
from jinja2 import UndefinedError
from starlette.requests import Request

from app.settings import ROOT
from app.web.assets import Assets
from app.web.problem import ProblemError
from app.web.templating import Templates, is_fragment, json_data

TEMPLATES = sorted((ROOT / "templates").rglob("*.html"))


@pytest.fixture
def templates(assets_dir: Path) -> Templates:
    return Templates(Assets(assets_dir))


def test_what_a_template_is_given_is_escaped(templates: Templates) -> None:
    problem = ProblemError(404, "<script>alert('1')</script> & \"more\"")
    page = bytes(templates.page("error", {"problem": problem, "title": "<b>"}, 404).body).decode()
    assert "<script>alert" not in page
    assert "&lt;script&gt;alert(&#39;1&#39;)&lt;/script&gt; &amp; &#34;more&#34;" in page
    assert "<title>&lt;b&gt; · Tokenroof</title>" in page


def test_a_name_that_is_missing_is_an_error(templates: Templates) -> None:
    with pytest.raises(UndefinedError):
        templates.page("error", {"title": "t"})


def test_a_fragment_is_not_kept_under_the_address_of_the_page(templates: Templates) -> None:
    page = templates.page("revoked", {}, headers={"X-More": "1"})
    assert page.headers["vary"] == "HX-Request"
    assert page.headers["x-more"] == "1"
    fragment = templates.partial("words", {}, 422)
    assert (fragment.status_code, fragment.headers["cache-control"]) == (422, "no-store")
    assert fragment.headers["vary"] == "HX-Request"
    assert bytes(fragment.body).decode() == templates.partial_html("words", {})


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({}, False),
        ({"hx-request": "true"}, False),
        ({"hx-request-type": "partial"}, False),
        ({"hx-request": "true", "hx-request-type": "full"}, False),
        ({"hx-request": "true", "hx-request-type": "partial"}, True),
    ],
)
def test_only_htmx_gets_a_fragment(headers: dict[str, str], expected: bool) -> None:
    raw = [(name.encode(), value.encode()) for name, value in headers.items()]
    assert is_fragment(Request({"type": "http", "method": "GET", "path": "/", "headers": raw})) is expected


def test_data_cannot_end_its_element() -> None:
    value = {"name": "</script><!-- \u2028\u2029 & é \" '"}
    text = json_data(value)
    assert not set(text) & {"<", "\u2028", "\u2029"}
    assert json.loads(text) == value
    with pytest.raises(ValueError, match="not JSON compliant"):
        json_data(float("nan"))


@pytest.mark.parametrize("template", TEMPLATES, ids=lambda path: path.name)
def test_nothing_is_marked_safe_but_data(template: Path) -> None:
    text = template.read_text()
    assert text.count("safe") - text.count("json_data | safe") - text.count("unsafe") == 0, "escape it"
    for word in ("Markup(", "{% raw", "autoescape false", "javascript:", " onclick=", " onload=", "<style", " style="):
        assert word not in text
    scripts = [part.partition(">")[0] for part in text.split("<script")[1:]]
    assert all("src=" in script or "application/json" in script for script in scripts)
