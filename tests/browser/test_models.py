"""The catalog of models in a browser: the list follows its filters, the page of one fits a phone and needs no mouse."""

import re

import pytest
from playwright.sync_api import expect

from tests.browser.driving import Opener, field, is_partial
from tests.browser.test_accessibility import STILL, findings_in_both_themes
from tests.browser.test_layout import FINGER_PX, OPEN_ALL, PHONE, SMALL, assert_fits
from tests.browser.watching import Watch

PAGES = (
    "/models/deepseek-v3",
    "/models/gemma-3-27b",
    "/models/nemotron-3-super-120b-a12b",
    "/models/llama-3.3-nemotron-super-49b",
    "/models/ministral-3-8b",
)
PATHS = ("/models", "/models?family=Falcon&kind=experts", *PAGES[:3])


def test_the_list_and_the_address_follow_the_filters(visit: Opener, watch: Watch) -> None:
    watch.allow(422)
    page = visit("/models")
    field(page, "q").fill("deepseek v")
    field(page, "attention").select_option("latent")
    expect(page.locator("#found")).to_have_text("4 of 152 models")
    expect(page).to_have_url(re.compile(r"/models\?q=deepseek%20v&attention=latent$"))
    with page.expect_response(lambda response: is_partial(response.request)):
        page.locator("#sort-params").press("Enter")
    expect(field(page, "sort")).to_have_value("-params")
    expect(page.locator("#sort-params")).to_be_focused()
    field(page, "max_params").fill("many")
    expect(page.locator("#msg-max_params")).to_have_text("Must be a number, and a finite one.")
    expect(page.locator("#stale")).to_contain_text("last filters that were right")
    field(page, "max_params").fill("100")
    expect(page.locator("#found")).to_have_text("1 of 152 models")
    expect(page.locator("#twin-head")).to_have_attribute("href", re.compile("max_params=100&attention=latent&sort"))
    page.go_back()
    expect(page.locator("#found")).to_have_text("4 of 152 models")


def test_it_works_without_script(visit: Opener) -> None:
    page = visit("/models", java_script_enabled=False)
    field(page, "q").fill("deepseek-v3.1")
    page.get_by_role("button", name="Show").click()
    expect(page.locator("#found")).to_have_text("1 of 152 models")
    page.locator("tbody th a").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("DeepSeek-V3.1")
    expect(page.get_by_text("The drawing needs script").first).to_be_visible()


@pytest.mark.parametrize("path", PAGES)
def test_both_charts_are_drawn_and_the_strip_has_height(visit: Opener, path: str) -> None:
    page = visit(path)
    for chart in ("parameters", "cache"):
        expect(page.locator(f"#plot-{chart} .main-svg").first).to_be_attached()
    cells = page.locator(".strip span")
    heights = cells.evaluate_all("(all) => all.map((cell) => parseFloat(getComputedStyle(cell, '::before').height))")
    assert min(heights) >= 2
    assert max(heights) == 32


def test_a_plan_leads_to_the_workbench_with_the_same_number(visit: Opener) -> None:
    page = visit("/models/deepseek-v3")
    row = page.locator(".cards-held tr", has=page.get_by_role("link", name="H200 SXM", exact=False)).first
    users = row.locator("td a").first.text_content() or ""
    row.locator("td a").first.click()
    expect(page.locator(".metrics")).to_contain_text(f"{users} sequences")


@pytest.mark.parametrize("path", PATHS)
def test_a_phone_scrolls_one_way(visit: Opener, path: str) -> None:
    page = visit(path, **{**PHONE, "viewport": {"width": 320, "height": 800}})
    page.evaluate(OPEN_ALL)
    for across in (320, 390):
        page.set_viewport_size({"width": across, "height": 800})
        page.wait_for_timeout(300)  # the charts follow the width
        assert_fits(page, across)
        assert page.evaluate(SMALL, FINGER_PX) == []


@pytest.mark.parametrize("path", PATHS)
def test_axe_finds_nothing(visit: Opener, path: str) -> None:
    page = visit(path, **STILL)
    assert findings_in_both_themes(page) == {}


def test_axe_finds_nothing_where_something_is_wrong(visit: Opener, watch: Watch) -> None:
    watch.allow(404, 422)
    page = visit("/models?max_params=lots&sort=up&colour=red", **STILL)
    assert findings_in_both_themes(page) == {}
    page.goto("/models/deepseek")
    assert findings_in_both_themes(page) == {}
