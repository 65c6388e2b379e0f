"""The way to an inference server's metrics: the outbound client, as the probes call it from their threads."""

import asyncio
from collections.abc import Callable, Container
from typing import Final, Protocol

from app.outbound.client import Fetched
from app.outbound.policy import (
    HTTP_TOO,
    BadAnswerError,
    BlockedError,
    OutboundError,
    Policy,
    Ports,
    Reach,
    TooLargeError,
    TooSlowError,
    UnreachableError,
)
from app.outbound.target import Target
from app.probes.reading import Absence
from app.probes.servers.source import Fetch, FetchedText, FetchFailed, Path
from app.settings import Settings

TOTAL_S: Final = 2.5
"""Less than the three seconds that a probe may take, so that the probe says itself what went wrong."""

CONNECT_S: Final = 1.0
METRICS_PATH: Final = "/metrics"

# Some servers name no type at all.
CONTENT_TYPES: Final = frozenset({"text/plain", "application/openmetrics-text", "application/json", ""})
_ACCEPT = "text/plain;version=0.0.4, application/json;q=0.5, */*;q=0.1"
_ABSENCES: tuple[tuple[type[OutboundError], Absence], ...] = (
    (BlockedError, Absence.BLOCKED),
    (UnreachableError, Absence.UNREACHABLE),
    (TooSlowError, Absence.TIMEOUT),
    (TooLargeError, Absence.TOO_LARGE),
    (BadAnswerError, Absence.NOT_METRICS),
)


class Fetcher(Protocol):
    """What a fetch needs of `Outbound`."""

    async def get(self, url: str, *, authorization: str | None = None) -> Fetched:
        """The answer to a GET. Raises OutboundError."""


OutboundMaker = Callable[[Policy], Fetcher]
"""Makes the client for a policy: `Outbound`, or one that tests bring."""


def server_policy(settings: Settings, hosts: Container[str], ports: Ports, reach: Reach) -> Policy:
    """What may be asked of servers at `hosts`: by http too, at IP addresses too, and no redirect is followed."""
    return Policy(
        hosts=hosts,
        content_types=CONTENT_TYPES,
        most_body_bytes=settings.server_max_bytes,
        schemes=HTTP_TOO,
        ports=ports,
        reach=reach,
        takes_literals=True,
        accept=_ACCEPT,
        total_s=TOTAL_S,
        connect_s=CONNECT_S,
        most_redirects=0,
    )


def blocking_fetch(outbound: Fetcher, target: Target, authorization: str | None = None) -> Fetch:
    """A function that fetches a path of the server at `target`, with the query that `target` has.

    "" is the path of `target` itself, and /metrics where it has none. To be called in a thread without an event loop:
    each call has one of its own, which is gone when it returns.

    The function raises FetchFailed, for one of few reasons that repeat nothing of what the other side sent.
    """
    own_path, mark, query = target.path.partition("?")
    if own_path == "/":
        own_path = METRICS_PATH

    def fetch(path: Path) -> FetchedText:
        url = f"{target.origin}{path or own_path}{mark}{query}"
        try:
            # Whatever loop the server runs on: this one is small, and is made and closed with each call.
            with asyncio.Runner(loop_factory=asyncio.SelectorEventLoop) as runner:
                fetched = runner.run(outbound.get(url, authorization=authorization))
        except OutboundError as error:
            raise FetchFailed(absence_of(error)) from error
        return FetchedText(fetched.status, fetched.headers.get("content-type", ""), fetched.body)

    return fetch


def absence_of(error: OutboundError) -> Absence:
    """Why there is no reading when a fetch ended in `error`."""
    return next((absence for kind, absence in _ABSENCES if isinstance(error, kind)), Absence.UNKNOWN_ERROR)
