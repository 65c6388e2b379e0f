"""Plans side by side in a browser: baseline and equal rows, on a desk and on a phone, by keyboard, without script."""

import re
from urllib.parse import urlencode

from playwright.sync_api import Page, expect

from tests.browser.axe import STILL, findings_in_both_themes
from tests.browser.drawing import drawn, fitted
from tests.browser.driving import Opener
from tests.browser.test_keyboard import tab_to, walk
from tests.browser.test_layout import FINGER_PX, OPEN_ALL, PHONE, SMALL, assert_fits
from tests.browser.watching import Watch
from tests.compared_plans import BASE, FP8, H200, UNFIT

CHARTS = ("compare-roofline", "compare-tradeoff", "compare-memory", "compare-time")
NAMES = ("W" * 120, "نموذج لغوي كبير 👩‍💻", "<b>bold</b> $x^2$ %{x}")


def address(*texts: str, **view: str) -> str:
    return f"/compare?{urlencode([*(('s', text) for text in texts), *view.items()])}"


def own_card(name: str) -> str:
    card = {"hw": "custom", "hw_name": name, "hw_mem": "80", "hw_bw": "3350", "hw_bf16": "989"}
    return f"model=llama-3.1-8b&{urlencode(card)}"


def change(page: Page, plan: int) -> str:
    """What the row of the expected throughput says of a plan's difference to the baseline."""
    row = page.locator("[data-row=output_tokens_per_s][data-level=expected]")
    found = row.locator("td").nth(plan).locator(".change")
    return re.sub(r"\s+", " ", found.text_content() or "").strip() if found.count() else ""


def test_the_baseline_turns_the_differences_round_and_equal_rows_are_hidden(visit: Opener) -> None:
    page = visit(address(BASE, H200, FP8), drawing=False)
    drawn(page, CHARTS)
    assert change(page, 0) == ""
    assert re.fullmatch(r"\+[\d.]+ % better", change(page, 1))
    page.locator("#base-b").click()
    expect(page).to_have_url(re.compile(r"base=2#results$"))
    expect(page.locator("#base-b")).to_have_attribute("aria-current", "true")
    assert re.fullmatch(r"−[\d.]+ % worse", change(page, 0))
    assert change(page, 1) == ""
    expect(page.locator("[data-row=gpus]")).to_be_visible()
    page.locator("#equal").click()
    expect(page.locator("[data-row=gpus]")).to_have_count(0)
    expect(page.locator("#base-b")).to_have_attribute("aria-current", "true")
    page.reload()
    expect(page.locator("[data-row=gpus]")).to_have_count(0)
    page.locator("#plan-c").get_by_role("link", name="Remove plan C").click()
    expect(page.locator(".plan")).to_have_count(2)
    page.go_back()
    expect(page.locator(".plan")).to_have_count(3)


def test_from_the_workbench_to_a_copy_with_one_change(visit: Opener) -> None:
    page = visit("/?model=llama-3.1-8b&hw=h100-sxm-80gb&prompt=2000", drawing=False)
    page.locator("#results").get_by_role("link", name="Compare").click()
    expect(page.locator(".plan")).to_have_count(1)
    page.locator("#variants-a a").first.click()
    expect(page.locator(".plan")).to_have_count(2)
    drawn(page, CHARTS)
    page.get_by_role("link", name="Open in the workbench (plan B)").click()
    expect(page.locator("#f-prompt")).to_have_value("2000")


def test_it_works_without_script(visit: Opener, watch: Watch) -> None:
    watch.allow(422)
    page = visit("/compare", java_script_enabled=False)
    page.get_by_label("Plan A").fill(BASE)
    page.get_by_label("Plan B").fill("hello")
    page.get_by_role("button", name="Compare").click()
    expect(page.locator("#msg-s1")).to_contain_text("neither")
    expect(page.get_by_label("Plan B")).to_have_value("hello")
    expect(page.locator(".plan")).to_have_count(1)
    page.get_by_label("Plan B").fill(f"https://any.example/?{H200}")
    page.locator("#f-base").select_option("2")
    page.get_by_role("button", name="Compare").click()
    expect(page.locator(".plan")).to_have_count(2)
    assert "worse" in change(page, 0)
    for chart in CHARTS:
        page.locator(f"#table-{chart} > summary").click()
        expect(page.locator(f"#table-{chart} tbody tr").first).to_be_visible()
    page.locator("#plan-b").get_by_role("link", name="Move left").click()
    expect(page.locator("#plan-a h2")).to_have_text("H200 SXM 141GB")


def test_a_phone_scrolls_one_way_and_fingers_meet_large_targets(visit: Opener, watch: Watch) -> None:
    watch.allow(422)
    page = visit("/readyz", **PHONE)
    for path in (
        "/compare",
        address(BASE),
        address(BASE, "hello", "W" * 300, base="9"),
        address(BASE, FP8, H200, UNFIT),
        address(*(own_card(name) for name in NAMES)),
    ):
        page.goto(path)
        page.evaluate(OPEN_ALL)
        fitted(page)
        assert_fits(page, 320)
        assert page.evaluate(SMALL, FINGER_PX) == []
    for across in (390, 768, 1440):
        page.set_viewport_size({"width": across, "height": 900})
        fitted(page)
        assert_fits(page, across)


def test_the_keyboard_reaches_every_action_with_a_visible_focus(visit: Opener) -> None:
    page = visit(address(BASE, H200))
    tab_to(page, "#base-b", 80)
    page.keyboard.press("Enter")
    expect(page.locator("#base-b")).to_have_attribute("aria-current", "true")
    page.goto(address(BASE, H200))
    page.evaluate(OPEN_ALL)
    drawn(page, CHARTS)
    stops = walk(page)
    assert [stop["describe"] for stop in stops if not (stop["visible"] and stop["shown"])] == []
    reached = " ".join(stop["describe"] for stop in stops)
    for words in ("Make it the baseline (plan B)", "Move left (plan B)", "Remove plan A", "Hide the", "CSV", "f-s3"):
        assert words in reached
    assert page.locator("[id^=plot-] :is(a, button, input, [tabindex])").count() == 0


def test_axe_finds_nothing(visit: Opener, watch: Watch) -> None:
    watch.allow(422)
    page = visit("/compare", drawing=False, **STILL)
    assert findings_in_both_themes(page) == {}
    page.goto(address(BASE, UNFIT, "hello", base="9"))
    assert findings_in_both_themes(page) == {}
