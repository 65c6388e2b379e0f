"""Imports from the hub: what is remembered, many who ask at a time, and the hub in the application."""

import asyncio
from collections.abc import Callable

import pytest
from fastapi import FastAPI
from starlette.testclient import TestClient

from app.features.importing.hub import Hub, HubError, HubFault
from app.main import create_app
from app.outbound.policy import TooLargeError, TooSlowError, UnreachableError
from app.settings import Settings
from tests.web.hub_library import BASE, CONFIG, Clock, Library, Page, fault, found, hub_of, refused, with_config

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


# What is remembered


async def test_the_same_question_is_answered_from_memory_for_a_while() -> None:
    library, clock = with_config(found(CONFIG)), Clock()
    hub = hub_of(library, clock, hub_cache_s=900)
    for _ in range(3):
        await hub.fetch("owner/name")
    assert len(library.asked) == 2
    clock.now = 899
    await hub.fetch("owner/name")
    assert len(library.asked) == 2
    clock.now = 901
    await hub.fetch("owner/name")
    assert len(library.asked) == 4


async def test_no_memory_where_none_is_wanted() -> None:
    library = with_config(found(CONFIG))
    hub = hub_of(library, hub_cache_s=0)
    for _ in range(2):
        await hub.fetch("owner/name")
    assert len(library.asked) == 4


@pytest.mark.parametrize(
    ("page", "remembered_s"),
    [
        (refused(404), 60),
        (refused(401), 60),
        (TooLargeError("x"), 60),
        (found(b"NaN"), 60),
        (UnreachableError("x"), 10),
        (TooSlowError("x"), 10),
    ],
    ids=["not found", "gated", "too large", "not JSON", "unreachable", "too slow"],
)
async def test_failures_are_remembered_too_but_not_for_long(page: Page, remembered_s: float) -> None:
    library, clock = with_config(page), Clock()
    hub = hub_of(library, clock)
    first = await fault(hub)
    second = await fault(hub)
    assert (second.fault, second.detail) == (first.fault, first.detail)
    assert second is not first
    assert len(library.asked) == 1
    clock.now = remembered_s + 1
    library.pages[f"{BASE}/main/config.json"] = found(CONFIG)
    assert (await hub.fetch("owner/name")).config == CONFIG


async def test_nobody_can_change_what_others_get() -> None:
    hub = hub_of(with_config(found({"layers": {"n": 1}})))
    (await hub.fetch("owner/name")).config["layers"]["n"] = 2
    assert (await hub.fetch("owner/name")).config == {"layers": {"n": 1}}


async def test_revisions_are_remembered_apart() -> None:
    library = Library({f"{BASE}/{name}/config.json": found({"at": name}) for name in ("main", "v1")})
    hub = hub_of(library)
    assert (await hub.fetch("owner/name")).config == {"at": "main"}
    assert (await hub.fetch("owner/name", "v1")).config == {"at": "v1"}


# Many at a time


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(2):
        while not condition():
            await asyncio.sleep(0)


async def test_many_who_ask_at_the_same_time_are_one_request() -> None:
    library = with_config(found(CONFIG))
    library.gate.clear()
    hub = hub_of(library)
    waiting = [asyncio.create_task(hub.fetch("owner/name")) for _ in range(50)]
    await until(lambda: len(library.asked) == 1)
    library.gate.set()
    assert {imported.source for imported in await asyncio.gather(*waiting)} == {f"{BASE}/main/config.json"}
    assert len(library.asked) == 2


async def test_a_failure_is_shared_by_all_who_wait() -> None:
    library = with_config(UnreachableError("x"))
    library.gate.clear()
    hub = hub_of(library, hub_cache_s=0)
    waiting = [asyncio.create_task(hub.fetch("owner/name")) for _ in range(5)]
    await until(lambda: len(library.asked) == 1)
    library.gate.set()
    outcomes = await asyncio.gather(*waiting, return_exceptions=True)
    assert all(isinstance(outcome, HubError) for outcome in outcomes)
    assert len({id(outcome) for outcome in outcomes}) == 5
    assert len(library.asked) == 1


async def test_who_gives_up_does_not_stop_it_for_the_others() -> None:
    library = with_config(found(CONFIG))
    library.gate.clear()
    hub = hub_of(library)
    first, second = (asyncio.create_task(hub.fetch("owner/name")) for _ in range(2))
    await until(lambda: len(library.asked) == 1)
    first.cancel()
    with pytest.raises(asyncio.CancelledError):
        await first
    library.gate.set()
    assert (await second).config == CONFIG


async def test_when_all_have_given_up_the_answer_is_still_remembered() -> None:
    library = with_config(found(CONFIG))
    library.gate.clear()
    hub = hub_of(library)
    only = asyncio.create_task(hub.fetch("owner/name"))
    await until(lambda: len(library.asked) == 1)
    only.cancel()
    library.gate.set()
    await until(lambda: len(library.asked) == 2)
    assert (await hub.fetch("owner/name")).config == CONFIG
    assert len(library.asked) == 2


async def test_more_than_are_allowed_at_a_time_are_turned_away() -> None:
    library = Library({})
    library.gate.clear()
    hub = hub_of(library, hub_max_parallel=2)
    running = [asyncio.create_task(hub.fetch(f"owner/{number}")) for number in range(2)]
    await until(lambda: len(library.asked) == 2)
    failed = await fault(hub, "owner/third")
    assert (failed.fault, failed.status, failed.headers) == (HubFault.BUSY, 503, {"Retry-After": "5"})
    again = asyncio.create_task(hub.fetch("owner/0"))  # Who asks for what is under way anyway costs nothing.
    await asyncio.sleep(0)
    library.gate.set()
    await asyncio.gather(*running, again, return_exceptions=True)
    assert (await fault(hub, "owner/third")).fault is HubFault.NOT_FOUND


async def test_closing_ends_what_is_under_way_and_what_comes_after() -> None:
    library = with_config(found(CONFIG))
    library.gate.clear()
    hub = hub_of(library)
    waiting = asyncio.create_task(hub.fetch("owner/name"))
    await until(lambda: len(library.asked) == 1)
    await hub.aclose()
    with pytest.raises(HubError) as failed:
        await waiting
    assert failed.value.fault is HubFault.UNREACHABLE
    assert (await fault(hub)).fault is HubFault.UNREACHABLE
    assert len(library.asked) == 1


# In the application


def test_the_app_has_a_hub_that_is_off_and_is_closed_at_the_end(settings: Settings) -> None:
    app = create_app(settings)
    with TestClient(app):
        hub: Hub = app.state.services.hub
        assert not hub.is_allowed
    assert asyncio.run(fault(hub)).fault is HubFault.NOT_ALLOWED


def test_an_operator_can_allow_it(settings: Settings) -> None:
    app = create_app(settings.model_copy(update={"hub_import": True, "hub_redirect_hosts": ("files.example",)}))
    with TestClient(app):
        hub: Hub = app.state.services.hub
        assert hub.is_allowed
    assert asyncio.run(fault(hub)).fault is HubFault.UNREACHABLE  # Closed, so that it reaches nobody.


def test_left_alone_in_a_route_the_failure_is_the_right_answer(app: FastAPI) -> None:
    @app.post("/api/v1/test-import")
    async def route() -> None:
        await app.state.services.hub.fetch("owner/name")

    app.router.routes.insert(0, app.router.routes.pop())
    with TestClient(app) as client:
        answer = client.post("/api/v1/test-import")
    assert answer.status_code == 403
    assert answer.headers["content-type"] == "application/problem+json"
    assert "TOKENROOF_HUB_IMPORT" in answer.json()["detail"]
