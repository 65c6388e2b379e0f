"""What axe-core finds in a page, in either theme."""

from typing import Any

from playwright.sync_api import Page

from app.settings import ROOT

AXE = ROOT / "node_modules" / "axe-core" / "axe.min.js"
OPEN_ALL = "for (const details of document.querySelectorAll('details')) details.open = true"
RUN = """async ([within, about]) => {
  const { violations } = await axe.run(within, { resultTypes: ["violations"], ...about });
  const where = (nodes) => nodes.slice(0, 3).map((node) => node.html.slice(0, 160));
  return violations.map(({ id, impact, nodes }) => [id, impact, nodes.length, where(nodes)]);
}"""
COLOURS = {"runOnly": ["color-contrast", "link-in-text-block"]}
# A row that equals one above it in its table in all that a style sheet tells apart has its colours.
MARK_REPEATED = """() => {
  const words = /^(id|href|for|name|value|title|headers|aria-(label|labelledby|describedby|controls))$/;
  const look = (node) => [
    node.localName,
    ...[...node.attributes].filter(({ name }) => !words.test(name)).map(({ name, value }) => `${name}=${value}`),
    node.textContent.trim() !== "",
  ];
  for (const { rows } of document.querySelectorAll("tbody")) {
    const seen = new Set();
    for (const row of rows) {
      const looks = JSON.stringify([row, ...row.querySelectorAll("*")].map(look));
      row.toggleAttribute("data-repeated", seen.has(looks));
      seen.add(looks);
    }
  }
}"""
# Transparency on its way to opaque would be measured as low contrast.
STILL: dict[str, Any] = {"reduced_motion": "reduce"}


def findings(page: Page, within: str = "html") -> list[Any]:
    """What axe finds in the page, or in a part of it, as it stands."""
    return _run(page, within)


def findings_in_both_themes(page: Page) -> dict[str, list[Any]]:
    """The same with everything opened, dark and light. A theme changes colours alone: the second asks for no more."""
    page.evaluate(OPEN_ALL)
    page.emulate_media(color_scheme="dark")
    found = {"dark": _run(page, "html")}
    page.emulate_media(color_scheme="light")
    page.evaluate(MARK_REPEATED)
    found["light"] = _run(page, {"exclude": ["[data-repeated]"]}, COLOURS)
    return {scheme: list_ for scheme, list_ in found.items() if list_}


def _run(page: Page, within: str | dict[str, Any], about: dict[str, Any] | None = None) -> list[Any]:
    if not page.evaluate("'axe' in window"):
        page.evaluate(AXE.read_text(encoding="utf-8"))  # a script element would meet the policy
    found: list[Any] = page.evaluate(RUN, [within, about or {}])
    return found
