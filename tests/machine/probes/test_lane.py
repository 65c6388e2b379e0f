"""One probe behind the sampler: what is shown when it is slow, fails for a while, or raises."""

import asyncio
import threading
import time
from dataclasses import replace

import pytest

from app.machine.probes.lane import STALE_LIMIT_S
from app.machine.probes.reading import Absence
from app.machine.probes.sampler import Sampler
from app.machine.probes.snapshot import ProbeSnapshot
from tests.machine.probes.scripted import ScriptedProbe, held_by, nothing_left_behind, probe_threads, settled

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


async def test_a_slow_probe_is_stale_and_never_piles_up_threads() -> None:
    async with nothing_left_behind():
        release = threading.Event()
        release.set()
        slow, quick = ScriptedProbe(held_by(release)), ScriptedProbe()
        sampler = Sampler([slow, quick], interval_s=0.01, timeout_s=0.1)
        first, _ = await sampler.latest()
        release.clear()
        for polls in range(1, 11):
            await asyncio.sleep(0.011)
            stale, good = await sampler.latest()
            assert (stale.state, stale.missed_polls, stale.absence) == ("ok", polls, Absence.TIMEOUT)
            assert stale.stale == (polls >= 2)
            assert stale.taken_at == first.taken_at
            assert (good.missed_polls, good.stale) == (0, False)
        assert (slow.calls, slow.most_at_once) == (2, 1)
        assert quick.calls == 11
        assert await settled(lambda: len(probe_threads()) == 1)
        release.set()
        assert await settled(lambda: not probe_threads())
        await asyncio.sleep(0.02)
        fresh, _ = await sampler.latest()
        assert (fresh.missed_polls, fresh.stale, fresh.absence) == (0, False, None)
        assert fresh.driver_version.value == "2"
        await sampler.aclose()


async def test_an_answer_that_came_when_nobody_waited_is_an_earlier_one_and_not_new() -> None:
    delays = [0.15, 0.0]

    def late_and_then_failing() -> Absence | None:
        time.sleep(delays.pop(0))
        return None if delays else Absence.UNKNOWN_ERROR

    async with nothing_left_behind():
        probe = ScriptedProbe(late_and_then_failing)
        sampler = Sampler([probe], interval_s=0.01, timeout_s=0.1)
        (timed_out,) = await sampler.latest()
        assert timed_out.absence is Absence.TIMEOUT
        await asyncio.sleep(0.3)
        (snapshot,) = await sampler.latest()
        assert (snapshot.driver_version.value, snapshot.absence) == ("1", Absence.UNKNOWN_ERROR)
        assert (snapshot.missed_polls, snapshot.stale) == (1, False)
        await sampler.aclose()


async def test_a_failure_that_came_late_leaves_what_was_good_before() -> None:
    answers: list[tuple[float, Absence | None]] = [(0, None), (0.15, Absence.UNKNOWN_ERROR), (0, Absence.UNKNOWN_ERROR)]

    def act() -> Absence | None:
        delay_s, absence = answers.pop(0)
        time.sleep(delay_s)
        return absence

    async with nothing_left_behind():
        sampler = Sampler([ScriptedProbe(act)], interval_s=0.001, timeout_s=0.1)
        seen: list[tuple[str, str | None, int]] = []
        for pause_s in (0.002, 0.3, 0):
            (snapshot,) = await sampler.latest()
            seen.append((snapshot.state, snapshot.driver_version.value, snapshot.missed_polls))
            await asyncio.sleep(pause_s)
        assert seen == [("ok", "1", 0), ("ok", "1", 1), ("ok", "1", 2)]
        await sampler.aclose()


async def test_a_probe_that_was_never_answered_is_a_timeout() -> None:
    async with nothing_left_behind():
        release = threading.Event()
        sampler = Sampler([ScriptedProbe(held_by(release))], interval_s=1, timeout_s=0.05)
        (snapshot,) = await sampler.latest()
        assert (snapshot.state, snapshot.absence) == ("absent", Absence.TIMEOUT)
        release.set()
        await sampler.aclose()


@pytest.mark.parametrize("absence", [Absence.UNKNOWN_ERROR, Absence.TIMEOUT, Absence.UNREACHABLE])
async def test_what_may_pass_leaves_the_last_good_snapshot_for_a_while(absence: Absence) -> None:
    now = [100.0]
    answers: list[Absence | None] = [None, absence, absence, absence, None, absence, Absence.NO_DRIVER, absence]
    async with nothing_left_behind():
        probe = ScriptedProbe(lambda: answers.pop(0))
        sampler = Sampler([probe], interval_s=1, clock=lambda: now[0])
        seen: list[ProbeSnapshot] = []
        for pause_s in (0.0, 1.0, 1.0, STALE_LIMIT_S, 1.0, 1.0, 1.0, 1.0):
            now[0] += pause_s
            seen.extend(await sampler.latest())
        assert [(s.state, s.missed_polls, s.stale, s.absence) for s in seen] == [
            ("ok", 0, False, None),
            ("ok", 1, False, absence),
            ("ok", 2, True, absence),
            ("absent", 0, False, absence),
            ("ok", 0, False, None),
            ("ok", 1, False, absence),
            ("absent", 0, False, Absence.NO_DRIVER),
            ("absent", 0, False, absence),
        ], "what was before a driver went says nothing of what comes after"
        await sampler.aclose()


async def test_a_failure_that_a_probe_hands_over_twice_was_missed_once() -> None:
    now = [100.0]
    async with nothing_left_behind():
        probe = ScriptedProbe()
        failure = ProbeSnapshot.absent(probe.name, probe.label, probe.kind, Absence.UNREACHABLE)
        answers = [ScriptedProbe().snapshot(), failure, failure, replace(failure)]
        probe.snapshot = lambda: answers.pop(0)  # type: ignore[method-assign]
        sampler = Sampler([probe], interval_s=1, clock=lambda: now[0])
        seen: list[int] = []
        for _ in range(4):
            now[0] += 1
            seen.extend(snapshot.missed_polls for snapshot in await sampler.latest())
        assert seen == [0, 1, 1, 2]
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
