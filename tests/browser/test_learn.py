"""The lesson in the browser: numbers that follow, focus that stays, words that open, small screens, no script."""

import re
from typing import Any

from playwright.sync_api import Page, expect

from tests.browser.axe import STILL, findings_in_both_themes
from tests.browser.drawing import drawn, fitted
from tests.browser.driving import Opener
from tests.browser.test_layout import FINGER_PX, OPEN_ALL, PHONE, SMALL, assert_fits
from tests.browser.watching import Watch

CHARTS = ("timeline", "roofline", "pace", "reads", "context", "gap", "memory", "cards")


def rest(page: Page) -> None:
    """Wait until the lesson awaits no answer and its charts are drawn."""
    page.locator("#results[aria-busy=false]").wait_for(state="attached")
    drawn(page, CHARTS)


def number(page: Page, id_: str) -> str:
    return page.locator(f'#results [data-number="{id_}"]').first.inner_text()


def changing(page: Page, key: str, times: int = 1) -> None:
    """Press a key so often, and wait for the last answer."""
    with page.expect_response(lambda r: "/learn?" in r.url and r.request.headers.get("hx-request-type") == "partial"):
        for _ in range(times):
            page.keyboard.press(key)
    rest(page)


def test_numbers_follow_the_slider_in_place_and_the_focus_stays(visit: Opener) -> None:
    page = visit("/learn#batching", drawing=False)
    rest(page)
    assert number(page, "batching.rate") == "13,350 tokens/s"
    page.evaluate("document.getElementById('chart-pace').kept = true")
    before = page.evaluate("scrollY")
    slider = page.get_by_role("slider", name="Users at a time, slider")
    slider.focus()
    changing(page, "PageUp")
    expect(slider).to_be_focused()
    assert (
        number(page, "batching.users")
        == page.locator("#f-batch").input_value()
        == page.locator("#m-batch").input_value()
    )
    assert number(page, "batching.rate") != "13,350 tokens/s"
    assert page.evaluate("document.getElementById('chart-pace').kept === true")  # morphed, not replaced
    assert abs(page.evaluate("scrollY") - before) < 200
    assert page.url.endswith("#batching")
    assert "batch=" in page.url
    page.locator("#m-batch").focus()
    page.keyboard.press("Control+A")
    changing(page, "8")
    expect(page.locator("#m-batch")).to_be_focused()
    assert page.locator("#f-batch").input_value() == "8"
    assert number(page, "batching.users") == "8"


def test_the_length_of_a_conversation_is_a_field_of_the_text(visit: Opener) -> None:
    page = visit("/learn#cache", drawing=False)
    rest(page)
    page.locator("#f-chat").focus()
    page.keyboard.press("Control+A")
    with following_lesson(page):
        page.keyboard.type("131072")
    rest(page)  # the answer is there before the page has taken it in
    expect(page.locator('#results [data-number="cache.chat"]').first).to_have_text("16 GiB")
    expect(page.locator("#f-chat")).to_be_focused()
    assert "chat=131072#cache" in page.url
    page.reload()
    rest(page)
    assert page.locator("#f-chat").input_value() == "131072"


def following_lesson(page: Page) -> Any:
    return page.expect_response(lambda r: "chat=131072" in r.url and r.status == 200)


def test_a_word_opens_and_closes_by_keyboard_and_mouse(visit: Opener) -> None:
    page = visit("/learn", drawing=False)
    word = page.locator('[popovertarget="meaning-wall"]')
    meaning = page.locator("#meaning-wall")
    expect(meaning).to_be_hidden()
    word.focus()
    page.keyboard.press("Enter")
    expect(meaning).to_be_visible()
    expect(meaning).to_contain_text("Below the ridge")
    page.keyboard.press("Escape")
    expect(meaning).to_be_hidden()
    expect(word).to_be_focused()
    word.hover()
    expect(meaning).to_be_visible()
    page.locator("h1").hover()
    expect(meaning).to_be_hidden()
    word.hover()
    expect(meaning).to_be_visible()
    word.click()
    page.locator("h1").hover()
    expect(meaning).to_be_visible()


def test_a_refused_change_keeps_what_was_typed_and_says_so(visit: Opener, watch: Watch) -> None:
    watch.allow(422)
    page = visit("/learn", drawing=False, **STILL)
    rest(page)
    shown = number(page, "decode.rate")
    with page.expect_response(lambda r: r.status == 422):
        page.locator("#f-prompt").fill("many")
    expect(page.locator("#msg-prompt")).to_contain_text("whole number")
    expect(page.locator("#stale")).to_contain_text("last input that was right")
    assert page.locator("#f-prompt").input_value() == "many"
    assert number(page, "decode.rate") == shown
    assert findings_in_both_themes(page) == {}


def test_axe_finds_nothing_in_either_theme(visit: Opener) -> None:
    page = visit("/learn", drawing=False, **STILL)
    rest(page)
    assert findings_in_both_themes(page) == {}


def test_a_phone_scrolls_one_way_and_fingers_meet_large_targets(visit: Opener, watch: Watch) -> None:
    watch.allow(422)
    page = visit("/learn", drawing=False, **PHONE)
    rest(page)
    expect(page.locator("#f-tp")).to_be_hidden()
    assert_fits(page, 320)
    page.evaluate(OPEN_ALL)
    assert_fits(page, 320)
    small = [item for item in page.evaluate(SMALL, FINGER_PX) if "button#" not in item]
    assert small == []
    page.goto("/learn?model=deepseek-v3&hw=h200-sxm&tp=8")
    rest(page)
    page.evaluate(OPEN_ALL)
    assert_fits(page, 320)
    page.goto("/learn?prompt=many")
    expect(page.locator("#f-prompt")).to_be_visible()
    assert_fits(page, 320)


def test_charts_follow_the_width_and_paper_has_them(visit: Opener) -> None:
    page = visit("/learn")
    rest(page)
    for across in (320, 480, 768, 1440, 2560):
        page.set_viewport_size({"width": across, "height": 900})
        fitted(page)
        assert_fits(page, across)
    page.emulate_media(media="print")
    for id_ in ("decode-title", "chart-roofline", "words-title"):
        expect(page.locator(f"#{id_}")).to_be_visible()
    for id_ in ("controls", "dial-chat", "meaning-wall"):
        expect(page.locator(f"#{id_}")).to_be_hidden()


def test_without_script_the_lesson_is_a_plain_get(visit: Opener) -> None:
    page = visit("/learn", java_script_enabled=False)
    for name in ("model", "hw", "prompt", "batch", "chat"):
        expect(page.locator(f"#f-{name}")).to_be_visible()
    expect(page.locator("[data-slider]:visible, [data-mirror]:visible, [data-picture]:visible")).to_have_count(0)
    page.locator("#f-batch").fill("8")
    page.locator("#f-hw").select_option("h200-sxm")
    page.get_by_role("button", name="Show").first.click()
    expect(page.locator("#f-batch")).to_have_value("8")
    assert number(page, "batching.users") == "8"
    assert number(page, "decode.rate") == "298.9 tokens/s"
    for chart in CHARTS:
        page.locator(f"#table-{chart} > summary").click()
        expect(page.locator(f"#table-{chart} tbody tr").first).to_be_visible()
    page.locator('[popovertarget="meaning-ridge"]').click()
    expect(page.locator("#meaning-ridge")).to_be_visible()
    page.get_by_role("navigation", name="Chapters").get_by_role("link", name="The cache").click()
    expect(page).to_have_url(re.compile("#cache$"))
