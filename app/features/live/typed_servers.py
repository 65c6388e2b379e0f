"""Which servers a person may name on the live page, by the operator's mode, and how an address has to be written.

Servers that people name on the live page: few at a time, each read once however many look at it, then forgotten.

What is named stays here: no address is logged, and none is part of a snapshot. Who names servers one after the other
holds up nobody else: a server that is given up makes room only when no call to it is on its way any more.
"""

import asyncio
import re
import threading
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from types import MappingProxyType
from typing import Final, NamedTuple

from app.features.live.servers import OutboundMaker, blocking_fetch, server_policy
from app.machine.probes.reading import Absence
from app.machine.probes.sampler import Sampler, Snapshots, Subscription
from app.machine.probes.servers.probe import ServerProbe
from app.machine.probes.servers.source import Fetch, FetchedText, FetchFailed, Path
from app.machine.probes.snapshot import ProbeSnapshot
from app.outbound.client import Outbound
from app.outbound.policy import (
    DEFAULT_PORTS,
    LAN,
    LOCAL,
    PUBLIC,
    AnyHost,
    BlockedError,
    OwnHosts,
    Place,
    Policy,
    Ports,
    Reach,
    exactly,
)
from app.outbound.target import Target, parse_target
from app.scenario.refusal import Refusal
from app.settings import Settings
from app.web.problem import ProblemError, invalid

FIELD: Final = "address"
LONGEST_ADDRESS: Final = 300
WEB_PORTS: Final[Ports] = (*exactly(DEFAULT_PORTS["http"]), *exactly(DEFAULT_PORTS["https"]))
UNPRIVILEGED_PORTS: Final[Ports] = (*WEB_PORTS, range(1_024, 65_536))
# Where inference servers listen. On a network there are other doors at other ports: a printer at 9100 prints whatever
# it is sent.
SERVING_PORTS: Final[Ports] = (
    *WEB_PORTS,
    range(3_000, 3_100),
    range(8_000, 9_100),
    range(29_000, 32_768),
)
# A stranger's word goes no further than to ask for metrics: nothing else that a server offers is to be set off by it.
_PATH = re.compile(r"(?:(?:/[A-Za-z0-9_~-][A-Za-z0-9._~-]*)*/metrics)?")
_QUERY = re.compile(r"(?:model=[A-Za-z0-9._~:/%-]+)?")  # A router of llama.cpp asks of which model.


class _Mode(NamedTuple):
    reach: Reach
    ports: Ports
    whose: str


_MODES: Mapping[str, _Mode] = MappingProxyType(
    {
        "local": _Mode(LOCAL, UNPRIVILEGED_PORTS, "of its own machine, such as http://localhost:8000"),
        "lan": _Mode(LAN, SERVING_PORTS, "of its own machine and network, at the ports that such servers use"),
        "public": _Mode(PUBLIC, SERVING_PORTS, "on the public internet, at the ports that such servers use"),
    }
)


def typed_policy(settings: Settings) -> Policy | None:
    """What may be fetched for a person who names a server; None where nobody may name any."""
    mode = _MODES.get(settings.typed_servers)
    if mode is None:
        return None
    return server_policy(settings, OwnHosts() if mode.reach == LOCAL else AnyHost(), mode.ports, mode.reach)


def typed_target(settings: Settings, address: str) -> Target:
    """The server that a person named, without a path, or with one that ends in /metrics; http:// may be left out.

    A host's name is not looked up here: where it leads is checked whenever the server is read.

    Raises:
        ProblemError: 403 where nobody may name a server; 422 for an address that may not be read, with the reason.
    """
    policy = typed_policy(settings)
    if policy is None:
        raise ProblemError(
            403,
            "This server reads only the inference servers that its operator configured; the operator can let people "
            "name others with TOKENROOF_TYPED_SERVERS.",
        )
    text = address.strip()
    if not text:
        raise _refused("Name a server, such as http://localhost:8000.")
    if len(text) > LONGEST_ADDRESS:
        raise _refused(f"At most {LONGEST_ADDRESS} characters.")
    try:
        target = parse_target(text if "://" in text else f"http://{text}", policy)
        if target.host == "localhost" and Place.MACHINE not in policy.reach:
            raise BlockedError("that is this server's own machine")
    except BlockedError as error:
        whose = _MODES[settings.typed_servers].whose
        raise _refused(f"Not read: {error.reason}. This server reads inference servers {whose}.") from None
    path, mark, query = target.path.partition("?")
    path = path.removesuffix("/")
    if not _PATH.fullmatch(path) or not _QUERY.fullmatch(query):
        raise _refused("Not read: leave the path out, or let it end in /metrics; at most ?model=… may follow.")
    return replace(target, path=f"{path or '/'}{mark if query else ''}{query}")


def _refused(message: str) -> ProblemError:
    return invalid([Refusal(FIELD, message)])


SOURCE: Final = "typed"
LABEL: Final = "The server you named"
MOST_SERVERS: Final = 8
MOST_OF_A_CLIENT: Final = 2
KEPT_S: Final = 60.0


class Gate:
    """Lets fetches through until it is shut, which it can be only while none is on its way.

    A probe's calls go on in their thread when nobody waits for them any more; this is how one knows.
    """

    def __init__(self, fetch: Fetch) -> None:
        self._fetch, self._lock = fetch, threading.Lock()
        self._under_way, self._is_shut = 0, False

    def __call__(self, path: Path) -> FetchedText:
        """What the fetch brings. Raises FetchFailed, also when it is shut."""
        with self._lock:
            if self._is_shut:
                raise FetchFailed(Absence.UNREACHABLE)
            self._under_way += 1
        try:
            return self._fetch(path)
        finally:
            with self._lock:
                self._under_way -= 1

    def shut(self) -> bool:
        """Shuts, and says whether it could."""
        with self._lock:
            self._is_shut = self._is_shut or not self._under_way
            return self._is_shut


class _Watched:
    """A server that was named: its sampler, who looks at it, and who looked last."""

    def __init__(self, sampler: Sampler, gate: Gate) -> None:
        self.sampler, self.gate = sampler, gate
        self.viewers: Counter[str] = Counter()
        self.left_by = ""
        self.left_at = 0.0

    def leave(self, client: str, now: float) -> None:
        self.viewers[client] -= 1
        self.viewers = +self.viewers  # Without those that are at zero.
        self.left_by, self.left_at = client, now


class TypedServers:
    """Reads the servers that people name. `clock` is in seconds, monotonic. Belongs to one event loop."""

    def __init__(
        self, settings: Settings, outbound: OutboundMaker = Outbound, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._settings, self._clock = settings, clock
        policy = typed_policy(settings)
        self._outbound = outbound(policy) if policy is not None else None
        self._watched: dict[str, _Watched] = {}
        self._closing: set[asyncio.Task[None]] = set()
        self._is_closed = False

    @property
    def held(self) -> int:
        """How many servers are held: those that are looked at, and those that were a short while ago."""
        return len(self._watched)

    @property
    def is_allowed(self) -> bool:
        """Whether the operator lets people name servers."""
        return self._outbound is not None

    def validate(self, address: str) -> str:
        """The address as it is kept: one for all ways to write it.

        Raises:
            ProblemError: 403 where nobody may name a server; 422, at "address", for one that may not be read.
        """
        return typed_target(self._settings, address).url.removesuffix("/")

    async def latest(self, address: str, client: str) -> Snapshots:
        """What the server says now, or said within the interval; `client` is whoever asks.

        Raises:
            ProblemError: as for `watch`.
        """
        async with self._looking_at(address, client) as sampler:
            return await sampler.latest()

    def history_of(self, snapshot: ProbeSnapshot) -> tuple[Snapshots, ...]:
        """The rounds of the last minute of the server that `snapshot` is of, oldest first; empty where it is gone."""
        for watched in self._watched.values():
            history = watched.sampler.history
            if any(each is snapshot for round_ in history for each in round_):
                return history
        return ()

    @asynccontextmanager
    async def watch(self, address: str, client: str) -> AsyncIterator[Subscription]:
        """An open subscription to the server at `address`, for the client, while the `async with` lasts.

        Raises:
            ProblemError: as for `validate`; 429 when the client looks at as many other servers as it may, 503 when
                all clients together do, both with the time after which to ask again.
            TooManyViewersError: as many as may are looking at this server already.
        """
        async with self._looking_at(address, client) as sampler, sampler.subscribe() as subscription:
            yield subscription

    async def aclose(self) -> None:
        """Ends all subscriptions and forgets all servers."""
        self._is_closed = True
        for address in list(self._watched):
            self._forget(address)
        await asyncio.gather(*self._closing, return_exceptions=True)

    @asynccontextmanager
    async def _looking_at(self, address: str, client: str) -> AsyncIterator[Sampler]:
        watched = self._admitted(self.validate(address), client)
        watched.viewers[client] += 1
        try:
            yield watched.sampler
        finally:
            watched.leave(client, self._clock())

    def _admitted(self, address: str, client: str) -> _Watched:
        """The server at `address`, new if need be, when there is room for it and for the client."""
        if self._is_closed:
            raise ProblemError(503, "This server is stopping.", headers={"Retry-After": "10"})
        self._forget_the_old()
        others = [each for kept, each in self._watched.items() if kept != address]
        if sum(client in each.viewers for each in others) >= MOST_OF_A_CLIENT:
            raise ProblemError(
                429,
                f"You are looking at {MOST_OF_A_CLIENT} servers already; close one of them to see another.",
                headers={"Retry-After": "10"},
            )
        if address not in self._watched:
            self._make_room(client)
            self._watched[address] = self._new(address)
        return self._watched[address]

    def _new(self, address: str) -> _Watched:
        assert self._outbound is not None  # noqa: S101 - `validate` has seen to it
        gate = Gate(blocking_fetch(self._outbound, typed_target(self._settings, address)))
        probe = ServerProbe(SOURCE, LABEL, gate, interval_s=self._settings.server_interval_s, clock=self._clock)
        sampler = Sampler(
            [probe],
            interval_s=self._settings.server_interval_s,
            clock=self._clock,
            max_viewers=self._settings.probe_max_streams,
        )
        return _Watched(sampler, gate)

    def _make_room(self, client: str) -> None:
        """Room for one more: what the client has left behind goes first, then what anybody has."""
        own = [a for a, each in self._watched.items() if client in each.viewers or self._is_left_by(each, client)]
        if len(own) >= MOST_OF_A_CLIENT:
            self._forget_one(own)
        if len(self._watched) >= MOST_SERVERS:
            self._forget_one(list(self._watched))

    def _is_left_by(self, watched: _Watched, client: str) -> bool:
        return not watched.viewers and watched.left_by == client

    def _forget_one(self, addresses: list[str]) -> None:
        """Forgets the one at which nobody has looked for longest."""
        idle = sorted((a for a in addresses if not self._watched[a].viewers), key=lambda a: self._watched[a].left_at)
        for address in idle:
            if self._watched[address].gate.shut():
                self._forget(address)
                return
        raise ProblemError(
            503, "As many servers as can be read at one time are being read.", headers={"Retry-After": "5"}
        )

    def _forget_the_old(self) -> None:
        now = self._clock()
        for address, watched in list(self._watched.items()):
            if not watched.viewers and now - watched.left_at >= KEPT_S and watched.gate.shut():
                self._forget(address)

    def _forget(self, address: str) -> None:
        """Drops the server at once, and closes its sampler as soon as may be."""
        task = asyncio.create_task(self._watched.pop(address).sampler.aclose(), name="typed-server-close")
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)
