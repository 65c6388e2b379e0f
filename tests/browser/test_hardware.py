"""The catalog of accelerators in a browser: the list follows its filters, fits a phone, and needs no mouse."""

import re

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.axe import STILL, findings_in_both_themes
from tests.browser.drawing import drawn
from tests.browser.driving import Opener, field, is_partial
from tests.browser.test_layout import PHONE, assert_phones_have_room
from tests.browser.watching import Watch
from tests.factories import shipped_catalog

RECORDS = shipped_catalog().accelerators
ONE = "/hardware/h100-sxm-80gb"
PATHS = ("/hardware?sort=-bandwidth&min_year=2024", "/hardware?vendor=Groq&min_memory=90", ONE)


def corner(part: Locator) -> tuple[float, float]:
    """Left and top of what is drawn."""
    box = part.bounding_box()
    assert box is not None
    return box["x"], box["y"]


def first(page: Page) -> str:
    return page.locator("tbody th a").first.text_content() or ""


def test_the_list_and_the_address_follow_the_filters(visit: Opener, watch: Watch) -> None:
    watch.allow(422)
    page = visit("/hardware")
    field(page, "q").fill("h100")
    expect(page.locator("#found")).to_have_text(f"3 of {len(RECORDS)} accelerators")
    expect(page).to_have_url(re.compile(r"/hardware\?q=h100$"))
    page.locator("#sort-bandwidth").press("Enter")
    expect(page).to_have_url(re.compile("q=h100&sort=-bandwidth$"))
    expect(page.locator("#sort-bandwidth")).to_be_focused()
    expect(field(page, "sort")).to_have_value("-bandwidth")
    assert first(page) == "H100 NVL 94GB (per GPU)"
    page.locator("#sort-bandwidth").press("Enter")
    expect(page).to_have_url(re.compile("q=h100&sort=bandwidth$"))
    assert first(page) == "H100 PCIe 80GB"
    field(page, "min_memory").fill("many")
    expect(page.locator("#msg-min_memory")).to_have_text("Must be a number, and a finite one.")
    expect(page.locator("#stale")).to_contain_text("last filters that were right")
    expect(page).to_have_url(re.compile("q=h100&sort=bandwidth$"))
    field(page, "min_memory").fill("90")
    expect(page.locator("#found")).to_have_text(f"1 of {len(RECORDS)} accelerators")
    expect(page.locator("#msg-min_memory")).to_be_empty()
    expect(page.locator("#stale")).to_be_empty()
    expect(page.locator("#twin-head")).to_have_attribute("href", re.compile("q=h100&min_memory=90&sort=bandwidth$"))
    page.go_back()
    expect(page.locator("#found")).to_have_text(f"3 of {len(RECORDS)} accelerators")
    expect(field(page, "min_memory")).to_have_value("")


def test_it_works_without_script(visit: Opener) -> None:
    page = visit("/hardware", java_script_enabled=False)
    field(page, "q").fill("mi300x")
    page.get_by_role("button", name="Show").click()
    expect(page.locator("#found")).to_have_text(f"1 of {len(RECORDS)} accelerators")
    page.locator("#sort-year").click()
    expect(page).to_have_url(re.compile("q=mi300x&sort=-year$"))
    page.locator("tbody th a").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Instinct MI300X")
    expect(page.get_by_text("The drawing needs script")).to_be_visible()


def test_a_sort_asks_for_a_part_and_keeps_the_form(visit: Opener) -> None:
    page = visit("/hardware")
    field(page, "vendor").select_option("AMD")
    amd = sum(record.vendor == "AMD" for record in RECORDS.values())
    expect(page.locator("#found")).to_have_text(f"{amd} of {len(RECORDS)} accelerators")
    with page.expect_response(lambda response: is_partial(response.request)):
        page.locator("#sort-year").click()
    expect(field(page, "vendor")).to_have_value("AMD")
    field(page, "sort").select_option("memory")
    expect(page).to_have_url(re.compile("vendor=AMD&sort=memory$"))
    assert first(page) == "Radeon RX 9070 XT"


def test_the_roofs_are_drawn_from_the_catalog(visit: Opener) -> None:
    page = visit(ONE)
    drawn(page, ["roofs"])
    names = page.evaluate("document.getElementById('plot-roofs').data.map((trace) => trace.name)")
    assert names == ["memory", "fp32", "tf32", "bf16, fp16", "fp8, int8"]


def test_a_phone_scrolls_one_way(visit: Opener) -> None:
    page = visit("/readyz", **PHONE)
    for path in ("/hardware", *PATHS):
        assert_phones_have_room(page, path)


def test_names_and_headings_stand_still_while_the_table_scrolls(visit: Opener) -> None:
    page = visit("/hardware", **{**PHONE, "viewport": {"width": 390, "height": 800}})
    name, heading = page.locator("tbody th").nth(8), page.locator("#sort-name")
    before = corner(name)
    page.locator(".list").evaluate("(node) => node.scrollTo(300, 250)")
    assert corner(name)[0] == pytest.approx(before[0], abs=1.5)
    assert corner(heading)[1] == pytest.approx(corner(page.locator(".list"))[1], abs=2)


def test_axe_finds_nothing(visit: Opener) -> None:
    page = visit("/readyz", drawing=False, **STILL)
    for path in PATHS:
        page.goto(path)
        assert findings_in_both_themes(page) == {}, path


def test_axe_finds_nothing_where_something_is_wrong(visit: Opener, watch: Watch) -> None:
    watch.allow(404, 422)
    page = visit("/hardware?min_memory=lots&sort=up&colour=red", **STILL)
    assert findings_in_both_themes(page) == {}
    page.goto("/hardware/h100")
    assert findings_in_both_themes(page) == {}
