"""What makes it fit and back again, and the way from a part of the memory to the field that sets it."""

import re

from playwright.sync_api import expect

from tests.browser.driving import Opener, assert_in_step, change, field, following, rest
from tests.browser.watching import Watch

SHORT = "/?model=llama-3.1-70b&hw=h100-sxm-80gb"


def test_a_lever_makes_it_fit_and_undo_takes_it_back(visit: Opener, server: str) -> None:
    page = visit(SHORT, drawing=False)
    rest(page)
    before = page.locator("#results").get_attribute("data-address")
    expect(page.get_by_role("heading", name="What would make it fit")).to_be_visible()
    page.locator(".levers li[data-state=fits] a").first.click()
    rest(page)
    expect(page.locator("#verdict-title")).to_contain_text("Fits")
    assert_in_step(page, server)
    undo = page.get_by_role("link", name="Undo: back to")
    undo.click()
    rest(page)
    expect(page.locator("#verdict-title")).to_contain_text("Does not fit")
    assert page.locator("#results").get_attribute("data-address") == before
    expect(undo).to_have_count(0)
    page.go_back()
    expect(page.locator("#verdict-title")).to_contain_text("Fits")


def test_undo_is_offered_until_the_next_change(visit: Opener) -> None:
    page = visit(SHORT, drawing=False)
    rest(page)
    page.locator(".levers li a").first.click()
    rest(page)
    expect(page.get_by_role("link", name="Undo: back to")).to_be_visible()
    change(page, "prompt", "2000")
    expect(page.get_by_role("link", name="Undo: back to")).to_have_count(0)
    assert "undo" not in page.url


def test_it_works_without_script(visit: Opener) -> None:
    page = visit(SHORT, java_script_enabled=False)
    page.locator(".levers li[data-state=fits] a").first.click()
    expect(page.locator("#verdict-title")).to_contain_text("Fits")
    page.get_by_role("link", name="Undo: back to").click()
    expect(page.locator("#verdict-title")).to_contain_text("Does not fit")


def test_a_part_of_the_memory_leads_to_its_field_and_a_size_is_typed_with_its_unit(
    visit: Opener, watch: Watch, server: str
) -> None:
    watch.allow(422)
    page = visit(drawing=False)
    rest(page)
    expect(field(page, "graphs")).to_be_hidden()
    page.get_by_role("link", name="Set CUDA graphs").click()
    expect(field(page, "graphs")).to_be_focused()
    change(page, "graphs", "1.5 GiB")
    expect(page.locator("#division")).to_contain_text("given")
    assert f"graphs={int(1.5 * 2**30)}" in page.url
    assert_in_step(page, server)
    change(page, "graphs", "1.5 Gobs", 422)
    expect(page.locator("#msg-graphs")).to_contain_text("46.8 GiB")


def test_an_engines_defaults_follow_the_engine(visit: Opener, server: str) -> None:
    page = visit(drawing=False)
    rest(page)
    expect(page.locator("#engine-now")).to_contain_text("share 0.9,")
    expect(field(page, "under")).to_be_hidden()
    with following(page):
        field(page, "engine").select_option("sglang")
    expect(page.locator("#engine-now")).not_to_contain_text("share 0.9,")
    assert not re.search("util=0.9(&|$)", page.url)
    assert_in_step(page, server)
    with following(page):
        field(page, "engine").select_option("llm-d")
    expect(field(page, "under")).to_be_visible()
    with following(page):
        field(page, "under").select_option("sglang")
    expect(page.locator("#division .lead")).to_contain_text("llm-d with SGLang underneath")
    with following(page):
        field(page, "engine").select_option("vllm")
    assert_in_step(page, server)
