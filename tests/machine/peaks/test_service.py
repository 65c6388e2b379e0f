"""The server's bench: one measurement at a time, told from outside, and none that outlives the server."""

import asyncio
import json
import time
from pathlib import Path

import pytest

from app.machine.peaks.outcome import Fault, MeasureError
from app.machine.peaks.runner import Limits, held, is_held
from app.machine.peaks.service import Bench
from app.machine.probes.reading import Reading
from tests.machine.peaks.workers import card, rig, seen

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


async def idle(bench: Bench) -> None:
    """Once nothing runs any more."""
    ends_at = time.monotonic() + 10
    while bench.state().running and time.monotonic() < ends_at:
        await asyncio.sleep(0.01)
    assert not bench.state().running


async def test_a_measurement_is_begun_told_and_kept(tmp_path: Path) -> None:
    bench = Bench(rig(tmp_path))
    assert bench.state().document() == {
        "state": "idle",
        "elsewhere": False,
        "libraries": ["torch"],
        "device": None,
        "started_at": None,
        "progress": None,
        "last_error": None,
    }
    state = await bench.start()
    assert (state.running, state.elsewhere, state.device) == (True, False, 0)
    assert state.started_at is not None
    steps = []
    while bench.state().running:
        step = bench.state().progress
        if step is not None and step not in steps:
            steps.append(step)
        await asyncio.sleep(0)
    assert [step.done for step in steps] == sorted(step.done for step in steps)
    assert steps
    assert json.loads(json.dumps(bench.state().document()))["state"] == "idle"
    assert bench.state().last_error is None
    (kept,) = bench.roofs()
    assert kept.streams
    await bench.aclose()


async def test_of_two_who_ask_at_once_one_is_refused(tmp_path: Path) -> None:
    bench = Bench(rig(tmp_path))
    outcomes = await asyncio.gather(*(bench.start() for _ in range(8)), return_exceptions=True)
    refused = [outcome for outcome in outcomes if isinstance(outcome, MeasureError)]
    assert len(refused) == 7
    assert {error.fault for error in refused} == {Fault.RUNNING}
    await idle(bench)
    assert bench.state().last_error is None
    assert len(bench.roofs()) == 1
    await bench.aclose()


async def test_a_refusal_is_raised_and_told(tmp_path: Path) -> None:
    busy = seen(card(memory_used_bytes=Reading(40 * 2**30, "B")))
    bench = Bench(rig(tmp_path, busy, seen(card())))
    with pytest.raises(MeasureError, match="Other programs use the card") as caught:
        await bench.start()
    state = bench.state()
    assert not state.running
    assert state.last_error is caught.value
    assert state.document()["last_error"] == {"code": "card_in_use", "message": caught.value.message}
    await bench.start()
    assert bench.state().last_error is None
    await idle(bench)
    await bench.aclose()


async def test_a_failure_behind_the_admission_is_told(tmp_path: Path) -> None:
    bench = Bench(rig(tmp_path, told={"behaviour": "die"}))
    await bench.start()
    await idle(bench)
    error = bench.state().last_error
    assert error is not None
    assert error.fault is Fault.DIED
    assert bench.roofs() == ()


async def test_a_worker_that_hangs_costs_its_time_and_no_more(tmp_path: Path) -> None:
    bench = Bench(rig(tmp_path, told={"behaviour": "hang"}, limits=Limits(0.2)))
    await bench.start()
    await idle(bench)
    error = bench.state().last_error
    assert error is not None
    assert error.fault is Fault.TIMEOUT


async def test_what_runs_elsewhere_is_told_and_in_the_way(tmp_path: Path) -> None:
    asked = rig(tmp_path)
    bench = Bench(asked)
    with held(asked.lock):
        state = bench.state()
        assert (state.running, state.elsewhere) == (True, True)
        with pytest.raises(MeasureError) as caught:
            await bench.start()
        assert caught.value.fault is Fault.RUNNING
    assert not bench.state().running


async def test_the_server_stops_in_time_and_leaves_nothing_behind(tmp_path: Path) -> None:
    asked = rig(tmp_path, told={"behaviour": "hang"})
    bench = Bench(asked)
    await bench.start()
    assert is_held(asked.lock)
    begun_at = time.monotonic()
    await bench.aclose()
    assert time.monotonic() - begun_at < 3
    assert not is_held(asked.lock)  # which the worker would hold if it lived
    assert not bench.state().running
    with pytest.raises(MeasureError) as caught:
        await bench.start()
    assert caught.value.fault is Fault.STOPPED
    await bench.aclose()


async def test_who_asks_while_the_server_stops_is_told(tmp_path: Path) -> None:
    hanging = asyncio.Event()

    async def never() -> tuple[()]:
        await hanging.wait()
        return ()

    asked = rig(tmp_path)
    bench = Bench(type(asked)(readings=never, store=asked.store, libraries=asked.libraries, lock=asked.lock))
    asking = asyncio.create_task(bench.start())
    await asyncio.sleep(0.01)
    await bench.aclose()
    with pytest.raises(MeasureError) as caught:
        await asking
    assert caught.value.fault is Fault.STOPPED


async def test_a_mistake_of_ours_is_told_calmly(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def broken() -> tuple[()]:
        raise RuntimeError("the secret cause")

    asked = rig(tmp_path)
    bench = Bench(type(asked)(readings=broken, store=asked.store, libraries=asked.libraries, lock=asked.lock))
    with pytest.raises(MeasureError) as caught:
        await bench.start()
    assert caught.value.fault is Fault.UNFORESEEN
    assert "secret" not in caught.value.message
    assert "the secret cause" in caplog.text
    assert not is_held(asked.lock)


async def test_what_cannot_be_asked_is_no_measurement(tmp_path: Path) -> None:
    bench = Bench(rig(tmp_path))
    with pytest.raises(ValueError, match="seconds"):
        await bench.start(0, float("inf"))
    assert not bench.state().running
