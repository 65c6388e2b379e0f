"""Numbers, charts and address follow the inputs, at once and to the last one."""

import re

import pytest
from playwright.sync_api import Page, Route, expect

from tests.browser.driving import (
    Opener,
    answer_of,
    assert_in_step,
    change,
    field,
    following,
    is_partial,
    numbers,
    rest,
    traces,
)
from tests.browser.watching import Watch


@pytest.fixture
def page(visit: Opener) -> Page:
    opened = visit(drawing=False)
    rest(opened)
    return opened


def test_numbers_and_charts_follow_the_inputs(page: Page, server: str) -> None:
    assert "model=llama-3.1-8b" in page.url
    assert "compute=bf16" in page.url
    assert_in_step(page, server)
    before = numbers(page)
    change(page, "prompt", "4000")
    assert numbers(page)["ttft"] != before["ttft"]
    assert "prompt=4000" in page.url
    assert_in_step(page, server)
    for name, value in (("w", "fp8"), ("kv", "fp8"), ("compute", "bf16")):
        with following(page):
            field(page, name).select_option(value)
    assert_in_step(page, server)
    assert answer_of(server, page.url)["scenario"]["precision"] == {
        "weights": "fp8",
        "kv_cache": "fp8",
        "compute": "bf16",
    }
    change(page, "batch", "")
    assert answer_of(server, page.url)["scenario"]["workload"]["concurrency"] is None
    assert_in_step(page, server)
    expect(field(page, "batch")).to_have_value("")


def test_a_slider_moves_its_box_and_the_numbers(page: Page, server: str) -> None:
    slider = page.locator("[data-slider=prompt]")
    expect(slider).to_be_visible()
    before = field(page, "prompt").input_value()
    slider.focus()
    with following(page):
        slider.press("PageUp")
    after = field(page, "prompt").input_value()
    assert int(after) > int(before)
    assert slider.get_attribute("aria-valuetext") == after
    assert_in_step(page, server)
    change(page, "prompt", "64")
    low = float(slider.input_value())
    change(page, "prompt", "65536")
    assert float(slider.input_value()) > low


def test_both_ends_of_each_slider_are_answered_and_steps_are_not_lost(page: Page, server: str) -> None:
    page.evaluate("for (const details of document.querySelectorAll('#scenario details')) details.open = true")
    for name in ("hit", "batch", "out", "prompt"):
        slider = page.locator(f"[data-slider={name}]")
        slider.focus()
        for key, end in (("End", "data-high"), ("Home", "data-low")):
            with following(page):
                slider.press(key)
            assert float(field(page, name).input_value()) == float(slider.get_attribute(end) or "nan")
    assert_in_step(page, server)
    change(page, "batch", "10")
    page.locator("[data-slider=batch]").focus()
    with following(page):
        for _ in range(40):
            page.keyboard.press("ArrowRight")
    assert int(field(page, "batch").input_value()) > 10


def test_the_last_of_twenty_quick_changes_stands(page: Page, server: str) -> None:
    box = field(page, "prompt")
    for tokens in range(1000, 3000, 100):
        box.fill(str(tokens))
        page.wait_for_timeout(15)
    expect(page).to_have_url(re.compile("prompt=2900"))
    rest(page)
    page.wait_for_timeout(400)
    assert_in_step(page, server)
    change(page, "prompt", "3100")
    assert_in_step(page, server)


def test_slow_answers_do_not_overtake(page: Page, server: str) -> None:
    """The first answer is held back until the second has come."""
    held: list[Route] = []
    page.route(re.compile("prompt=2000"), lambda route: held.append(route), times=1)
    with page.expect_request(re.compile("prompt=2000")):
        field(page, "prompt").fill("2000")
    change(page, "prompt", "5000")
    held[0].continue_()
    held[0].request.response()  # none, where the page has given it up
    page.wait_for_timeout(200)
    assert "prompt=5000" in page.url
    assert_in_step(page, server)


def test_an_invalid_input_is_told_and_mended(page: Page, server: str, watch: Watch) -> None:
    watch.allow(422)
    address, before, fresh = page.url, numbers(page), page.locator("#metric-memory").screenshot()
    change(page, "prompt", "many", 422)
    box, message, stale = field(page, "prompt"), page.locator("#msg-prompt"), page.locator("#stale")
    expect(message).to_contain_text("whole number")
    expect(box).to_have_value("many")
    expect(box).to_have_attribute("aria-invalid", "true")
    expect(box).to_be_focused()
    expect(stale).not_to_be_empty()
    assert page.url == address
    assert numbers(page) == before
    assert page.locator("#metric-memory").screenshot() != fresh  # set back, for it belongs to an earlier input
    expect(page.locator("#status")).to_contain_text("last input that was right")
    change(page, "out", "600", 422)
    expect(message).to_contain_text("whole number")
    change(page, "prompt", "2000")
    expect(message).to_be_empty()
    expect(stale).to_be_empty()
    expect(box).not_to_have_attribute("aria-invalid", "true")
    assert "out=600" in page.url
    assert_in_step(page, server)


def test_a_message_of_a_hidden_field_is_seen(page: Page, watch: Watch) -> None:
    """Choosing a custom accelerator asks for its figures where they are to be typed."""
    watch.allow(422)
    with following(page, 422):
        page.locator("#f-hw").evaluate(
            "(s) => { s.value = 'custom'; s.dispatchEvent(new Event('input', {bubbles: true})) }"
        )
    expect(page.locator("#f-hw_mem")).to_be_visible()
    expect(page.locator("#msg-hw_mem, #msg-hw").filter(has_text=re.compile("."))).to_be_visible()
    for name, value in (("hw_mem", "80"), ("hw_bw", "3350")):
        change(page, name, value, 422)
    change(page, "hw_bf16", "989")
    expect(page.locator("#msg-hw_bf16")).to_be_empty()


def test_typing_keeps_focus_caret_and_what_was_opened(page: Page) -> None:
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url) if is_partial(request) else None)
    page.locator("#working-memory > summary").click()
    page.locator("#table-roofline > summary").click()
    box = field(page, "prompt")
    box.focus()
    with following(page):
        box.press("End")
        box.press_sequentially("0")
    expect(box).to_be_focused()
    assert box.evaluate("(node) => node.selectionStart") == 5
    assert box.input_value() == "10000"
    for id_ in ("working-memory", "table-roofline"):
        expect(page.locator(f"#{id_}")).to_have_attribute("open", "")
    expect(page.locator("#status")).to_have_text(page.locator("#verdict").text_content() or "-")
    assert len(asked) == 1


def test_links_outside_the_results_follow_too(page: Page, server: str) -> None:
    """The page's JSON twin is that of the numbers on it."""
    change(page, "prompt", "2000")
    shown = answer_of(server, page.url)
    for link in page.get_by_role("link", name=re.compile("JSON$")).all():
        href = link.get_attribute("href") or ""
        if href.startswith("/api/v1/evaluate"):
            assert answer_of(server, href) == shown, f"{link.text_content()} is of an earlier input"
    twin = page.locator("link[rel=alternate]").get_attribute("href") or ""
    assert answer_of(server, twin) == shown


def test_units_are_kept_by_later_changes(page: Page, server: str) -> None:
    page.get_by_role("link", name="GiB", exact=True).click()
    rest(page)
    assert "GiB" in numbers(page)["memory"]
    change(page, "prompt", "2000")
    assert "GiB" in numbers(page)["memory"]
    assert_in_step(page, server)
    page.get_by_role("link", name="GB", exact=True).click()
    rest(page)
    assert "GiB" not in numbers(page)["memory"]
    assert "prompt=2000" in page.url


def test_a_lever_is_taken_and_undone_and_a_preset_shown(page: Page, server: str) -> None:
    before = numbers(page)
    page.get_by_role("region", name="What would help").get_by_role("link").first.click()
    rest(page)
    assert numbers(page) != before
    assert_in_step(page, server)
    page.go_back()
    rest(page)
    assert numbers(page) == before
    page.get_by_role("link", name=re.compile("^Home user")).click()
    rest(page)
    assert_in_step(page, server)
    assert any(trace["name"] == "Decode at 1" for trace in traces(page, "roofline"))
