"""One Chromium for the session, a context for each test, and an ear on everything a page complains about.

Without a Chromium every test here is skipped and says what to install; nothing is downloaded.
"""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, sync_playwright

from tests.browser.drawing import leave_undrawn
from tests.browser.driving import Opener
from tests.browser.watching import VIOLATION_LISTENER, Watch

BINARIES = ("/usr/bin/chromium", "chromium", "chromium-browser", "google-chrome")
MISSING = "No Chromium was found. Install one (Debian, Ubuntu: apt-get install chromium) to run the browser tests."
OFFLINE = (
    "--no-sandbox",
    "--no-first-run",
    "--no-default-browser-check",
    "--no-pings",
    "--disable-background-networking",
    "--disable-breakpad",
    "--disable-client-side-phishing-detection",
    "--disable-component-update",
    "--disable-default-apps",
    "--disable-domain-reliability",
    "--disable-sync",
    "--metrics-recording-only",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
)
# The suggestions below the address bar are pages of the browser's own, made ready with each context: no test sees
# them, and they took a quarter of its time. Chromium heeds the last such list alone, so what Playwright turns off
# stands before them.
FEATURES_OFF = (
    "AvoidUnnecessaryBeforeUnloadCheckSync",
    "DestroyProfileOnBrowserClose",
    "HttpsUpgrades",
    "HttpsFirstBalancedModeAutoEnable",
    "LensOverlay",
    "MediaRouter",
    "PaintHolding",
    "ThirdPartyStoragePartitioning",
    "AvoidCorsURLLoaderRestartOnRedirect",
    "OptimizationHints",
    "NetworkTimeServiceQuerying",
    "AimEnabled",
    "PreconnectToSearch",
    "WebUIOmniboxPopup",
    "WebUIOmniboxAimPopup",
)
TIMEOUT_MS = 10_000
HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Marks the tests of this folder, and puts them last: Playwright keeps an event loop running while it lives."""
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.browser)
    items.sort(key=lambda item: HERE in item.path.parents)


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """A headless Chromium that reaches this machine alone."""
    binary = next((found for name in BINARIES if (found := shutil.which(name))), None)
    if binary is None:
        pytest.skip(MISSING)
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(
            executable_path=binary, args=[*OFFLINE, f"--disable-features={','.join(FEATURES_OFF)}"]
        )
        yield started
        started.close()


@pytest.fixture
def watch() -> Watch:
    """What the pages of the test said; the test says what it provoked."""
    return Watch()


@pytest.fixture
def visit(browser: Browser, server: str, watch: Watch) -> Iterator[Opener]:
    """Opens pages; at the end no page may have complained, asked another host, or met the policy."""
    contexts: list[BrowserContext] = []

    def opened(path: str = "/", *, drawing: bool = True, **options: Any) -> Page:
        context = browser.new_context(**{"base_url": server, "viewport": {"width": 1280, "height": 900}} | options)
        context.set_default_timeout(TIMEOUT_MS)
        contexts.append(context)
        context.add_init_script(VIOLATION_LISTENER)
        watch.follow(context)
        if not drawing:
            leave_undrawn(context)
        page = context.new_page()
        page.goto(path)
        return page

    yield opened
    for context in contexts:
        context.unroute_all(behavior="ignoreErrors")  # what is on its way may be given up
        context.close()
    watch.check(server)
