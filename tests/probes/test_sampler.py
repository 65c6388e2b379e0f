import asyncio
import threading
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import UTC, datetime

import pytest

from app.probes.card import ProbeSnapshot
from app.probes.lane import STALE_LIMIT_S
from app.probes.reading import Absence, Reading
from app.probes.sampler import Sampler, TooManyViewersError

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


class ScriptedProbe:
    """Counts its calls, and those at the same time; `act` decides what a call does."""

    name = "scripted"

    def __init__(self, act: Callable[[], Absence | None] = lambda: None) -> None:
        self.act = act
        self.calls = self.closed = self.at_once = self.most_at_once = 0

    def snapshot(self) -> ProbeSnapshot:
        self.calls += 1
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        call = self.calls
        try:
            absence = self.act()
        finally:
            self.at_once -= 1
        if absence is not None:
            return ProbeSnapshot.absent(self.name, absence)
        return ProbeSnapshot(self.name, "ok", None, Reading(str(call)), (), datetime.now(UTC))

    def close(self) -> None:
        self.closed += 1


def held_by(release: threading.Event) -> Callable[[], None]:
    """A driver call that hangs until it is released."""

    def hang() -> None:
        release.wait(20)

    return hang


def probe_threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name.startswith("probe-")]


async def settled(condition: Callable[[], bool], within_s: float = 2.0) -> bool:
    deadline = time.monotonic() + within_s
    while not condition() and time.monotonic() < deadline:
        await asyncio.sleep(0.005)
    return condition()


@asynccontextmanager
async def nothing_left_behind() -> AsyncIterator[None]:
    tasks, threads = asyncio.all_tasks(), probe_threads()
    yield
    assert await settled(lambda: asyncio.all_tasks() <= tasks)
    assert await settled(lambda: probe_threads() == threads)


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


async def test_a_slow_probe_is_stale_and_never_piles_up_threads() -> None:
    async with nothing_left_behind():
        release = threading.Event()
        release.set()
        slow, quick = ScriptedProbe(held_by(release)), ScriptedProbe()
        sampler = Sampler([slow, quick], interval_s=0.01, timeout_s=0.1)
        first, _ = await sampler.latest()
        release.clear()
        for _ in range(10):
            await asyncio.sleep(0.011)
            stale, good = await sampler.latest()
            assert (stale.state, stale.stale, stale.absence) == ("ok", True, Absence.TIMEOUT)
            assert stale.taken_at == first.taken_at
            assert not good.stale
        assert (slow.calls, slow.most_at_once) == (2, 1)
        assert quick.calls == 11
        assert await settled(lambda: len(probe_threads()) == 1)
        release.set()
        assert await settled(lambda: not probe_threads())
        await asyncio.sleep(0.02)
        fresh, _ = await sampler.latest()
        assert not fresh.stale
        assert fresh.driver_version.value == "2"
        await sampler.aclose()


async def test_an_answer_that_came_when_nobody_waited_is_not_shown_as_new() -> None:
    async with nothing_left_behind():
        delays = [0.15, 0.0]
        probe = ScriptedProbe(lambda: time.sleep(delays.pop(0)))
        sampler = Sampler([probe], interval_s=0.01, timeout_s=0.1)
        (timed_out,) = await sampler.latest()
        assert timed_out.absence is Absence.TIMEOUT
        await asyncio.sleep(0.3)
        (snapshot,) = await sampler.latest()
        assert snapshot.driver_version.value == "2"
        await sampler.aclose()


async def test_a_probe_that_was_never_answered_is_a_timeout() -> None:
    async with nothing_left_behind():
        release = threading.Event()
        sampler = Sampler([ScriptedProbe(held_by(release))], interval_s=1, timeout_s=0.05)
        (snapshot,) = await sampler.latest()
        assert (snapshot.state, snapshot.absence) == ("absent", Absence.TIMEOUT)
        release.set()
        await sampler.aclose()


async def test_an_unknown_error_leaves_the_last_good_snapshot_for_a_while() -> None:
    now = [100.0]
    answers: list[Absence | None] = [None, Absence.UNKNOWN_ERROR, Absence.UNKNOWN_ERROR, None, Absence.NO_DRIVER]
    async with nothing_left_behind():
        probe = ScriptedProbe(lambda: answers.pop(0))
        sampler = Sampler([probe], interval_s=1, clock=lambda: now[0])
        seen: list[ProbeSnapshot] = []
        for pause_s in (0.0, 1.0, STALE_LIMIT_S, 1.0, 1.0):
            now[0] += pause_s
            seen.extend(await sampler.latest())
        assert [(s.state, s.stale, s.absence) for s in seen] == [
            ("ok", False, None),
            ("ok", True, Absence.UNKNOWN_ERROR),
            ("absent", False, Absence.UNKNOWN_ERROR),
            ("ok", False, None),
            ("absent", False, Absence.NO_DRIVER),
        ]
        await sampler.aclose()


async def test_a_probe_that_breaks_its_promise_and_raises_is_an_unknown_error() -> None:
    def fail() -> None:
        raise RuntimeError("boom")

    async with nothing_left_behind():
        broken, good = ScriptedProbe(fail), ScriptedProbe()
        sampler = Sampler([broken, good], interval_s=1)
        first, second = await sampler.latest()
        assert (first.absence, second.state) == (Absence.UNKNOWN_ERROR, "ok")
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
