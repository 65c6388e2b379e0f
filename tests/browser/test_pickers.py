"""Search as you type, by mouse and by keyboard, over a select that stays the truth."""

import pytest
from playwright.sync_api import Page, expect

from tests.browser.driving import Opener, assert_in_step, field, following, numbers, rest
from tests.browser.watching import Watch


@pytest.fixture
def page(visit: Opener) -> Page:
    opened = visit(drawing=False)
    rest(opened)
    return opened


def test_by_mouse(page: Page, server: str) -> None:
    box, options = page.get_by_role("combobox", name="Accelerator"), page.locator("#f-hw-list").get_by_role("option")
    expect(field(page, "hw")).to_be_hidden()
    box.click()
    expect(box).to_have_attribute("aria-expanded", "true")
    assert options.count() > 80
    expect(page.locator("#f-hw-list [aria-selected=true]")).to_have_count(1)
    box.fill("h200")
    assert 0 < options.count() < 8
    with following(page):
        options.filter(has_text="H200 SXM").first.click()
    expect(box).to_have_attribute("aria-expanded", "false")
    expect(box).to_have_value(field(page, "hw").locator("option:checked").inner_text())
    expect(field(page, "hw")).to_have_value("h200-sxm")
    assert "hw=h200-sxm" in page.url
    assert_in_step(page, server)


def test_by_keyboard(page: Page, server: str) -> None:
    box, list_ = page.get_by_role("combobox", name="Model"), page.locator("#f-model-list")
    box.focus()
    page.keyboard.press("ArrowDown")
    expect(list_).to_be_visible()
    page.keyboard.press("Escape")
    expect(list_).to_be_hidden()
    expect(field(page, "model")).to_have_value("llama-3.1-8b")
    page.keyboard.press("Control+A")
    page.keyboard.type("qwen 14b")
    first = box.get_attribute("aria-activedescendant")
    assert first
    page.keyboard.press("ArrowDown")
    active = box.get_attribute("aria-activedescendant")
    assert active != first
    wanted = page.locator(f"#{active}").get_attribute("data-value")
    with following(page):
        page.keyboard.press("Enter")
    expect(field(page, "model")).to_have_value(wanted or "-")
    expect(box).to_be_focused()
    assert f"model={wanted}" in page.url
    assert_in_step(page, server)


def test_a_search_without_a_hit_and_one_given_up_change_nothing(page: Page) -> None:
    before, address = numbers(page), page.url
    box = page.get_by_role("combobox", name="Model")
    shown = box.input_value()
    box.click()
    box.fill("no such model")
    expect(page.locator("#f-model-list")).to_contain_text("Nothing by that name")
    page.keyboard.press("Enter")
    expect(box).to_have_value(shown)
    box.fill("qwen")
    page.keyboard.press("Tab")
    expect(box).to_have_value(shown)
    page.wait_for_timeout(400)
    assert page.url == address
    assert numbers(page) == before
    expect(field(page, "model")).to_have_value("llama-3.1-8b")


def test_the_custom_model_opens_its_fields(page: Page, server: str, watch: Watch) -> None:
    watch.allow(422)
    expect(field(page, "config")).to_be_hidden()
    box = page.get_by_role("combobox", name="Model")
    with page.expect_response(lambda response: response.status == 422):
        box.click()
        box.fill("config.json")
        page.keyboard.press("Enter")
    expect(field(page, "config")).to_be_visible()
    config = (
        '{"model_type": "llama", "hidden_size": 4096, "num_hidden_layers": 32, "num_attention_heads": 32,'
        '"num_key_value_heads": 8, "intermediate_size": 14336, "vocab_size": 128256}'
    )
    with following(page):
        field(page, "config").fill(config)
    expect(page.locator("#msg-config")).to_be_empty()
    expect(page.locator("#msg-model")).to_be_empty()
    assert_in_step(page, server)
    page.reload()
    rest(page)
    assert_in_step(page, server)
    expect(field(page, "config")).to_be_visible()
