"""The live page in a browser: calm, connected, and kept fresh."""

import re

from playwright.sync_api import Route, expect

from tests.browser.driving import Opener


def test_it_is_calm_and_the_stream_connects(visit: Opener) -> None:
    page = visit("/readyz")
    with page.expect_response(re.compile("/live/stream$")) as caught:
        page.goto("/live")
    assert caught.value.status == 200
    assert caught.value.headers["content-type"].startswith("text/event-stream")
    source = page.locator("#source-1")
    expect(source).to_be_visible()
    taken = source.get_by_text(re.compile(r"at \d\d:\d\d:\d\d UTC"))
    expect(taken).to_have_count(1)
    first = taken.inner_text()
    expect(taken).not_to_have_text(first)
    expect(page.locator("#source-1")).to_have_count(1)
    expect(page.get_by_role("alert")).to_have_count(0)


def test_the_stream_connects_however_late_its_script_comes(visit: Opener) -> None:
    page = visit("/readyz")

    def late(route: Route) -> None:
        page.wait_for_timeout(600)
        route.continue_()

    page.route(re.compile("hx-sse"), late)
    with page.expect_request(re.compile("/live/stream$")):
        page.goto("/live")


def test_leaving_the_page_ends_the_stream_in_silence(visit: Opener) -> None:
    page = visit("/live")
    expect(page.locator("#source-1")).to_be_visible()
    page.get_by_role("link", name="Workbench").first.click()
    expect(page.locator("#metric-memory")).to_be_visible()
    page.go_back()
    expect(page.locator("#source-1")).to_be_visible()
