"""axe-core finds nothing on any page, in either theme, with everything opened."""

import re
from typing import Any

from playwright.sync_api import Page, expect

from app.settings import ROOT
from tests.browser.driving import Opener, change, drawn, rest
from tests.browser.watching import Watch

AXE = ROOT / "node_modules" / "axe-core" / "axe.min.js"
OPEN_ALL = "for (const details of document.querySelectorAll('details')) details.open = true"
RUN = """async () => {
  const { violations } = await axe.run(document, { resultTypes: ["violations"] });
  const where = (nodes) => nodes.slice(0, 3).map((node) => node.html.slice(0, 160));
  return violations.map(({ id, impact, nodes }) => [id, impact, nodes.length, where(nodes)]);
}"""
# Transparency on its way to opaque would be measured as low contrast.
STILL = {"reduced_motion": "reduce"}


def findings(page: Page) -> list[Any]:
    """What axe finds in the page as it stands."""
    if not page.evaluate("'axe' in window"):
        page.evaluate(AXE.read_text(encoding="utf-8"))  # a script element would meet the policy
    found: list[Any] = page.evaluate(RUN)
    return found


def findings_in_both_themes(page: Page) -> dict[str, list[Any]]:
    """The same with everything opened, light and dark."""
    page.evaluate(OPEN_ALL)
    found: dict[str, list[Any]] = {"dark": [], "light": []}
    for scheme in found:
        page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
        found[scheme] = findings(page)
    return {scheme: list_ for scheme, list_ in found.items() if list_}


def test_the_workbench(visit: Opener) -> None:
    page = visit(**STILL)
    rest(page)
    assert findings(page) == []
    assert findings_in_both_themes(page) == {}
    page.get_by_role("combobox", name="Model").click()
    assert findings(page) == []


def test_a_workbench_with_everything_in_use(visit: Opener) -> None:
    custom = "/?model=llama-3.1-70b&hw=custom&hw_mem=24&hw_bw=1000&hw_bf16=100&ttft=0.01&units=gib&colour=red"
    page = visit(custom, **STILL)
    rest(page)
    assert findings_in_both_themes(page) == {}


def test_a_refused_page(visit: Opener, watch: Watch) -> None:
    watch.allow(422)
    page = visit("/?model=llama-3.1-8b&hw=h100-sxm-80gb&prompt=many&hit=2", **STILL)
    assert findings_in_both_themes(page) == {}


def test_a_refused_change(visit: Opener, watch: Watch) -> None:
    """What is greyed is read all the same."""
    watch.allow(422)
    page = visit(**STILL)
    rest(page)
    change(page, "prompt", "many", 422)
    assert findings_in_both_themes(page) == {}


def test_a_saved_page(visit: Opener) -> None:
    page = visit(**STILL)
    rest(page)
    page.get_by_label("Title").fill("Plan")
    page.get_by_label("Notes").fill("Two\nlines")
    page.get_by_role("button", name="Save link").click()
    expect(page).to_have_url(re.compile("/c/"))
    drawn(page)
    assert findings_in_both_themes(page) == {}


def test_the_other_pages(visit: Opener, watch: Watch) -> None:
    watch.allow(404)
    page = visit("/live", **STILL)
    assert findings_in_both_themes(page) == {}
    for path in ("/docs", "/nothing", "/c/nothing"):
        page.goto(path)
        assert findings_in_both_themes(page) == {}, path
