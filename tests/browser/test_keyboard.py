"""A walk through the workbench with the keyboard alone, and a visible focus at every stop."""

from typing import Any

from playwright.sync_api import Page, expect

from tests.browser.driving import Opener, assert_in_step, field, following, rest

# Notes where the focus goes, until it is back where it began.
NOTE_STOPS = """() => {
  const [stops, seen] = [[], new Set()];
  window.walked = null;
  const note = ({ target: node }) => {
    if (seen.has(node)) {
      document.removeEventListener("focusin", note);
      window.walked = { stops, around: node === [...seen][0] };
      return;
    }
    seen.add(node);
    const style = getComputedStyle(node);
    const box = node.getBoundingClientRect();
    const outlined = style.outlineStyle !== "none" && parseFloat(style.outlineWidth) > 0;
    const words = (node.ariaLabel ?? node.textContent).trim().slice(0, 40);
    const describe = `${node.tagName.toLowerCase()}#${node.id} ${words}`;
    stops.push({ describe, visible: outlined || style.boxShadow !== "none", shown: box.width > 1 && box.height > 1 });
  };
  document.addEventListener("focusin", note);
}"""
MOST_STOPS = 300


def tab_to(page: Page, selector: str, most: int = 60) -> None:
    """Press Tab until the element has the focus."""
    for _ in range(most):
        page.keyboard.press("Tab")
        if page.evaluate("(selector) => document.activeElement.matches(selector)", selector):
            return
    raise AssertionError(f"{selector} is not reached in {most} steps")


def walk(page: Page) -> list[dict[str, Any]]:
    """Every stop from the top of the page to its end."""
    page.evaluate(NOTE_STOPS)
    for step in range(1, MOST_STOPS + 1):
        page.keyboard.down("Tab")  # held, it goes from stop to stop
        if step % 20 == 0 and (walked := page.evaluate("window.walked")):
            page.keyboard.up("Tab")
            assert walked["around"], f"the focus does not get past {walked['stops'][-1]}"
            stops: list[dict[str, Any]] = walked["stops"]
            return stops
    raise AssertionError("the focus does not leave the page")


def test_a_task_from_end_to_end(visit: Opener, server: str) -> None:
    page = visit(drawing=False)
    rest(page)
    page.keyboard.press("Tab")
    skip = page.get_by_role("link", name="Skip to content")
    expect(skip).to_be_focused()
    expect(skip).to_be_in_viewport()
    page.keyboard.press("Enter")
    expect(page.locator("#main")).to_be_focused()
    tab_to(page, "#f-model-search")
    page.keyboard.press("Tab")
    expect(page.locator("#f-hw-search")).to_be_focused()
    page.keyboard.press("Tab")
    expect(field(page, "tp")).to_be_focused()
    page.keyboard.press("Tab")  # what is folded away is one stop
    page.keyboard.press("Tab")
    expect(page.locator("[data-slider=prompt]")).to_be_focused()
    with following(page):
        page.keyboard.press("ArrowRight")
    page.keyboard.press("Tab")
    expect(field(page, "prompt")).to_be_focused()
    with following(page):
        page.keyboard.press("Control+A")
        page.keyboard.type("3000")
    assert_in_step(page, server)
    assert "prompt=3000" in page.url
    tab_to(page, "#working-memory > summary", 80)
    page.keyboard.press("Enter")
    expect(page.locator("#working-memory table").first).to_be_visible()
    tab_to(page, "#table-roofline > summary", 60)
    page.keyboard.press("Enter")
    expect(page.locator("#table-roofline table")).to_be_visible()
    page.keyboard.press("Tab")
    expect(page.get_by_role("region", name="Roofline, table")).to_be_focused()


def test_enter_in_a_field_answers_in_place(visit: Opener, server: str) -> None:
    page = visit(drawing=False)
    rest(page)
    field(page, "out").fill("700")
    with following(page):
        field(page, "out").press("Enter")
    rest(page)
    page.wait_for_timeout(300)
    assert "out=700" in page.url
    assert_in_step(page, server)


def test_every_stop_has_a_visible_focus(visit: Opener) -> None:
    page = visit("/readyz", drawing=False)
    for path in ("/", "/docs", "/live", "/learn"):
        page.goto(path)
        page.evaluate("for (const details of document.querySelectorAll('details')) details.open = true")
        if path == "/":
            rest(page)
        stops = walk(page)
        assert len(stops) > 4
        assert [stop["describe"] for stop in stops if not stop["visible"]] == []
        assert [stop["describe"] for stop in stops if not stop["shown"]] == []


def test_names_and_roles_are_those_of_the_task(visit: Opener) -> None:
    page = visit(drawing=False)
    rest(page)
    for role, name in (
        ("combobox", "Model"),
        ("combobox", "Accelerator"),
        ("textbox", "Prompt length tokens"),
        ("slider", "Prompt length, slider"),
        ("region", "Six numbers"),
        ("region", "Charts"),
        ("figure", "Roofline"),
        ("navigation", "Pages"),
        ("status", ""),
    ):
        found = page.get_by_role(role, name=name, exact=True) if name else page.get_by_role(role)  # type: ignore[arg-type]
        expect(found).to_have_count(1)
    with following(page):
        field(page, "prompt").fill("2000")
    expect(page.get_by_role("slider", name="Prompt length, slider")).to_have_attribute("aria-valuetext", "2000")
    assert page.locator("#main").get_by_role("img").count() == 0
