"""What a round of readings says, made once for each round and question, however many viewers ask.

The live readings as pages and API share them: one round for everybody, streams bounded in number and time.

Readings of this machine and its servers, beside their prediction: once, and as a stream.
"""

import asyncio
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any, Generic, TypeVar
from urllib.parse import unquote
from weakref import WeakKeyDictionary

import anyio
from fastapi import APIRouter, Request
from sse_starlette import EventSourceResponse, ServerSentEvent
from starlette.responses import Response

from app.catalog.catalog import Catalog
from app.checkpoint.text import dumps
from app.features.live.typed_servers import LABEL, SOURCE, TypedServers
from app.features.services import Services, ServicesDep
from app.machine.live.board import Board, board_of
from app.machine.probes.reading import Absence
from app.machine.probes.sampler import Sampler, Snapshots, Subscription, TooManyViewersError
from app.machine.probes.snapshot import ProbeSnapshot
from app.scenario.query import BY_NAME
from app.scenario.refusal import ScenarioError
from app.scenario.resolve import resolve
from app.scenario.scenario import Scenario
from app.web.openapi import PROBLEMS, STREAM_PROBLEMS
from app.web.problem import JsonResponse, ProblemError
from app.web.query import items_of, refuse_unknown, scenario_from
from app.web.urls import Items

MOST_QUESTIONS = 64
T = TypeVar("T")


class Newest(Generic[T]):
    """What was made of the newest round by question: the same snapshots give the same thing. Of bounded size."""

    def __init__(self, make: Callable[[Snapshots, Items], T]) -> None:
        self._make = make
        self._made: OrderedDict[tuple[tuple[str, str], ...], tuple[Snapshots, T]] = OrderedDict()

    def of(self, latest: Snapshots, items: Items) -> T:
        """The thing for `latest` and the question that `items` are."""
        question = tuple(items)
        made = self._made.get(question)
        if made is None or not _same(made[0], latest):
            made = latest, self._make(latest, items)
            self._made[question] = made
        self._made.move_to_end(question)
        if len(self._made) > MOST_QUESTIONS:
            self._made.popitem(last=False)
        return made[1]


class LiveBoards:
    """Boards by question. Belongs to one event loop."""

    def __init__(self, sampler: Sampler, typed: TypedServers, catalog: Catalog) -> None:
        self._sampler, self._typed, self._catalog = sampler, typed, catalog
        self._newest = Newest(self._board)

    def of(self, latest: Snapshots, items: Items) -> Board:
        """What `latest` says beside the prediction that `items` ask for. A question with an error in it is as good as
        none: whoever asked it has been told when the page was made.
        """
        return self._newest.of(latest, items)

    def _board(self, latest: Snapshots, items: Items) -> Board:
        try:
            asked = asked_of(items, self._catalog)
        except ScenarioError:
            asked = None
        named = [self._typed.history_of(snapshot) for snapshot in latest if snapshot.source == SOURCE]
        history = [*self._sampler.history, *(round_ for rounds in named for round_ in rounds)]
        return board_of(latest, history, asked, self._catalog)


def asked_of(items: Items, catalog: Catalog) -> Scenario | None:
    """The scenario that was asked for; None where none was.

    Raises:
        ScenarioError: something in it is wrong, each at its path.
    """
    given = [(name, value) for name, value in items if name in BY_NAME]
    if not any(value for _, value in given):
        return None
    return resolve(scenario_from(given), catalog).scenario


def _same(one: Sequence[ProbeSnapshot], other: Sequence[ProbeSnapshot]) -> bool:
    """Whether both hold the same snapshots, not only equal ones; a kept round keeps its snapshots from being reused."""
    return len(one) == len(other) and all(a is b for a, b in zip(one, other, strict=True))


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


UNREADABLE: dict[int | str, dict[str, Any]] = {422: PROBLEMS[422]}
api = APIRouter(tags=["probes"])


@api.get("/probes", response_model=dict[str, Any], responses=UNREADABLE)
async def probes(request: Request, services: ServicesDep) -> Response:
    """Every probe's newest snapshot; each reading has a value, or the reason why there is none.

    `live` puts each server's figures beside the prediction of the scenario in the query (the names of /evaluate), under
    the load that the server has; without a query beside that of what was probed.
    """
    items = _question(request, services)
    return JsonResponse(_document(request, await live_round(services), items))


@api.get("/probes/stream", responses=UNREADABLE | STREAM_PROBLEMS, response_class=EventSourceResponse)
async def stream(request: Request, services: ServicesDep) -> Response:
    """The same as server-sent events of type `probes`, one each interval; the browser reconnects by itself."""
    items = _question(request, services)
    refuse_crowd(services)

    def written(latest: Snapshots) -> ServerSentEvent:
        return ServerSentEvent(data=dumps(_document(request, latest, items)).decode(), event="probes")

    return event_stream(services, NOBODYS, written)


def _question(request: Request, services: Services) -> Items:
    """The items of the query, once they are known to be a scenario or none.

    Raises:
        ScenarioError: they are neither.
    """
    items = items_of(request.query_params)
    refuse_unknown(items)
    asked_of(items, services.catalog)
    return items


def _document(request: Request, latest: Snapshots, items: Items) -> dict[str, Any]:
    boards: LiveBoards = request.app.state.live_boards
    return {"probes": [snapshot.document() for snapshot in latest], "live": boards.of(latest, items).document()}
