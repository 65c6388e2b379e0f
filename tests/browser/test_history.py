"""Back undoes, forward redoes, and an address alone brings the whole view back."""

import re

from playwright.sync_api import expect

from tests.browser.driving import CHARTS, Opener, assert_in_step, change, field, following, numbers, rest, traces


def test_back_undoes_and_everything_stays_alive(visit: Opener, server: str) -> None:
    page = visit()
    rest(page)
    first = page.url
    seen = [numbers(page)]
    for tokens in ("2000", "3000"):
        change(page, "prompt", tokens)
        seen.append(numbers(page))
    for tokens, before in (("2000", seen[1]), ("1000", seen[0])):
        page.go_back()
        expect(page).to_have_url(re.compile(f"prompt={tokens}&"))
        expect(field(page, "prompt")).to_have_value(tokens)
        rest(page)
        assert numbers(page) == before
        assert_in_step(page, server)
    assert page.url == first
    page.go_forward()
    expect(field(page, "prompt")).to_have_value("2000")
    rest(page)
    assert numbers(page) == seen[1]
    # The inputs, pickers, sliders, theme and charts work as before.
    box = page.get_by_role("combobox", name="Accelerator")
    expect(box).to_have_count(1)
    box.click()
    box.fill("h200 sxm")
    with following(page):
        page.keyboard.press("Enter")
    assert_in_step(page, server)
    slider = page.locator("[data-slider=prompt]")
    slider.focus()
    with following(page):
        slider.press("PageUp")
    assert_in_step(page, server)
    page.locator("#theme").click()
    expect(page.locator("#theme")).to_contain_text("light")
    expect(page.locator("#plot-roofline .main-svg").first).to_be_visible()
    expect(page.get_by_role("button", name="Copy link")).to_be_visible()


def test_the_address_brings_the_view_back_elsewhere(visit: Opener) -> None:
    page = visit()
    rest(page)
    change(page, "prompt", "12345")
    with following(page):
        field(page, "kv").select_option("fp8")
    change(page, "batch", "")
    elsewhere = visit(page.url, drawing=False)
    rest(elsewhere)
    expect(elsewhere.locator(".main-svg *")).to_have_count(0)
    assert elsewhere.url == page.url
    assert numbers(elsewhere) == numbers(page)
    for chart in CHARTS:
        assert traces(elsewhere, chart) == traces(page, chart)  # the stand-in is given what the library draws
    for name in ("prompt", "kv", "batch", "model", "hw"):
        assert field(elsewhere, name).input_value() == field(page, name).input_value()
