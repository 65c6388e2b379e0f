"""Logs and commands in a browser: a dropped log is read at once, every text can be copied, and phones have room."""

import re

import pytest
from playwright.sync_api import Page, expect

from tests.browser.axe import STILL, findings_in_both_themes
from tests.browser.driving import Opener, field
from tests.browser.test_layout import FINGER_PX, OPEN_ALL, PHONE, SMALL, assert_fits
from tests.browser.watching import Watch
from tests.engine_io.logs.logs import VLLM_CONSUMED

LAUNCH = "/launch?model=llama-3.1-8b&hw=h100-sxm-80gb"
DROP = """(text) => {
  const dataTransfer = new DataTransfer();
  dataTransfer.items.add(new File([text], "start.log", { type: "text/plain" }));
  const event = new DragEvent("drop", { dataTransfer, bubbles: true, cancelable: true });
  document.getElementById("paste").dispatchEvent(event);
}"""


def read_log(page: Page) -> None:
    field(page, "text").fill(VLLM_CONSUMED)
    page.get_by_role("combobox", name="Accelerator").fill("H100 SXM")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    page.get_by_role("button", name="Read it").click()
    expect(page.locator("#comparison-title")).to_be_visible()


def test_a_dropped_log_is_read_and_asks_for_its_card(visit: Opener, watch: Watch) -> None:
    page = visit("/paste")
    page.evaluate(DROP, VLLM_CONSUMED)
    expect(page.locator("#told-title")).to_contain_text("A start-up log of vLLM 0.29.0")
    expect(field(page, "text")).to_have_value(re.compile("Initializing a V1 LLM engine"))


def test_a_log_leads_to_the_workbench_and_to_a_saved_link(visit: Opener) -> None:
    page = visit("/paste")
    read_log(page)
    page.get_by_label("Title").fill("What it logged")
    page.get_by_role("button", name="Save link").click()
    expect(page.get_by_role("heading", name="What it logged")).to_be_visible()
    page.go_back()
    page.get_by_role("link", name="Open in the workbench").click()
    expect(page.locator("#verdict")).to_be_visible()


def test_a_command_is_copied_and_pasted_back(visit: Opener) -> None:
    page = visit(LAUNCH, permissions=["clipboard-read", "clipboard-write"])
    page.locator("section[aria-labelledby=launch-shell]").get_by_role("button", name="Copy").click()
    copied: str = page.evaluate("navigator.clipboard.readText()")
    assert copied.startswith("# Tokenroof: ")
    page.goto("/paste")
    field(page, "text").fill(copied)
    page.get_by_role("button", name="Read it").click()
    expect(page.locator("#told-title")).to_contain_text("vLLM")
    link = page.get_by_role("link", name="Open in the workbench").get_attribute("href") or ""
    assert "model=llama-3.1-8b" in link
    assert "hw=h100-sxm-80gb" in link


def test_nothing_stands_in_the_way_of_anybody(visit: Opener) -> None:
    page = visit("/paste", **STILL)
    assert findings_in_both_themes(page) == {}
    read_log(page)
    assert findings_in_both_themes(page) == {}
    page.goto(LAUNCH)
    assert findings_in_both_themes(page) == {}


@pytest.mark.parametrize("path", ["/paste", LAUNCH])
def test_a_phone_has_room(visit: Opener, path: str) -> None:
    page = visit(path, **PHONE)
    page.evaluate(OPEN_ALL)
    assert_fits(page, 320)
    assert page.evaluate(SMALL, FINGER_PX) == []
    if path == "/paste":
        read_log(page)
        page.evaluate(OPEN_ALL)
        assert_fits(page, 320)
