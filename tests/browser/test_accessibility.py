"""axe-core finds nothing on any page, in either theme, with everything opened."""

import re

from playwright.sync_api import expect

from tests.browser.axe import STILL, findings, findings_in_both_themes
from tests.browser.drawing import drawn
from tests.browser.driving import CHARTS, Opener, change, rest
from tests.browser.watching import Watch


def test_the_workbench(visit: Opener) -> None:
    page = visit(**STILL)
    rest(page)
    assert findings_in_both_themes(page) == {}
    page.get_by_role("combobox", name="Model").click()
    assert findings(page, "#scenario") == []


def test_a_workbench_with_everything_in_use(visit: Opener) -> None:
    custom = "/?model=llama-3.1-70b&hw=custom&hw_mem=24&hw_bw=1000&hw_bf16=100&ttft=0.01&units=gib&colour=red"
    page = visit(custom, drawing=False, **STILL)
    rest(page)
    assert findings_in_both_themes(page) == {}


def test_a_refused_page(visit: Opener, watch: Watch) -> None:
    watch.allow(422)
    page = visit("/?model=llama-3.1-8b&hw=h100-sxm-80gb&prompt=many&hit=2", drawing=False, **STILL)
    assert findings_in_both_themes(page) == {}


def test_a_refused_change(visit: Opener, watch: Watch) -> None:
    """What is greyed is read all the same."""
    watch.allow(422)
    page = visit(drawing=False, **STILL)
    rest(page)
    change(page, "prompt", "many", 422)
    assert findings_in_both_themes(page) == {}


def test_a_saved_page(visit: Opener) -> None:
    page = visit(drawing=False, **STILL)
    rest(page)
    page.get_by_label("Title").fill("Plan")
    page.get_by_label("Notes").fill("Two\nlines")
    page.get_by_role("button", name="Save link").click()
    expect(page).to_have_url(re.compile("/c/"))
    drawn(page, CHARTS)
    assert findings_in_both_themes(page) == {}


def test_the_other_pages(visit: Opener, watch: Watch) -> None:
    watch.allow(404)
    page = visit("/live", drawing=False, **STILL)
    assert findings_in_both_themes(page) == {}
    for path in ("/docs", "/nothing"):
        page.goto(path)
        assert findings_in_both_themes(page) == {}, path
