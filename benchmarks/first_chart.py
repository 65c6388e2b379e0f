"""A first visit in a real browser: how long until the first chart stands, cold against warm, and what it weighs."""

import shutil
import time

from playwright.sync_api import Browser, sync_playwright

from benchmarks.server import running_server
from benchmarks.timing import table

VISITS = 5
NAMES = ("chromium", "chromium-browser", "google-chrome")


def run() -> None:
    """Print the table; say so where there is no Chromium."""
    chromium = next((path for name in NAMES if (path := shutil.which(name))), None)
    if chromium is None:
        print("\nFirst chart: no Chromium on this machine, not measured")
        return
    with running_server() as server, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        _measure(browser, server.address)
        browser.close()


def _measure(browser: Browser, address: str) -> None:
    cold: list[float] = []
    warm: list[float] = []
    weight = 0
    for _ in range(VISITS):
        context = browser.new_context()
        page = context.new_page()
        for times in (cold, warm):
            started = time.perf_counter()
            page.goto(address, wait_until="commit")
            page.locator("#plot-roofline .main-svg").first.wait_for(state="attached")
            times.append(time.perf_counter() - started)
            if times is cold:
                page.wait_for_load_state("load")
                sizes = "performance.getEntries().reduce((sum, entry) => sum + (entry.transferSize || 0), 0)"
                weight = page.evaluate(sizes)
        context.close()
    base = min(warm)
    rows = [
        (name, f"{sorted(times)[VISITS // 2]:.2f}", f"{min(times):.2f}", f"{min(times) / base:.1f}")
        for name, times in (("cold cache", cold), ("warm cache", warm))
    ]
    table("First chart after navigation", ("visit", "median s", "best s", "best of the warm"), rows)
    print(f"  weight of a first visit, compressed: {weight / 1e3:.0f} KB")
