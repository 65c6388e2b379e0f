"""Import and editors in a browser: numbers follow, groups come and go by keyboard, a dropped file is read."""

import json
import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from tests.browser.axe import STILL, findings_in_both_themes
from tests.browser.driving import Opener, field
from tests.browser.test_layout import FINGER_PX, OPEN_ALL, PHONE, SMALL, assert_fits
from tests.browser.watching import Watch
from tests.features.importing.test_import_api import LLAMA

EDITOR, CARDS, IMPORT = "/models/custom?from=gemma-3-27b", "/hardware/custom", "/import"
DROP = """([text, name]) => {
  const dataTransfer = new DataTransfer();
  dataTransfer.items.add(new File([text], name, { type: "application/json" }));
  const event = new DragEvent("drop", { dataTransfer, bubbles: true, cancelable: true });
  document.getElementById("import").dispatchEvent(event);
}"""


def imported(page: Page) -> None:
    field(page, "config").fill(json.dumps(LLAMA))
    page.get_by_role("button", name="Read it").click()
    expect(page.locator("#read-title")).to_be_visible()


def test_the_numbers_follow_and_a_refusal_keeps_them(visit: Opener, watch: Watch) -> None:
    watch.allow(422)
    page = visit(EDITOR)
    before = page.locator("#verdict").text_content()
    field(page, "hidden_size").fill("4096")
    expect(page.locator("#verdict")).not_to_have_text(before or "")
    expect(page).to_have_url(re.compile("arch="))
    after = page.locator("#verdict").text_content()
    field(page, "hidden_size").fill("many")
    expect(page.locator("#msg-hidden_size")).to_contain_text("whole number")
    expect(field(page, "hidden_size")).to_have_attribute("aria-invalid", "true")
    expect(page.locator("#stale")).to_contain_text("last input that was right")
    expect(page.locator("#verdict")).to_have_text(after or "")
    field(page, "hidden_size").fill("4096")
    expect(page.locator("#msg-hidden_size")).to_be_empty()
    expect(page.locator("#stale")).to_be_empty()


def test_groups_and_kinds_by_keyboard(visit: Opener, watch: Watch) -> None:
    watch.allow(422)
    page = visit(EDITOR)
    page.get_by_role("button", name="Add a group").press("Enter")
    expect(page.locator("#f-layers-2-count")).to_have_value("1")
    expect(field(page, "order")).to_have_value("aaaaab*10 aac")
    field(page, "layers-2-mixer-kind").focus()
    field(page, "layers-2-mixer-kind").select_option("mamba2")
    expect(page.locator("#f-layers-2-mixer-state_size")).not_to_have_value("")
    expect(field(page, "layers-2-mixer-kind")).to_be_focused()
    page.get_by_role("button", name="Remove group c").press("Enter")
    expect(page.locator("#group-layers-2")).to_have_count(0)
    expect(field(page, "order")).to_have_value("aaaaab*10 aa")
    page.get_by_role("link", name="Use it in the workbench").press("Enter")
    expect(page.locator("#verdict")).to_be_visible()


def test_the_editor_needs_no_script(visit: Opener, watch: Watch) -> None:
    watch.allow(422)
    page = visit(EDITOR, java_script_enabled=False)
    page.get_by_role("button", name="Add a group").click()
    expect(page.locator("#f-layers-2-count")).to_have_value("1")
    field(page, "layers-2-mixer-kind").select_option("lightning")
    page.locator("#group-layers-2").get_by_role("button", name="Show its fields").first.click()
    expect(page.locator("#f-layers-2-mixer-heads")).not_to_have_value("")
    field(page, "vocab_size").fill("")
    page.get_by_role("button", name="Calculate").click()
    expect(page.locator("#msg-vocab_size")).to_have_text("This field is needed.")
    field(page, "vocab_size").fill("1000")
    page.get_by_role("button", name="Calculate").click()
    expect(page.locator("#numbers-title")).to_be_visible()


def test_a_dropped_file_is_read(visit: Opener) -> None:
    page = visit(IMPORT)
    page.evaluate(DROP, [json.dumps(LLAMA), "config.json"])
    expect(page.locator("#read-title")).to_be_visible()
    expect(page.locator("#fields-title")).to_be_visible()


@pytest.mark.parametrize("scripted", [True, False])
def test_a_chosen_file_is_read(visit: Opener, scripted: bool) -> None:
    page = visit(IMPORT, java_script_enabled=scripted)
    file = {"name": "config.json", "mimeType": "application/json", "buffer": json.dumps(LLAMA).encode()}
    page.locator("#f-config_file").set_input_files(file)  # type: ignore[arg-type]
    if not scripted:
        page.get_by_role("button", name="Read it").click()
    expect(page.locator("#read-title")).to_be_visible()
    page.get_by_role("link", name="Edit it").click()
    expect(page.locator("#f-layers-0-mixer-n_kv_heads")).to_have_value("8")


def test_an_unknown_family_is_read_once_it_is_chosen(visit: Opener, watch: Watch) -> None:
    watch.allow(422)
    page = visit(IMPORT, **STILL)
    field(page, "config").fill(json.dumps({**LLAMA, "model_type": "wonder"}))
    page.get_by_role("button", name="Read it").click()
    assert findings_in_both_themes(page) == {}
    page.get_by_role("button", name="Read as llama").click()
    expect(page.locator("#read-title")).to_be_visible()


def test_the_figures_of_a_card_follow(visit: Opener, watch: Watch) -> None:
    watch.allow(422)
    page = visit(CARDS)
    field(page, "hw_mem").fill("160")
    expect(page.locator("#verdict")).to_contain_text("160 GB")
    expect(page).to_have_url(re.compile("hw_mem=160"))
    field(page, "hw_bw").fill("")
    expect(page.locator("#msg-hw_bw")).not_to_be_empty()
    field(page, "hw_bw").fill("1000")
    expect(page.locator("#verdict")).to_contain_text("160 ms")


def pages(page: Page) -> Iterator[str]:
    """One page after the other, the last with what was read into it."""
    for path in (EDITOR, "/models/custom?from=deepseek-v3.2", CARDS, IMPORT):
        page.goto(path)
        if path == IMPORT:
            imported(page)
        yield path


def test_axe_finds_nothing(visit: Opener) -> None:
    page = visit("/readyz", **STILL)
    for path in pages(page):
        assert findings_in_both_themes(page) == {}, path


def test_a_phone_scrolls_one_way_and_holds_a_finger(visit: Opener) -> None:
    page = visit("/readyz", **PHONE)
    for path in pages(page):
        page.evaluate(OPEN_ALL)
        assert_fits(page, 320)
        assert page.evaluate(SMALL, FINGER_PX) == [], path
