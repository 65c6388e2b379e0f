"""The live readings as pages and API share them: one round for everybody, streams bounded in number and time."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from urllib.parse import unquote
from weakref import WeakKeyDictionary

import anyio
from sse_starlette import EventSourceResponse, ServerSentEvent
from starlette.requests import Request

from app.probes.reading import Absence
from app.probes.sampler import Sampler, Snapshots, Subscription, TooManyViewersError
from app.probes.snapshot import ProbeSnapshot
from app.web.problem import ProblemError
from app.web.services import Services
from app.web.typed_servers import LABEL, SOURCE

COOKIE = "live_server"
"""Holds the address of the server that a person named: it is in no link, no log and no share."""
LONGEST_ADDRESS = 300
LONGEST_COOKIE = 3 * LONGEST_ADDRESS  # each sign of an address may be three in a cookie


@dataclass(frozen=True, slots=True)
class Watching:
    """The server that a person named, as the cookie has it and not yet checked, and who that person is to us."""

    address: str | None
    client: str = ""


NOBODYS = Watching(None)
_TURNS: WeakKeyDictionary[Sampler, asyncio.Lock] = WeakKeyDictionary()
"""Whose turn it is to write, of the streams of each app."""
FAREWELL_S = 2.0
"""Seconds that a stream has to end by itself when the server stops."""


def watching_of(request: Request) -> Watching:
    """What the sender of `request` watches besides what everybody sees."""
    address = unquote(request.cookies.get(COOKIE, "")[:LONGEST_COOKIE])
    client = "" if request.client is None else request.client.host
    return Watching(address if 0 < len(address) <= LONGEST_ADDRESS else None, client)


async def live_round(services: Services, watching: Watching = NOBODYS) -> Snapshots:
    """The newest round, with the server that the person named where people may name one."""
    latest = await services.sampler.latest()
    if watching.address is None or not services.typed.is_allowed:
        return latest
    try:
        return (*latest, *await services.typed.latest(watching.address, watching.client))
    except ProblemError as refused:  # What the cookie holds may not be named here any more, or the room is taken.
        why = Absence.BUSY if "Retry-After" in refused.headers else Absence.BLOCKED
        return (*latest, ProbeSnapshot.absent(SOURCE, LABEL, "server", why))


def refuse_crowd(services: Services) -> None:
    """Nothing, while there is room for another viewer.

    Raises:
        ProblemError: 503, with the time after which to ask again.
    """
    if services.sampler.viewers >= services.settings.probe_max_streams:
        raise ProblemError(503, "As many viewers as are allowed are watching.", headers={"Retry-After": "10"})


def event_stream(
    services: Services, watching: Watching, written: Callable[[Snapshots], ServerSentEvent]
) -> EventSourceResponse:
    """Rounds as server-sent events, each `written` by the caller; it ends as it should when the server stops.

    All streams wake at the same time. They write one after the other, and other requests have their turn in between.
    """
    stopping = anyio.Event()
    turn = _TURNS.setdefault(services.sampler, asyncio.Lock())

    async def events() -> AsyncIterator[ServerSentEvent]:
        async for latest in rounds(services, watching, stopping):
            async with turn:
                event = written(latest)
                await asyncio.sleep(0)
            yield event

    return EventSourceResponse(events(), shutdown_event=stopping, shutdown_grace_period=FAREWELL_S)


async def rounds(
    services: Services, watching: Watching = NOBODYS, stopping: anyio.Event | None = None
) -> AsyncIterator[Snapshots]:
    """Rounds as they come, until the stream's time is up or the server stops; none where it is too crowded."""
    with suppress(TooManyViewersError):
        async with services.sampler.subscribe() as subscription, _ended_by(stopping, subscription):
            loop = asyncio.get_running_loop()
            ends_at = loop.time() + services.settings.probe_stream_max_s
            async for _ in subscription:
                yield await live_round(services, watching)
                if loop.time() >= ends_at:
                    return


@asynccontextmanager
async def _ended_by(stopping: anyio.Event | None, subscription: Subscription) -> AsyncIterator[None]:
    """The subscription ends as soon as the event is set: nobody waits for a round that does not come any more."""

    async def end() -> None:
        if stopping is not None:
            await stopping.wait()
            subscription.end()

    task = asyncio.create_task(end())
    try:
        yield
    finally:
        task.cancel()
