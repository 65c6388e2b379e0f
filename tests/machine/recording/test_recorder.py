import asyncio
import logging
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, closing
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from sqlalchemy import Engine

from app.machine.probes.sampler import Sampler
from app.machine.probes.snapshot import ProbeSnapshot
from app.machine.recording.recorder import COMPLAIN_EVERY_S, POLL_S, PRUNE_EVERY_S, Recorder, RecorderState
from app.settings import ROOT, Settings
from app.store.database import connect, create_store_engine
from app.store.disk import Seat, recorder_lock_path
from app.store.errors import StoreUnavailableError
from app.store.samples import RecorderSpan, Sample, Samples, Span
from tests.recorded_rounds import CANARY, host, round_of

pytestmark = pytest.mark.anyio
ON, OFF = Settings(recording=True), Settings(recording=False)
HOUR = timedelta(hours=1)
HOLDER = (
    "import sys, time; from pathlib import Path; from app.store.disk import Seat; seat = Seat(Path(sys.argv[1]));"
    "print(seat.take(), flush=True); time.sleep(60)"
)


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


class Machine:
    """A clock that a test turns, and the readings of that moment."""

    def __init__(self, start: datetime) -> None:
        self.start, self.passed_s, self.asked = start, 0.0, 0
        self.failure: Exception | None = None

    def clock(self) -> float:
        return self.passed_s

    def now(self) -> datetime:
        return self.start + timedelta(seconds=self.passed_s)

    async def latest(self) -> Sequence[ProbeSnapshot]:
        self.asked += 1
        if self.failure is not None:
            raise self.failure
        return (host(self.now()),)


class Desk:
    """A database, a machine, and recorders that look at both every ten milliseconds."""

    def __init__(self, engine: Engine, now: datetime) -> None:
        self.engine, self.machine, self.samples = engine, Machine(now), Samples(engine)

    @asynccontextmanager
    async def recorder(
        self, settings: Settings, *, engine: Engine | None = None, machine: Machine | None = None
    ) -> AsyncIterator[Recorder]:
        seen = machine or self.machine
        recorder = Recorder(seen, engine or self.engine, settings, now=seen.now, clock=seen.clock, poll_s=0.01)
        recorder.open()
        try:
            yield recorder
        finally:
            await recorder.aclose()

    def moments(self) -> list[float]:
        batches = self.samples.stream(self.machine.start, self.machine.start + 99 * HOUR)
        return [(sample.taken_at - self.machine.start).total_seconds() for batch in batches for sample in batch]


@pytest.fixture
def desk(engine: Engine, now: datetime) -> Desk:
    return Desk(engine, now)


async def until(condition: Callable[[], bool], within_s: float = 5.0) -> None:
    deadline_s = time.monotonic() + within_s
    while not condition():
        assert time.monotonic() < deadline_s, "it did not come about"
        await asyncio.sleep(0.005)


async def nothing_more(condition: Callable[[], object]) -> None:
    """Several looks of the recorder later it is still so."""
    before = condition()
    await asyncio.sleep(0.1)
    assert condition() == before


async def test_rounds_are_recorded_at_their_pace_and_a_slow_machine_makes_up_for_none(desk: Desk) -> None:
    async with desk.recorder(ON):
        await until(lambda: desk.moments() == [0])
        await nothing_more(lambda: desk.machine.asked)
        for passed_s, recorded in ((9.9, [0]), (10.4, [0, 10.4]), (20, [0, 10.4, 20]), (57, [0, 10.4, 20, 57])):
            desk.machine.passed_s = passed_s
            await until(lambda recorded=recorded: desk.moments() == recorded)  # type: ignore[misc]
        await nothing_more(desk.moments)


async def test_off_it_asks_no_probe_and_on_demand_it_records_until_the_end(desk: Desk, now: datetime) -> None:
    async with desk.recorder(OFF) as recorder:
        await nothing_more(lambda: desk.machine.asked)
        assert await recorder.state() == RecorderState(is_on=False, by_setting=False)
        assert await recorder.start(2) == RecorderState(True, False, now, now + 2 * HOUR) == await recorder.state()
        await until(lambda: desk.moments() == [0])
        desk.machine.passed_s = 2 * 3600 - 1
        await until(lambda: desk.moments() == [0, 2 * 3600 - 1])
        desk.machine.passed_s = 2 * 3600 + 30
        await nothing_more(desk.moments)
        assert await recorder.state() == RecorderState(False, False)


async def test_stop_ends_it_at_once_and_start_begins_without_waiting_for_the_poll(desk: Desk, path: Path) -> None:
    recorder = Recorder(desk.machine, desk.engine, OFF, now=desk.machine.now, clock=desk.machine.clock)
    assert POLL_S >= 1
    recorder.open()
    await asyncio.sleep(0.05)
    await recorder.start(1)
    await until(lambda: desk.moments() == [0], within_s=POLL_S / 2)
    assert await recorder.stop() == RecorderState(False, False)
    other = Seat(recorder_lock_path(path))
    await until(other.take, within_s=POLL_S / 2)
    other.leave()
    await recorder.aclose()


async def test_between_two_looks_it_rests(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    looks: list[datetime] = []
    look = RecorderSpan.current

    def counted(span: RecorderSpan, now: datetime) -> Span | None:
        looks.append(now)
        return look(span, now)

    monkeypatch.setattr(RecorderSpan, "current", counted)
    recorder = Recorder(desk.machine, desk.engine, OFF)
    recorder.open()
    await recorder.start(1)
    await recorder.stop()
    await asyncio.sleep(0.2)
    await recorder.aclose()
    assert 1 <= len(looks) <= 8, "one for each thing that happened, and no more of its own"


async def test_stop_does_not_overrule_the_operator(desk: Desk, now: datetime) -> None:
    async with desk.recorder(ON) as recorder:
        assert await recorder.start(1) == RecorderState(True, True, now, now + HOUR)
        assert await recorder.stop() == RecorderState(True, True)
        await until(lambda: desk.moments() == [0])
        desk.machine.passed_s = 10
        await until(lambda: desk.moments() == [0, 10])


@pytest.mark.parametrize("hours", [0, -1, float("nan"), float("-inf"), -1e308, 1e-300])
async def test_hours_must_be_positive(desk: Desk, hours: float) -> None:
    async with desk.recorder(OFF) as recorder:
        with pytest.raises(ValueError, match="positive number of hours"):
            await recorder.start(hours)
        assert not (await recorder.state()).is_on


@pytest.mark.parametrize("hours", [49, 1e308, float("inf")])
async def test_nobody_records_for_longer_than_readings_are_kept(desk: Desk, now: datetime, hours: float) -> None:
    async with desk.recorder(OFF) as recorder:
        assert (await recorder.start(hours)).until == now + timedelta(hours=OFF.record_keep_hours)


async def test_old_readings_are_forgotten_whether_it_records_or_not(desk: Desk, now: datetime) -> None:
    figures = {"cpu_percent": 1.0}
    keep = timedelta(hours=OFF.record_keep_hours)
    desk.samples.add([Sample(now - keep - HOUR, "host", figures), Sample(now - keep + HOUR / 60, "host", figures)])
    async with desk.recorder(OFF):
        await until(lambda: desk.samples.count() == 1)
        desk.machine.passed_s = PRUNE_EVERY_S + 1
        await until(lambda: desk.samples.count() == 0)


async def test_of_two_recorders_one_records_and_the_other_takes_over(desk: Desk, path: Path) -> None:
    other_engine, other_machine = create_store_engine(path), Machine(desk.machine.start)
    async with desk.recorder(ON) as first:
        await until(lambda: desk.machine.asked == 1)
        async with desk.recorder(ON, engine=other_engine, machine=other_machine):
            desk.machine.passed_s = other_machine.passed_s = 10
            await until(lambda: desk.moments() == [0, 10])
            await nothing_more(desk.moments)
            assert other_machine.asked == 0
            await first.aclose()
            other_machine.passed_s = 20
            await until(lambda: desk.moments() == [0, 10, 20])
    assert desk.machine.asked == 2
    other_engine.dispose()


async def test_wish_made_in_one_process_is_met_by_another(desk: Desk, path: Path) -> None:
    other_engine = create_store_engine(path)
    async with desk.recorder(OFF, engine=other_engine) as other:
        recorder = Recorder(desk.machine, desk.engine, OFF, now=desk.machine.now)  # never opened: it only asks
        state = await recorder.start(1)
        await until(lambda: desk.moments() == [0])
        assert await other.state() == state
        await recorder.stop()
        desk.machine.passed_s = 10
        await nothing_more(lambda: desk.machine.asked)
    other_engine.dispose()


async def test_killed_recorder_is_followed_by_another(desk: Desk, path: Path) -> None:
    child = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(recorder_lock_path(path))], stdout=subprocess.PIPE, text=True, cwd=ROOT
    )
    try:
        assert child.stdout is not None
        assert child.stdout.readline() == "True\n"
        async with desk.recorder(ON):
            await nothing_more(lambda: desk.machine.asked)
            assert desk.machine.asked == 0
            child.kill()
            child.wait()
            await until(lambda: desk.moments() == [0])
    finally:
        child.kill()
        child.communicate()


async def test_busy_store_costs_its_rounds_and_one_line_a_minute(
    desk: Desk, path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    hasty = create_store_engine(path, busy_timeout_ms=5)
    with caplog.at_level(logging.WARNING, "app.machine.recording.recorder"), closing(connect(path)) as other:
        other.execute("BEGIN IMMEDIATE")
        async with desk.recorder(ON, engine=hasty) as recorder:
            for round_ in range(1, 4):
                desk.machine.passed_s = 10 * (round_ - 1)
                await until(lambda round_=round_: desk.machine.asked == round_)  # type: ignore[misc]
                await nothing_more(desk.moments)
            await until(lambda: not recorder._at_work)  # the last failure is of this minute still
            for _ in range(10):
                await asyncio.sleep(0)
            assert len(caplog.records) == 1
            assert "recording the live readings failed" in caplog.text
            assert not caplog.records[0].exc_info
            other.execute("ROLLBACK")
            desk.machine.passed_s = COMPLAIN_EVERY_S
            await until(lambda: COMPLAIN_EVERY_S in desk.moments())
    assert len(caplog.records) == 1
    hasty.dispose()


async def test_unexpected_failure_is_survived_and_told_with_its_place(
    desk: Desk, caplog: pytest.LogCaptureFixture
) -> None:
    desk.machine.failure = ZeroDivisionError("a probe gone wrong")
    with caplog.at_level(logging.WARNING, "app.machine.recording.recorder"):
        async with desk.recorder(ON):
            await until(lambda: desk.machine.asked == 1)
            desk.machine.passed_s = COMPLAIN_EVERY_S
            await until(lambda: desk.machine.asked == 2)
            desk.machine.failure, desk.machine.passed_s = None, COMPLAIN_EVERY_S + 10
            await until(lambda: desk.moments() == [COMPLAIN_EVERY_S + 10])
    assert [record.getMessage() for record in caplog.records] == [
        "recording the live readings failed: a probe gone wrong"
    ] * 2
    assert "ZeroDivisionError" in caplog.text


async def test_people_hear_of_a_store_that_fails(desk: Desk, path: Path) -> None:
    recorder = Recorder(desk.machine, desk.engine, OFF)
    desk.engine.dispose()
    path.unlink()
    for asked in (recorder.state(), recorder.start(1), recorder.stop()):
        with pytest.raises(StoreUnavailableError):
            await asked
    await recorder.aclose()


async def test_closing_waits_for_no_store_and_no_probe(desk: Desk, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    entered, release = threading.Event(), threading.Event()

    def hang(_: Samples, __: Sequence[Sample]) -> None:
        entered.set()
        release.wait(10)

    monkeypatch.setattr(Samples, "add", hang)
    recorder = Recorder(desk.machine, desk.engine, ON, now=desk.machine.now, clock=desk.machine.clock, poll_s=0.01)
    recorder.open()
    await until(entered.is_set)
    started_s = time.monotonic()
    await recorder.aclose()
    assert time.monotonic() - started_s < 0.95
    release.set()
    await recorder.aclose()
    assert Seat(recorder_lock_path(path)).take()
    assert not [task for task in asyncio.all_tasks() if task.get_name() == "recorder"]


async def test_closing_lets_a_write_end(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    entered, add = threading.Event(), Samples.add

    def slow(samples: Samples, rows: Sequence[Sample]) -> None:
        entered.set()
        time.sleep(0.1)
        add(samples, rows)

    monkeypatch.setattr(Samples, "add", slow)
    async with desk.recorder(ON):
        await until(entered.is_set)
    assert desk.moments() == [0]


async def test_closing_right_after_a_wish_loses_no_cancellation(desk: Desk) -> None:
    for _ in range(3):
        async with desk.recorder(OFF) as recorder:
            await recorder.start(1)
        assert not [task for task in asyncio.all_tasks() if task.get_name() == "recorder"]


async def test_sampler_is_what_it_asks(desk: Desk) -> None:
    sampler = Sampler([])
    recorder = Recorder(sampler, desk.engine, ON)
    recorder.open()
    await asyncio.sleep(0.05)
    assert desk.samples.count() == 0
    await recorder.aclose()
    await sampler.aclose()


async def test_no_canary_reaches_any_table(desk: Desk, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def latest() -> Sequence[ProbeSnapshot]:
        return round_of(desk.machine.now())

    monkeypatch.setattr(desk.machine, "latest", latest)
    async with desk.recorder(OFF) as recorder:
        await recorder.start(1)
        await until(lambda: desk.samples.count() == 5)
    assert desk.samples.sources() == ("host", "nvidia/0", "nvidia/1", "nvidia/1/1", "server-1")
    with closing(connect(path)) as connection:
        dump = "\n".join(connection.iterdump())
    assert "power_draw_w" in dump
    stored = dump + "".join(file.read_bytes().decode("latin-1") for file in path.parent.glob(f"{path.name}*"))
    for secret in (CANARY, "GPU-", "10.0.0.7", "http", "vllm"):
        assert secret not in stored
