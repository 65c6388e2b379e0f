"""The catalog of models in a browser: the list follows its filters, the page of one fits a phone and needs no mouse."""

import re

from playwright.sync_api import expect

from tests.browser.axe import STILL, findings_in_both_themes
from tests.browser.drawing import drawn
from tests.browser.driving import Opener, field, is_partial
from tests.browser.test_layout import PHONE, assert_phones_have_room
from tests.browser.watching import Watch
from tests.factories import shipped_catalog

RECORDS = shipped_catalog().models
PAGES = (
    "/models/deepseek-v3",
    "/models/gemma-3-27b",
    "/models/nemotron-3-super-120b-a12b",
    "/models/llama-3.3-nemotron-super-49b",
    "/models/ministral-3-8b",
)
HEIGHTS = "(all) => all.map((cell) => parseFloat(getComputedStyle(cell, '::before').height))"
PATHS = ("/models?q=deepseek&sort=-params", "/models?family=Falcon&kind=experts", PAGES[0], PAGES[2])


def test_the_list_and_the_address_follow_the_filters(visit: Opener, watch: Watch) -> None:
    watch.allow(422)
    page = visit("/models")
    field(page, "q").fill("deepseek v")
    field(page, "attention").select_option("latent")
    expect(page.locator("#found")).to_have_text(f"4 of {len(RECORDS)} models")
    expect(page).to_have_url(re.compile(r"/models\?q=deepseek%20v&attention=latent$"))
    with page.expect_response(lambda response: is_partial(response.request)):
        page.locator("#sort-params").press("Enter")
    expect(field(page, "sort")).to_have_value("-params")
    expect(page.locator("#sort-params")).to_be_focused()
    field(page, "max_params").fill("many")
    expect(page.locator("#msg-max_params")).to_have_text("Must be a number, and a finite one.")
    expect(page.locator("#stale")).to_contain_text("last filters that were right")
    field(page, "max_params").fill("100")
    expect(page.locator("#found")).to_have_text(f"1 of {len(RECORDS)} models")
    expect(page.locator("#twin-head")).to_have_attribute("href", re.compile("max_params=100&attention=latent&sort"))
    page.go_back()
    expect(page.locator("#found")).to_have_text(f"4 of {len(RECORDS)} models")


def test_it_works_without_script(visit: Opener) -> None:
    page = visit("/models", java_script_enabled=False)
    field(page, "q").fill("deepseek-v3.1")
    page.get_by_role("button", name="Show").click()
    expect(page.locator("#found")).to_have_text(f"1 of {len(RECORDS)} models")
    page.locator("tbody th a").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("DeepSeek-V3.1")
    expect(page.get_by_text("The drawing needs script").first).to_be_visible()


def test_both_charts_are_drawn_and_the_strip_has_height(visit: Opener) -> None:
    page = visit("/readyz")
    for path in PAGES:
        page.goto(path)
        drawn(page, ("parameters", "cache"))
        heights = page.locator(".strip span").evaluate_all(HEIGHTS)
        assert min(heights) >= 2, path
        assert max(heights) == 32, path


def test_a_plan_leads_to_the_workbench_with_the_same_number(visit: Opener) -> None:
    page = visit("/models/deepseek-v3", drawing=False)
    row = page.locator(".cards-held tr", has=page.get_by_role("link", name="H200 SXM", exact=False)).first
    users = row.locator("td a").first.text_content() or ""
    row.locator("td a").first.click()
    expect(page.locator(".metrics")).to_contain_text(f"{users} sequences")


def test_a_phone_scrolls_one_way(visit: Opener) -> None:
    page = visit("/readyz", **PHONE)
    for path in ("/models", *PATHS):
        assert_phones_have_room(page, path)


def test_axe_finds_nothing(visit: Opener) -> None:
    page = visit("/readyz", drawing=False, **STILL)
    for path in PATHS:
        page.goto(path)
        assert findings_in_both_themes(page) == {}, path


def test_axe_finds_nothing_where_something_is_wrong(visit: Opener, watch: Watch) -> None:
    watch.allow(404, 422)
    page = visit("/models?max_params=lots&sort=up&colour=red", **STILL)
    assert findings_in_both_themes(page) == {}
    page.goto("/models/deepseek")
    assert findings_in_both_themes(page) == {}
