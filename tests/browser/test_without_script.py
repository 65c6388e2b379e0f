"""Without script the form is a plain form, the pickers are selects, and the tables hold the numbers."""

from playwright.sync_api import expect

from tests.browser.driving import CHARTS, Opener, answer_of, field
from tests.browser.watching import Watch


def test_the_form_is_a_plain_get(visit: Opener, server: str) -> None:
    page = visit(java_script_enabled=False)
    for name in ("model", "hw"):
        expect(field(page, name)).to_be_visible()
    expect(page.get_by_role("combobox")).to_have_count(page.locator("select:visible").count())
    expect(page.locator("[data-slider]:visible, [data-picture]:visible, [data-copy-link]:visible")).to_have_count(0)
    expect(page.locator("#theme")).to_be_hidden()
    field(page, "prompt").fill("4000")
    field(page, "hw").select_option("h200-sxm")
    page.get_by_role("button", name="Calculate").click()
    expect(field(page, "prompt")).to_have_value("4000")
    expect(field(page, "hw")).to_have_value("h200-sxm")
    document = answer_of(server, page.url)
    assert document["scenario"]["workload"]["prompt_tokens"] == 4000
    expect(page.locator("#metric-room")).to_contain_text(f"{document['memory']['max_concurrency']:,} sequences")
    for chart in CHARTS:
        page.locator(f"#table-{chart} > summary").click()
        expect(page.locator(f"#table-{chart} tbody tr").first).to_be_visible()
        expect(page.locator(f"#chart-{chart}")).to_contain_text("the table has its numbers")
    page.locator("#working-memory > summary").click()
    expect(page.locator("#working-memory table").first).to_be_visible()


def test_a_wrong_input_is_told(visit: Opener, watch: Watch) -> None:
    watch.allow(422)
    page = visit(java_script_enabled=False)
    field(page, "prompt").fill("many")
    page.get_by_role("button", name="Calculate").click()
    expect(page.locator("#msg-prompt")).to_contain_text("whole number")
    expect(field(page, "prompt")).to_have_value("many")
    page.locator("#results").get_by_role("link").first.click()
    expect(field(page, "prompt")).to_be_focused()


def test_a_link_is_saved(visit: Opener) -> None:
    page = visit(java_script_enabled=False)
    page.get_by_label("Title").fill("Plain")
    page.get_by_role("button", name="Save link").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Plain")
    expect(page.locator("#edit-token")).not_to_be_empty()


def test_the_live_page_shows_what_there_is(visit: Opener) -> None:
    page = visit("/live", java_script_enabled=False)
    expect(page.locator("#source-host")).to_be_visible()
    expect(page.locator("#not-here")).to_contain_text("No driver")
