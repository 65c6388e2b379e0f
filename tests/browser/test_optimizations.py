"""The optimizations in a browser: charts drawn under the policy, links and keys, a phone, both themes."""

import re

from playwright.sync_api import expect

from app.calc.optimize.registry import SPECS
from tests.browser.axe import STILL, findings, findings_in_both_themes
from tests.browser.drawing import drawn
from tests.browser.driving import Opener
from tests.browser.test_layout import PHONE, assert_phones_have_room
from tests.browser.watching import Watch

TARGETS = "/optimizations?model=llama-3.1-8b&hw=h100-sxm-80gb&ttft=2&tpot=0.05"
REFUSED = "/optimizations?model=llama-3.1-8b&hw=h100-sxm-80gb&static=1&prompt=1&out=1"
CHARTS = (*(f"door-{spec.id}" for spec in SPECS), "goodput")


def test_links_lead_there_and_back(visit: Opener) -> None:
    page = visit(TARGETS, drawing=False)
    # By keyboard: from the overview to a card, into the workbench, and back to the optimizations of what stands there.
    page.locator(".overview a", has_text="Quantization").press("Enter")
    expect(page).to_have_url(re.compile(r"#quantization$"))
    page.locator("#quantization .deed a").press("Enter")
    expect(page).to_have_url(re.compile(r"w=fp8.*undo="))
    expect(page.locator("#plot-goodput .main-svg").first).to_be_attached()
    page.get_by_role("link", name="Ten optimizations").press("Enter")
    expect(page.locator("#quantization .use-state")).to_have_text("used here")
    page.get_by_role("link", name="GiB").press("Enter")
    expect(page.locator("#quantization .figures-table")).to_contain_text("GiB")
    page.locator("#table-door-paging > summary").press("Enter")
    expect(page.locator("#table-door-paging table")).to_be_visible()


def test_it_is_read_without_script(visit: Opener) -> None:
    page = visit("/optimizations", java_script_enabled=False)
    page.locator("#working-paging > summary").click()
    expect(page.locator("#working-paging table").first).to_be_visible()
    page.get_by_role("link", name="Ask for a first token within 2 s").click()
    expect(page.locator("#goodput dl")).to_contain_text("requests/s")
    page.get_by_role("link", name="Back to the workbench").click()
    expect(page.locator("#f-ttft")).to_have_value("2")


def test_charts_are_drawn_and_a_phone_scrolls_one_way(visit: Opener) -> None:
    page = visit("/readyz", **PHONE)
    assert_phones_have_room(page, TARGETS)
    drawn(page, CHARTS)


def test_axe_finds_nothing(visit: Opener, watch: Watch) -> None:
    watch.allow(422)
    page = visit(TARGETS, drawing=False, **STILL)
    assert findings_in_both_themes(page) == {}
    page.goto(REFUSED)
    expect(page.locator("#prefix_caching .sentence")).to_contain_text("Nothing to compare here")
    assert findings(page) == []
    page.goto("/optimizations?model=x&hw=y&prompt=many")
    assert findings(page) == []
