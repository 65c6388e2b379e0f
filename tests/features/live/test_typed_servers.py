"""Servers that people name: one sampler for each, few at a time, and forgotten when nobody looks any more."""

import asyncio
import logging
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from typing import Any

import pytest

from app.features.live.typed_servers import KEPT_S, LABEL, MOST_OF_A_CLIENT, MOST_SERVERS, SOURCE, Gate, TypedServers
from app.machine.probes.reading import Absence
from app.machine.probes.servers.source import FetchedText, FetchFailed, Path
from app.outbound.client import Fetched, Outbound
from app.outbound.policy import Policy
from app.settings import Settings
from app.web.problem import ProblemError
from tests.outbound.world import World
from tests.web.metrics_server import METRICS, metrics_server

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


class Clock:
    now = 1_000.0

    def __call__(self) -> float:
        return self.now


class Servers:
    """Servers that all show the same; `gate`, while it is shut, holds every answer back."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.policy: Policy | None = None
        self.gate = threading.Event()
        self.gate.set()

    def __call__(self, policy: Policy) -> "Servers":
        self.policy = policy
        return self

    async def get(self, url: str, *, authorization: str | None = None) -> Fetched:
        assert authorization is None
        self.asked.append(url)
        while not self.gate.is_set():
            await asyncio.sleep(0.005)
        return Fetched(200, {"content-type": "text/plain"}, METRICS)


class Desk:
    """What is under test, and the world around it."""

    def __init__(self, mode: Any = "local") -> None:
        self.servers, self.clock = Servers(), Clock()
        settings = Settings(typed_servers=mode, probe_max_streams=2)
        self.typed = TypedServers(settings, self.servers, self.clock)

    async def refused(self, address: str, client: str) -> ProblemError:
        with pytest.raises(ProblemError) as refused:
            await self.typed.latest(address, client)
        return refused.value


@pytest.fixture
async def desk() -> AsyncIterator[Desk]:
    desk = Desk()
    yield desk
    desk.servers.gate.set()
    await desk.typed.aclose()


def at(port: int) -> str:
    return f"http://localhost:{port}"


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(2):
        while not holds():
            await asyncio.sleep(0.005)


async def test_off_is_off() -> None:
    desk = Desk("off")
    assert not desk.typed.is_allowed
    assert desk.servers.policy is None
    assert (await desk.refused(at(8000), "a")).status == 403


async def test_a_server_is_read_and_its_address_is_not_told(desk: Desk, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    assert desk.typed.is_allowed
    (snapshot,) = await desk.typed.latest("LocalHost:8000/", "a")
    assert (snapshot.source, snapshot.label, snapshot.kind, snapshot.state) == (SOURCE, LABEL, "server", "ok")
    assert set(desk.servers.asked) == {"http://localhost:8000/metrics"}
    assert "localhost" not in str(snapshot.document())
    assert "localhost" not in caplog.text


async def test_a_real_server_is_read_in_its_mode_and_in_no_other(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    with metrics_server() as served:
        typed = TypedServers(Settings(typed_servers="local"))
        (snapshot,) = await typed.latest(served.address, "a")
        assert snapshot.state == "ok"
        await typed.aclose()
        asked = len(served.asked)
        assert asked >= 1
        for mode in ("lan", "public"):
            with pytest.raises(ProblemError):  # In a network, its port is none of those that servers use.
                await TypedServers(Settings(typed_servers=mode)).latest(served.address, "a")
        assert len(served.asked) == asked
    assert str(served.port) not in caplog.text


async def test_an_address_has_one_form(desk: Desk) -> None:
    assert desk.typed.validate(" LOCALHOST:8000/ ") == "http://localhost:8000"
    with pytest.raises(ProblemError) as refused:
        desk.typed.validate("http://10.0.0.1:8000")
    assert refused.value.status == 422
    assert [error.path for error in refused.value.errors] == ["address"]


async def test_all_who_look_at_a_server_share_one_sampler(desk: Desk) -> None:
    async with desk.typed.watch(at(8000), "a") as one, desk.typed.watch("localhost:8000", "b") as other:
        first, second = await anext(one), await anext(other)
        assert first is second
        assert await desk.typed.latest(at(8000), "c") is first
    assert desk.typed.held == 1
    assert len(desk.servers.asked) == len(set(desk.servers.asked))


async def test_a_client_looks_at_two_servers(desk: Desk) -> None:
    async with AsyncExitStack() as stack:
        for port in range(8000, 8000 + MOST_OF_A_CLIENT):
            await stack.enter_async_context(desk.typed.watch(at(port), "a"))
        refused = await desk.refused(at(8002), "a")
        assert (refused.status, refused.headers) == (429, {"Retry-After": "10"})
        await desk.typed.latest(at(8000), "a")  # One that it looks at already,
        await desk.typed.latest(at(8002), "b")  # and another client.
    await desk.typed.latest(at(8002), "a")


async def test_a_ninth_server_finds_no_room(desk: Desk) -> None:
    async with AsyncExitStack() as stack:
        for number in range(MOST_SERVERS):
            await stack.enter_async_context(desk.typed.watch(at(8000 + number), f"client {number}"))
        refused = await desk.refused(at(9000), "late")
        assert (refused.status, refused.headers) == (503, {"Retry-After": "5"})
        await desk.typed.latest(at(8000), "late")
    await desk.typed.latest(at(9000), "late")
    assert desk.typed.held == MOST_SERVERS


async def test_a_server_is_forgotten_a_minute_after_the_last_look(desk: Desk) -> None:
    await desk.typed.latest(at(8000), "a")
    desk.clock.now += KEPT_S - 1
    await desk.typed.latest(at(8001), "b")
    assert desk.typed.held == 2
    desk.clock.now += 1
    async with desk.typed.watch(at(8002), "c"):
        assert desk.typed.held == 2
        desk.clock.now += 10 * KEPT_S
        await desk.typed.latest(at(8003), "d")
        assert desk.typed.held == 2  # The one that is looked at, and the newest.


async def test_who_names_one_server_after_the_other_takes_the_room_of_two(desk: Desk) -> None:
    await desk.typed.latest(at(7999), "other")
    for port in range(8000, 8010):
        await desk.typed.latest(at(port), "a")
        desk.clock.now += 0.1
    assert desk.typed.held == 1 + MOST_OF_A_CLIENT
    asked = len(desk.servers.asked)
    for port in (8009, 8008):  # The last two are still there.
        await desk.typed.latest(at(port), "a")
    assert len(desk.servers.asked) == asked


def test_a_gate_that_is_shut_lets_nothing_through() -> None:
    fetched = FetchedText(200, "text/plain", METRICS)
    shut_inside: list[bool] = []

    def fetch(_: Path) -> FetchedText:
        shut_inside.append(gate.shut())
        return fetched

    gate = Gate(fetch)
    assert gate("") == fetched
    assert shut_inside == [False]
    assert gate.shut()
    assert gate.shut()
    with pytest.raises(FetchFailed):
        gate("")
    assert len(shut_inside) == 1


async def test_a_server_makes_no_room_while_a_call_to_it_is_on_its_way(desk: Desk) -> None:
    """However fast somebody gives up and names another, no more calls are on their way than servers are allowed."""
    desk.servers.gate.clear()
    for port in range(8000, 8000 + MOST_OF_A_CLIENT):
        task = asyncio.create_task(desk.typed.latest(at(port), "a"))
        await until(lambda seen=port - 7999: len(desk.servers.asked) == seen)  # type: ignore[misc]
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    assert (await desk.refused(at(8002), "a")).status == 503
    desk.clock.now += 10 * KEPT_S
    assert (await desk.refused(at(8002), "a")).status == 503
    desk.servers.gate.set()
    async with asyncio.timeout(2):
        while desk.typed.held == MOST_OF_A_CLIENT:
            try:
                await desk.typed.latest(at(8002), "a")
            except ProblemError:
                await asyncio.sleep(0.01)
    assert at(8002) + "/metrics" in desk.servers.asked


async def test_what_was_named_ends_with_the_server(desk: Desk) -> None:
    ended = False
    async with desk.typed.watch(at(8000), "a") as subscription:
        async for _ in subscription:
            await desk.typed.aclose()
        ended = True
    assert ended
    refused = await desk.refused(at(8000), "a")
    assert (refused.status, "Retry-After" in refused.headers) == (503, True)


async def test_a_name_that_leads_elsewhere_is_blocked_and_no_more_is_said() -> None:
    world = World(lambda _: [], {"gpu.lan": [["169.254.169.254"]]})
    settings = Settings(typed_servers="lan")
    typed = TypedServers(settings, lambda policy: Outbound(policy, resolve=world.resolve, network=world))
    (snapshot,) = await typed.latest("http://gpu.lan:8000", "a")
    assert (snapshot.state, snapshot.absence) == ("absent", Absence.BLOCKED)
    assert world.dialled == []
    await typed.aclose()
