"""The live page in a browser: calm, connected, kept fresh, held still when asked to, and honest about its age."""

import re
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, Route, expect

from tests.browser.axe import findings_in_both_themes
from tests.browser.driving import Opener
from tests.browser.watching import VIOLATION_LISTENER, Watch
from tests.running import running

TAKEN = re.compile(r"read at \d\d:\d\d:\d\d UTC")
TRACE = "document.getElementById('plot-live-roofline')?.data?.find(({name}) => name === 'main, %s')"
DOT, TAIL = f"{TRACE % 'measured now'}?.y[0] ?? null", f"{TRACE % 'last minute'}?.y.length ?? 0"
SIZES = ((1440, 900), (390, 844))


def taken(page: Page) -> Any:
    return page.locator("#source-host").get_by_text(TAKEN)


def test_it_is_calm_connects_and_stays_fresh(visit: Opener) -> None:
    page = visit("/readyz")
    with page.expect_response(re.compile("/live/stream$")) as caught:
        page.goto("/live")
    assert caught.value.status == 200
    assert caught.value.headers["content-type"].startswith("text/event-stream")
    first = taken(page).inner_text()
    expect(taken(page)).not_to_have_text(first)
    expect(page.locator("#live-state")).to_have_text("live")
    expect(page.locator("#source-host")).to_have_count(1)
    expect(page.get_by_role("alert")).to_have_count(0)
    assert findings_in_both_themes(page) == {}
    for width, height in SIZES:
        page.set_viewport_size({"width": width, "height": height})
        assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_pause_holds_the_page_still_until_it_is_resumed(visit: Opener) -> None:
    page = visit("/live")
    expect(taken(page)).to_have_count(1)
    button = page.get_by_role("button", name="Pause")
    button.click()
    expect(page.locator("#live-state")).to_have_text("paused")
    held = taken(page).inner_text()
    page.wait_for_timeout(1500)
    assert taken(page).inner_text() == held
    page.get_by_role("button", name="Resume").click()
    expect(taken(page)).not_to_have_text(held)
    expect(page.locator("#live-state")).to_have_text("live")


def test_a_stream_that_falls_silent_is_called_stale(visit: Opener) -> None:
    page = visit("/readyz")
    page.route(re.compile("/live/stream"), lambda route: route.fulfill(content_type="text/event-stream", body=": \n\n"))
    page.goto("/live")
    expect(page.locator("#live-state")).to_have_text(re.compile("stale for [3-9] s"))


def test_the_stream_connects_however_late_its_script_comes(visit: Opener) -> None:
    page = visit("/readyz")

    def late(route: Route) -> None:
        page.wait_for_timeout(600)
        route.continue_()

    page.route(re.compile("hx-sse"), late)
    with page.expect_request(re.compile("/live/stream$")):
        page.goto("/live")


def becomes(page: Page, expression: str, wanted: Callable[[Any], bool]) -> Any:
    """The value of an expression once it is as wanted. Playwright's own waiting would meet the policy."""
    for _ in range(100):
        value = page.evaluate(expression)
        if wanted(value):
            return value
        page.wait_for_timeout(100)
    raise AssertionError(f"{expression} stays {value}")


class Metrics(BaseHTTPRequestHandler):
    """A vLLM whose counters run with the number of times that it was asked."""

    asked = 0

    def do_GET(self) -> None:
        Metrics.asked += 1
        tokens = 3_000 * Metrics.asked * (2 + Metrics.asked % 2)
        labels = 'model_name="meta-llama/Llama-3.1-8B-Instruct"'
        lines = [
            "# TYPE vllm:num_requests_running gauge",
            f"vllm:num_requests_running{{{labels}}} 12",
            "# TYPE vllm:generation_tokens counter",
            f"vllm:generation_tokens_total{{{labels}}} {tokens}",
            "# TYPE vllm:prompt_tokens counter",
            f"vllm:prompt_tokens_total{{{labels}}} {4 * tokens}",
        ]
        body = ("\n".join(lines) + "\n").encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/plain; version=0.0.4")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args: object) -> None:
        """Nothing."""


@pytest.fixture
def beside_a_server(tmp_path: Path, assets_dir: Path) -> Iterator[str]:
    """The address of a Tokenroof that reads a server."""
    with ThreadingHTTPServer(("127.0.0.1", 0), Metrics) as metrics:
        Thread(target=metrics.serve_forever, daemon=True).start()
        target = f"main=http://127.0.0.1:{metrics.server_address[1]}"
        with running(tmp_path, assets_dir, SERVERS=target, SERVER_INTERVAL_S="0.5", PROBE_INTERVAL_S="0.5") as found:
            yield found.address
        metrics.shutdown()


def test_the_dot_moves_with_its_tail_and_a_snapshot_keeps_it(browser: Browser, beside_a_server: str) -> None:
    watch = Watch()
    context = browser.new_context(base_url=beside_a_server)
    context.add_init_script(VIOLATION_LISTENER)
    watch.follow(context)
    page = context.new_page()
    page.goto("/live?model=llama-3.1-8b&hw=h100-sxm-80gb")
    expect(page.locator("#server-1-running")).to_contain_text("12")
    first = becomes(page, DOT, lambda y: y is not None)
    becomes(page, DOT, lambda y: y != first)
    becomes(page, TAIL, lambda length: length > 2)
    expect(page.locator("#server-1-output_tokens_per_s")).to_contain_text("× the prediction")
    expect(page.locator("#hold")).to_be_visible()
    page.get_by_label("Title").fill("Under load")
    page.get_by_role("button", name="Save snapshot").click()
    expect(page.get_by_role("heading", name="Under load")).to_be_visible()
    expect(page.locator("#plot-live-roofline .main-svg").first).to_be_attached()
    expect(page.locator("#title-server-1")).to_contain_text("Server 1")
    context.close()
    watch.check(beside_a_server)


def test_leaving_the_page_ends_the_stream_in_silence(visit: Opener) -> None:
    page = visit("/live")
    expect(taken(page)).to_have_count(1)
    page.get_by_role("link", name="Workbench").first.click()
    expect(page.locator("#metric-memory")).to_be_visible()
    page.go_back()
    expect(page.locator("#source-host")).to_be_visible()
