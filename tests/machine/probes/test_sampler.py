import asyncio
import threading
import time
from contextlib import AsyncExitStack

import pytest

from app.machine.probes.sampler import HISTORY_ROUNDS, HISTORY_S, Sampler, TooManyViewersError
from tests.machine.probes.scripted import ScriptedProbe, held_by, nothing_left_behind, probe_threads, settled

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


async def test_fifty_viewers_cost_one_call_an_interval() -> None:
    async with nothing_left_behind():
        probe = ScriptedProbe()
        sampler = Sampler([probe], interval_s=0.1)
        seen = [0] * 50

        async def watch(viewer: int) -> None:
            async with sampler.subscribe() as subscription:
                async for (snapshot,) in subscription:
                    assert snapshot.state == "ok"
                    seen[viewer] += 1

        started = time.monotonic()
        watchers = [asyncio.create_task(watch(viewer)) for viewer in range(50)]
        await asyncio.sleep(0.55)
        elapsed = time.monotonic() - started
        assert sampler.viewers == 50
        assert 2 <= probe.calls <= elapsed / 0.1 + 1
        await sampler.aclose()
        await asyncio.gather(*watchers)
        assert min(seen) >= probe.calls - 1
        assert (probe.most_at_once, probe.closed, sampler.viewers) == (1, 1, 0)


async def test_nobody_watching_costs_nothing() -> None:
    async with nothing_left_behind():
        probe = ScriptedProbe()
        sampler = Sampler([probe], interval_s=0.02)
        await asyncio.sleep(0.1)
        assert probe.calls == 0
        async with sampler.subscribe() as subscription:
            await anext(subscription)
        calls = probe.calls
        await asyncio.sleep(0.1)
        assert probe.calls == calls
        await sampler.aclose()


async def test_latest_is_cached_for_an_interval_and_shared() -> None:
    now = [100.0]
    async with nothing_left_behind():
        probe = ScriptedProbe(lambda: time.sleep(0.02))
        sampler = Sampler([probe], interval_s=1.0, clock=lambda: now[0])
        answers = await asyncio.gather(*(sampler.latest() for _ in range(20)))
        assert probe.calls == 1
        assert all(answer is answers[0] for answer in answers)
        now[0] += 0.9
        assert await sampler.latest() is answers[0]
        now[0] += 0.1
        assert (await sampler.latest())[0].driver_version.value == "2"
        async with sampler.subscribe() as subscription:
            assert (await anext(subscription))[0].driver_version.value == "2"
        assert probe.calls == 2
        await sampler.aclose()


async def test_a_caller_that_gives_up_does_not_spoil_the_round_of_the_others() -> None:
    async with nothing_left_behind():
        probe = ScriptedProbe(lambda: time.sleep(0.1))
        sampler = Sampler([probe], interval_s=10)
        impatient, patient = (asyncio.create_task(sampler.latest()) for _ in range(2))
        await asyncio.sleep(0.02)
        impatient.cancel()
        assert (await patient)[0].state == "ok"
        assert probe.calls == 1
        await sampler.aclose()


async def test_the_last_minute_is_remembered_and_no_more() -> None:
    now = [1_000.0]
    async with nothing_left_behind():
        sampler = Sampler([ScriptedProbe()], interval_s=1, clock=lambda: now[0])
        assert list(sampler.history) == []
        for _ in range(90):
            now[0] += 1
            await sampler.latest()
        numbers = [int(snapshot.driver_version.value or 0) for (snapshot,) in sampler.history]
        assert numbers == list(range(30, 91)), "the oldest first, the newest last"
        assert sampler.history[-1] is await sampler.latest()
        now[0] += HISTORY_S + 1
        assert list(sampler.history) == [], "what is older than a minute is no tail of now"
        await sampler.aclose()


async def test_the_history_is_bounded_however_short_the_interval_is() -> None:
    now = [1_000.0]
    async with nothing_left_behind():
        sampler = Sampler([ScriptedProbe()], interval_s=0.001, clock=lambda: now[0])
        for _ in range(HISTORY_ROUNDS + 20):
            now[0] += 0.002
            await sampler.latest()
        assert len(sampler.history) == HISTORY_ROUNDS
        await sampler.aclose()


async def test_a_slow_viewer_gets_the_newest_and_no_backlog() -> None:
    async with nothing_left_behind():
        probe = ScriptedProbe()
        sampler = Sampler([probe], interval_s=0.02)
        async with sampler.subscribe() as subscription:
            await anext(subscription)
            await asyncio.sleep(0.2)
            calls = probe.calls
            assert calls >= 4
            (snapshot,) = await anext(subscription)
            assert int(snapshot.driver_version.value or 0) >= calls - 1
        await sampler.aclose()


async def test_one_viewer_too_many_is_refused_and_a_place_that_is_left_is_free() -> None:
    async with nothing_left_behind():
        sampler = Sampler([ScriptedProbe()], interval_s=1, max_viewers=2)
        async with AsyncExitStack() as stack:
            for _ in range(2):
                await stack.enter_async_context(sampler.subscribe())
            with pytest.raises(TooManyViewersError, match="2 viewers"):
                await stack.enter_async_context(sampler.subscribe())
        async with sampler.subscribe() as subscription:
            await anext(subscription)
        await sampler.aclose()


async def test_a_viewer_that_is_cancelled_leaves_its_place() -> None:
    async with nothing_left_behind():
        sampler = Sampler([ScriptedProbe()], interval_s=10)

        async def watch() -> None:
            async with sampler.subscribe() as subscription:
                async for _ in subscription:
                    pass

        task = asyncio.create_task(watch())
        assert await settled(lambda: sampler.viewers == 1)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        assert sampler.viewers == 0
        await sampler.aclose()


async def test_shutdown_takes_less_than_a_second_though_a_driver_hangs() -> None:
    async with nothing_left_behind():
        release = threading.Event()
        hung, idle = ScriptedProbe(held_by(release)), ScriptedProbe()
        sampler = Sampler([hung, idle], interval_s=0.05)
        ended: list[bool] = []

        async def watch() -> None:
            async with sampler.subscribe() as subscription:
                async for _ in subscription:
                    pass
            ended.append(True)

        watchers = [asyncio.create_task(watch()) for _ in range(5)]
        caller = asyncio.create_task(sampler.latest())
        assert await settled(lambda: hung.calls == 1)
        started = time.monotonic()
        await sampler.aclose()
        await asyncio.gather(*watchers)
        assert time.monotonic() - started < 1
        assert len(ended) == 5
        assert await caller == ()
        assert (idle.closed, hung.closed) == (1, 0)
        release.set()
        assert await settled(lambda: hung.closed == 1), "the hung call closes its probe when it returns"


async def test_a_closed_sampler_stays_calm() -> None:
    async with nothing_left_behind():
        probe = ScriptedProbe()
        sampler = Sampler([probe], interval_s=0.001)
        before = await sampler.latest()
        await sampler.aclose()
        await sampler.aclose()
        await asyncio.sleep(0.01)
        assert await sampler.latest() == before
        async with sampler.subscribe() as subscription:
            assert [item async for item in subscription] == []
        assert probe.calls == 1


def test_a_driver_that_never_answers_does_not_keep_the_loop_from_ending() -> None:
    release = threading.Event()

    async def main() -> None:
        sampler = Sampler([ScriptedProbe(held_by(release))], timeout_s=0.05)
        await sampler.latest()

    started = time.monotonic()
    asyncio.run(main())
    assert time.monotonic() - started < 1
    (thread,) = probe_threads()
    assert thread.daemon
    release.set()
    thread.join(2)
    assert not thread.is_alive()
