"""Predicted against measured in a browser: charts and table follow the filters, on a desk and on a phone."""

import re

from playwright.sync_api import Page, expect

from tests.browser.axe import STILL, findings, findings_in_both_themes
from tests.browser.driving import Opener, field
from tests.browser.test_layout import PHONE, assert_phones_have_room
from tests.browser.watching import Watch

PATHS = ("/validation?metric=ttft_s&page=2", "/validation?scored=no&family=cdna3")


def points(page: Page, chart: str) -> int:
    """How many measurements a chart draws."""
    counted: int = page.evaluate(
        "(id) => document.getElementById(id).data.filter((t) => t.mode === 'markers')"
        ".reduce((sum, trace) => sum + trace.x.length, 0)",
        f"plot-{chart}",
    )
    return counted


def found(page: Page) -> int:
    return int(re.findall(r"\d+", page.locator("#found").text_content() or "")[0])


def test_charts_and_table_follow_the_filters(visit: Opener, watch: Watch) -> None:
    page = visit("/validation")
    expect(page.locator("#plot-predicted-rates .main-svg").first).to_be_attached()
    assert points(page, "predicted-times") + points(page, "predicted-rates") == found(page)
    field(page, "metric").select_option("ttft_s")
    expect(page).to_have_url(re.compile(r"/validation\?metric=ttft_s$"))
    expect(page.locator("#plot-predicted-rates")).to_have_count(0)
    assert points(page, "predicted-times") == found(page)
    field(page, "metric").select_option("")
    expect(page.locator("#plot-predicted-rates .main-svg").first).to_be_attached()
    assert points(page, "predicted-times") + points(page, "predicted-rates") == found(page)
    field(page, "by").select_option("engine")
    expect(page.locator("#title-errors")).to_have_text("Errors by engine")
    page.locator(".errors tbody a", has_text="SGLang").press("Enter")
    expect(page.locator("#f-engine")).to_have_value("sglang")


def test_pages_turn_in_place_and_keep_the_focus(visit: Opener) -> None:
    page = visit("/validation", drawing=False)
    first = page.locator(".measured tbody th").first.text_content()
    following = page.locator("#page-next-above")
    following.press("Enter")
    expect(page).to_have_url(re.compile(r"/validation\?page=2$"))
    expect(following).to_be_focused()
    assert page.locator(".measured tbody th").first.text_content() != first
    page.go_back()
    expect(page.locator(".measured tbody th").first).to_have_text(re.sub(r"\s+", " ", first or "").strip())


def test_it_works_without_script(visit: Opener) -> None:
    page = visit("/validation", java_script_enabled=False)
    field(page, "engine").select_option("sglang")
    field(page, "by").select_option("model")
    page.get_by_role("button", name="Show").click()
    expect(page.locator("#title-errors")).to_have_text("Errors by model")
    page.locator("#page-next-below").click()
    expect(page).to_have_url(re.compile("page=2$"))
    page.locator(".measured tbody th a").first.click()
    expect(page.locator("#f-engine")).to_have_value("sglang")


def test_a_phone_scrolls_one_way(visit: Opener) -> None:
    page = visit("/readyz", **PHONE)
    assert_phones_have_room(page, "/validation")


def test_axe_finds_nothing(visit: Opener) -> None:
    page = visit("/readyz", drawing=False, **STILL)
    for path in PATHS:
        page.goto(path)
        assert findings_in_both_themes(page) == {}, path


def test_axe_finds_nothing_where_something_is_wrong(visit: Opener, watch: Watch) -> None:
    watch.allow(422)
    page = visit("/validation?metric=speed&page=0&by=colour", drawing=False, **STILL)
    assert findings(page) == []
