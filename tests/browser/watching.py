"""An ear on the pages: console, errors, breaches of the policy, and requests that leave the server."""

import re
from urllib.parse import urlsplit

from playwright.sync_api import BrowserContext, ConsoleMessage, Error, Request, WebError

# Chromium notes a breach in the console as well; this one names the directive whatever the console shows.
VIOLATION_LISTENER = """
document.addEventListener("securitypolicyviolation", (event) => {
  const { effectiveDirective, blockedURI, sourceFile, lineNumber } = event;
  console.error(`policy breach: ${effectiveDirective} ${blockedURI} at ${sourceFile}:${lineNumber}`);
});
"""
STATUS_NOTE = re.compile(r"Failed to load resource: the server responded with a status of (\d+)")
OWN_SCHEMES = {"data", "blob"}


class Watch:
    """Everything that the pages of one test said. `allow` names the statuses that the test itself provokes."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.requests: list[str] = []
        self._allowed: set[int] = set()

    def allow(self, *statuses: int) -> None:
        """Let the browser note answers of these statuses."""
        self._allowed |= set(statuses)

    def follow(self, context: BrowserContext) -> None:
        """Listen to every page of a context."""
        context.on("console", self._console)
        context.on("weberror", self._error)
        context.on("request", self._request)

    def check(self, server: str) -> None:
        """Nothing was said but what was provoked, and nobody else was asked."""
        foreign = [
            url
            for url in self.requests
            if urlsplit(url).scheme not in OWN_SCHEMES and urlsplit(url).netloc != urlsplit(server).netloc
        ]
        assert foreign == []
        assert self.lines == []

    def _console(self, message: ConsoleMessage) -> None:
        note = STATUS_NOTE.match(message.text)
        if not (note and int(note[1]) in self._allowed):
            self.lines.append(f"{message.type}: {message.text}")

    def _error(self, error: WebError) -> None:
        raised: Error = error.error
        self.lines.append(f"page error: {raised.message}")

    def _request(self, request: Request) -> None:
        self.requests.append(request.url)
