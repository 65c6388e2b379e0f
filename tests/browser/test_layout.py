"""Small screens, fingers, forced colours, names that nobody expected, and the weight of a first visit."""

import json
import re
from typing import Any
from urllib.parse import urlencode

import pytest
from playwright.sync_api import Page, expect

from tests.browser.drawing import fitted
from tests.browser.driving import SIX, Opener, change, rest
from tests.browser.watching import Watch

PHONE: dict[str, Any] = {"viewport": {"width": 320, "height": 640}, "has_touch": True, "is_mobile": True}
MOST_BYTES = 650_000
FINGER_PX = 44
OPEN_ALL = "for (const details of document.querySelectorAll('details')) details.open = true"
# Elements whose right edge is cut off, and which cannot be scrolled to either.
CLIPPED = """() => [...document.querySelectorAll("main *, header *, footer *")].filter((node) => {
  const box = node.getBoundingClientRect();
  if (!node.checkVisibility() || box.width < 2 || box.height < 2 || box.right <= innerWidth + 1) return false;
  for (let up = node.parentElement; up; up = up.parentElement) {
    const flow = getComputedStyle(up).overflowX;
    if (flow === "auto" || flow === "scroll") return false;
    if (up.closest("[id^=plot-], .unseen")) return false;
  }
  return true;
}).map((node) => `${node.tagName.toLowerCase()}#${node.id} ${node.textContent.trim().slice(0, 40)}`)"""
SMALL = """(least) => [...document.querySelectorAll("button, summary, input, select, a")].filter((node) => {
  // A link inside text is exempt, and so is what only the keyboard reaches.
  if (!node.checkVisibility() || node.closest("[id^=plot-], p, li, td, dd, h1, h2, [href='#main']")) return false;
  const box = node.getBoundingClientRect();
  return box.width > 1 && node.type !== "range" && box.height < least - 0.5;
}).map((node) => `${node.tagName.toLowerCase()}#${node.id} ${node.textContent.trim().slice(0, 30)}`)"""
CONFIG = {
    "model_type": "llama",
    "hidden_size": 4096,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "intermediate_size": 14336,
    "vocab_size": 128256,
}
NAMES = ("W" * 120, "نموذج لغوي كبير جدا שלום עולם 👩‍💻🧮🦙", "<b>bold</b> $x^2$ %{x}")


def width(page: Page) -> int:
    """How far the page reaches to the right."""
    found: int = page.evaluate("document.documentElement.scrollWidth")
    return found


def assert_fits(page: Page, most: int) -> None:
    assert width(page) <= most
    assert page.evaluate(CLIPPED) == []


def assert_phones_have_room(page: Page, path: str) -> None:
    """With everything opened a phone scrolls one way, a wide one too, and nothing is too small for a finger."""
    page.set_viewport_size(PHONE["viewport"])
    page.goto(path)
    page.evaluate(OPEN_ALL)
    fitted(page)
    assert_fits(page, 320)
    assert page.evaluate(SMALL, FINGER_PX) == [], path
    page.set_viewport_size({"width": 390, "height": 800})
    fitted(page)
    assert_fits(page, 390)


def test_a_phone_scrolls_one_way_and_fingers_meet_large_targets(visit: Opener, watch: Watch) -> None:
    watch.allow(404, 422)
    page = visit(drawing=False, **PHONE)
    rest(page)
    for id_ in SIX:
        expect(page.locator(f"#metric-{id_}")).to_be_visible()
    page.get_by_label("Title").fill("W" * 120)
    page.get_by_label("Notes").fill("N" * 400)
    page.get_by_role("button", name="Save link").click()
    expect(page).to_have_url(re.compile("/c/"))
    for path in (page.url, "/", "/live", "/docs", "/nothing", "/?model=x&hw=y&prompt=many"):
        page.goto(path)
        assert_fits(page, 320)
        page.evaluate(OPEN_ALL)
        assert_fits(page, 320)
        assert page.evaluate(SMALL, FINGER_PX) == [], path


def test_workings_and_tables_scroll_inside_where_they_are_wide(visit: Opener) -> None:
    page = visit(drawing=False, viewport={"width": 320, "height": 640})
    rest(page)
    for id_ in ("working-ttft", "working-tpot", "working-room", "table-batch", "table-context", "table-roofline"):
        page.locator(f"#{id_} > summary").click()
        assert width(page) <= 320, id_
        assert page.evaluate(CLIPPED) == [], id_
        page.locator(f"#{id_} > summary").click()


def test_a_task_by_touch(visit: Opener) -> None:
    page = visit(**PHONE)
    rest(page)
    fitted(page)
    assert_fits(page, 320)
    box = page.get_by_role("combobox", name="Accelerator")
    box.tap()
    box.fill("h200 sxm")
    with page.expect_response(lambda response: "hw=h200-sxm" in response.url):
        page.locator("#f-hw-list").get_by_role("option").first.tap()
    rest(page)
    page.locator("#working-tpot > summary").tap()
    expect(page.locator("#working-tpot table").first).to_be_visible()


@pytest.mark.parametrize("name", NAMES, ids=["long", "right-to-left and emoji", "markup"])
def test_odd_names_do_not_break_the_page(visit: Opener, name: str) -> None:
    query = {
        "model": "custom",
        "model_name": name,
        "config": json.dumps(CONFIG),
        "hw": "custom",
        "hw_name": name,
        "hw_mem": "80",
        "hw_bw": "3350",
        "hw_bf16": "989",
    }
    page = visit(f"/?{urlencode(query)}", viewport={"width": 320, "height": 640})
    rest(page)
    assert_fits(page, 320)
    labels = page.locator("#plot-roofline .annotation-text").all_text_contents()
    shown = next(text for text in labels if text[:3] == name[:3]).rstrip("…")
    assert len(shown) > 10
    assert name.startswith(shown)
    assert page.locator("#plot-roofline .annotation a, #plot-roofline .annotation tspan").count() == 0
    page.get_by_label("Title").fill(name[:120])
    page.get_by_role("button", name="Save link").click()
    expect(page.get_by_role("heading", level=1)).to_have_text(name[:120])
    assert_fits(page, 320)


def test_wide_screens_and_paper(visit: Opener) -> None:
    page = visit(drawing=False)
    rest(page)
    for across in (480, 768, 1440, 2560):
        page.set_viewport_size({"width": across, "height": 900})
        assert_fits(page, across)
    page.emulate_media(media="print")
    for id_ in ("verdict", "metric-memory", "metric-throughput", "chart-roofline"):
        expect(page.locator(f"#{id_}")).to_be_visible()
    expect(page.locator("#scenario")).to_be_hidden()


def test_without_motion_and_with_forced_colours(visit: Opener) -> None:
    page = visit(reduced_motion="reduce", forced_colors="active")
    rest(page)
    moving = page.evaluate(
        "[...document.querySelectorAll('body *')].filter((node) => !node.closest('[id^=plot-]'))"
        ".map((node) => getComputedStyle(node))"
        ".filter((style) => parseFloat(style.transitionDuration) > 0.01 || style.animationName !== 'none').length"
    )
    assert moving == 0
    change(page, "prompt", "2000")
    expect(page.locator("#metric-memory")).to_be_visible()
    expect(page.locator("#plot-roofline .main-svg").first).to_be_visible()
    page.locator("#f-prompt").focus()
    assert page.locator("#f-prompt").evaluate("(n) => getComputedStyle(n).outlineStyle") != "none"


def test_a_first_visit_is_light(visit: Opener) -> None:
    page = visit("/readyz")
    session = page.context.new_cdp_session(page)
    sizes: list[float] = []
    session.send("Network.enable")
    session.send("Network.setCacheDisabled", {"cacheDisabled": True})
    session.on("Network.loadingFinished", lambda event: sizes.append(event["encodedDataLength"]))
    page.goto("/")
    rest(page)
    page.wait_for_load_state("networkidle")
    assert len(sizes) > 8
    assert sum(sizes) < MOST_BYTES
    sizes.clear()
    session.send("Network.setCacheDisabled", {"cacheDisabled": False})
    page.goto("/?model=llama-3.1-8b&hw=h200-sxm")
    rest(page)
    page.wait_for_load_state("networkidle")
    assert sum(sizes) < 80_000
