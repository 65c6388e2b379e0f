"""The way to an inference server's metrics: the outbound client, as the probes call it from their threads.

The inference servers that the operator configured: checked once at the start, then read as they are written.
"""

import asyncio
import re
from collections.abc import Callable, Container, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Final, Protocol

from pydantic import SecretStr

from app.checkpoint.text import clean_text, within
from app.machine.probes.reading import Absence
from app.machine.probes.servers.probe import ServerProbe
from app.machine.probes.servers.source import Fetch, FetchedText, FetchFailed, Path
from app.outbound.client import Fetched, Outbound
from app.outbound.policy import (
    ANYWHERE,
    HTTP_TOO,
    AnyHost,
    BadAnswerError,
    BlockedError,
    OutboundError,
    Policy,
    Ports,
    Reach,
    TooLargeError,
    TooSlowError,
    UnreachableError,
    exactly,
)
from app.outbound.target import Target, parse_target
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


MOST_SERVERS: Final = 32
LONGEST_NAME: Final = 40
ANY_PORT: Final = (range(1, 65_536),)
_SERVERS, _TOKENS = "TOKENROOF_SERVERS", "TOKENROOF_SERVER_TOKENS"
_TOKEN = re.compile(r"[\x21-\x7e]{1,4096}")


class ServerTargetError(ValueError):
    """A setting that names a server wrongly: says which entry and why, and repeats neither address nor token."""


@dataclass(frozen=True, slots=True)
class ServerTarget:
    """A server that the operator named; the token, if it wants one, goes to it and to nobody else."""

    name: str
    target: Target
    token: SecretStr | None = None

    def policy(self, settings: Settings) -> Policy:
        """What may be fetched for this server: from its host and port alone, wherever that is."""
        policy = server_policy(settings, frozenset({self.target.host}), exactly(self.target.port), ANYWHERE)
        return replace(policy, schemes=frozenset({self.target.scheme}))

    @property
    def authorization(self) -> str | None:
        """The header that it wants to see."""
        return None if self.token is None else f"Bearer {self.token.get_secret_value()}"


def server_targets(settings: Settings) -> tuple[ServerTarget, ...]:
    """The servers of the settings, in their order.

    Raises:
        ServerTargetError: too many, an entry without a name, a name that is taken, an address that may not be read, a
            token that belongs to no server. The message may be printed.
    """
    if len(settings.servers) > MOST_SERVERS:
        raise ServerTargetError(f"{_SERVERS} has {len(settings.servers)} entries; at most {MOST_SERVERS} are allowed.")
    policy = server_policy(settings, AnyHost(), ANY_PORT, ANYWHERE)
    tokens = _tokens(settings)
    targets: dict[str, ServerTarget] = {}
    for _, name, address in _named(_SERVERS, settings.servers):
        if name in targets:
            raise ServerTargetError(f"{_SERVERS}: {name!r} is there twice.")
        try:
            target = parse_target(address, policy)
        except BlockedError as error:
            # Without the cause: a parser's own words repeat the address.
            raise ServerTargetError(f"{_SERVERS}, {name!r}: {error.reason}.") from None
        targets[name] = ServerTarget(name, target, tokens.pop(name, None))
    if tokens:
        # Its name is not repeated: who writes the two the wrong way round has the token there.
        raise ServerTargetError(f"{_TOKENS}: an entry is for a server that {_SERVERS} does not name.")
    return tuple(targets.values())


def server_probes(settings: Settings, outbound: OutboundMaker = Outbound) -> list[ServerProbe]:
    """A probe for each server of the settings; their sources are "server-1" and so on.

    Raises:
        ServerTargetError: as `server_targets` does.
    """
    return [
        ServerProbe(
            f"server-{number}",
            server.name,
            blocking_fetch(outbound(server.policy(settings)), server.target, server.authorization),
            interval_s=settings.server_interval_s,
        )
        for number, server in enumerate(server_targets(settings), 1)
    ]


def _tokens(settings: Settings) -> dict[str, SecretStr]:
    """The tokens by the name of their server."""
    tokens: dict[str, SecretStr] = {}
    for where, name, token in _named(_TOKENS, (entry.get_secret_value() for entry in settings.server_tokens)):
        if name in tokens:
            raise ServerTargetError(f"{where} is for a server that has a token already.")
        if not _TOKEN.fullmatch(token):
            raise ServerTargetError(f"{where} has no token, or characters in it that a token may not have.")
        tokens[name] = SecretStr(token)
    return tokens


def _named(variable: str, entries: Iterable[str]) -> Iterator[tuple[str, str, str]]:
    """Where each entry stands, in words, its name and what follows the first equals sign."""
    for number, entry in enumerate(entries, 1):
        where = f"{variable}: entry {number}"
        name, _, rest = entry.partition("=")
        if not rest or "://" in name:
            raise ServerTargetError(f"{where} is not written as name=value.")
        try:
            yield where, within(clean_text(name), LONGEST_NAME), rest.strip()
        except ValueError:
            reason = f"has a name that is empty or longer than {LONGEST_NAME} characters"
            raise ServerTargetError(f"{where} {reason}.") from None
