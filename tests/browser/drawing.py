"""The charts of a page: drawn by the library, or left to a stand-in that only keeps what it is given.

Drawing takes most of the time of a visit. Tests of forms, links and messages do without; what a chart is given is
there for them all the same. Only the library tells whether a chart is drawn, and how wide.
"""

import re
from collections.abc import Iterable

from playwright.sync_api import BrowserContext, Page, expect

LIBRARY = re.compile(r"/plotly-basic\.min\.js$")
STAND_IN = """
window.Plotly = {
  react(node, data, layout) {
    Object.assign(node, { data, layout });
    if (node.querySelector(".main-svg")) return;
    const drawing = document.createElementNS("http://www.w3.org/2000/svg", "svg");
    for (const [name, value] of [["class", "main-svg"], ["width", 0], ["height", 0]]) drawing.setAttribute(name, value);
    node.append(drawing);
  },
};
"""
FITTED = """() => [...document.querySelectorAll("[id^=plot-]")].every((node) => {
  const drawing = node.querySelector(".main-svg");
  return !node.checkVisibility() || (drawing && Math.abs(drawing.clientWidth - node.clientWidth) <= 2);
})"""


def leave_undrawn(context: BrowserContext) -> None:
    """Give the pages of a context the stand-in in the library's place."""
    context.route(LIBRARY, lambda route: route.fulfill(content_type="text/javascript", body=STAND_IN))


def drawn(page: Page, charts: Iterable[str]) -> None:
    """Wait until each of the charts is drawn."""
    selectors = [f"#plot-{id_}:has(.main-svg)" for id_ in charts]
    expect(page.locator(", ".join(selectors))).to_have_count(len(selectors))


def fitted(page: Page) -> None:
    """Wait until every chart that can be seen is drawn, and as wide as its place."""
    page.wait_for_function(FITTED)
