"""The worker as a child that may do anything: hang, flood, babble, die, leave children behind."""

import asyncio
import logging
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from app.machine.peaks.outcome import MOST_LINE_BYTES, Failure, Fault, MeasureError, Outcome, Progress, line_of
from app.machine.peaks.plan import Plan
from app.machine.peaks.runner import Limits, held, is_held, run_worker
from app.settings import ROOT
from tests.machine.peaks.workers import environment, no_report

PLAN = Plan(libraries=("torch",))
PROGRESS = line_of(Progress("copy", 0, 2)).decode()


def python(code: str) -> tuple[str, ...]:
    return (sys.executable, "-c", f"import os, signal, sys, time\n{code}")


def run(code: str, limits: Limits | None = None) -> Outcome:
    """What comes of a worker that is this code."""
    return asyncio.run(run_worker(PLAN, environment(), no_report, limits=limits or Limits(20), command=python(code)))


def refusal(code: str, limits: Limits | None = None) -> MeasureError:
    begun_at = time.monotonic()
    with pytest.raises(MeasureError) as caught:
        run(code, limits)
    assert time.monotonic() - begun_at < 5
    return caught.value


def is_alive(process_id: int) -> bool:
    try:
        with open(f"/proc/{process_id}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] not in ("Z", "X")
    except FileNotFoundError:
        return False


def gone(process_id: int, within_s: float = 2) -> bool:
    """Whether a process ends in time."""
    ends_at = time.monotonic() + within_s
    while is_alive(process_id) and time.monotonic() < ends_at:
        time.sleep(0.01)
    return not is_alive(process_id)


def test_a_worker_that_hangs_is_ended_with_its_children(tmp_path: Path) -> None:
    told = tmp_path / "told"
    code = f"""
child = os.fork()
if child == 0:
    time.sleep(60)
open({str(told)!r}, "w").write(f"{{os.getpid()}} {{child}}")
print({PROGRESS!r}, end="", flush=True)
time.sleep(60)
"""
    error = refusal(code, Limits(0.5))
    assert (error.fault, error.detail) == (Fault.TIMEOUT, "0.5 s")
    assert all(gone(int(number)) for number in told.read_text().split())


@pytest.mark.parametrize(
    ("code", "fault"),
    [
        ("while True: print('x' * 1000, flush=True)", Fault.GARBLED),
        (f"while True: sys.stdout.write({PROGRESS!r})", Fault.FLOODED),
        (f"sys.stdout.write('x' * {MOST_LINE_BYTES + 2}); sys.stdout.flush(); time.sleep(60)", Fault.FLOODED),
        ("print('hello')", Fault.GARBLED),
        ("sys.stdout.buffer.write(bytes(range(256))); sys.stdout.flush()", Fault.GARBLED),
        ("pass", Fault.DIED),
        ("sys.exit(3)", Fault.DIED),
        ("os.kill(os.getpid(), signal.SIGKILL)", Fault.DIED),
        ("os.abort()", Fault.DIED),
        ("os.close(1); time.sleep(0.1)", Fault.DIED),
        ("os.close(0); sys.exit(1)", Fault.DIED),
    ],
)
def test_a_worker_that_does_harm(code: str, fault: Fault) -> None:
    assert refusal(code).fault is fault


def test_how_a_worker_died_is_told() -> None:
    assert refusal("sys.exit(3)").detail == "status 3"
    assert refusal("os.kill(os.getpid(), signal.SIGSEGV)").detail == "signal SIGSEGV"


def test_a_flood_on_the_error_stream_harms_nobody(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "tokenroof.microbench")
    told = line_of(Failure(Fault.NO_ACCELERATOR, "torch")).decode()
    code = (
        f"for _ in range(2000): sys.stderr.write('noise ' * 100)\nsys.stderr.write('\\nlast')\nprint({told!r}, end='')"
    )
    error = refusal(code)
    assert error.fault is Fault.NO_ACCELERATOR
    assert str(error).startswith("There is no accelerator that torch can use")
    assert len(caplog.text) < 6000
    assert "\\nlast" in caplog.text  # and no line that it could have forged


def test_what_a_worker_says_of_itself_is_cleaned_before_it_is_shown() -> None:
    told = line_of(Failure(Fault.NO_ACCELERATOR, "x\n\x1b[31m<b>" + "y" * 500)).decode()
    error = refusal(f"print({told!r}, end='')")
    assert error.message.isprintable()
    assert len(error.message) < 200


def test_a_program_that_is_not_there() -> None:
    with pytest.raises(MeasureError) as caught:
        asyncio.run(run_worker(PLAN, {}, no_report, command=("/no/such/program",)))
    assert caught.value.fault is Fault.NOT_STARTED


def test_who_gives_up_ends_the_worker_too(tmp_path: Path) -> None:
    told = tmp_path / "told"
    code = f"open({str(told)!r}, 'w').write(str(os.getpid()))\nprint({PROGRESS!r}, end='', flush=True)\ntime.sleep(60)"
    steps: list[Progress] = []

    async def give_up() -> None:
        running = asyncio.create_task(run_worker(PLAN, environment(), steps.append, command=python(code)))
        while not steps:
            await asyncio.sleep(0.01)
        running.cancel()
        await asyncio.wait({running}, timeout=3)
        assert running.cancelled()

    asyncio.run(give_up())
    assert gone(int(told.read_text()))


PARENT = """
import asyncio, pathlib, sys
from app.machine.peaks.runner import held
from app.machine.peaks.plan import Plan
from app.machine.peaks.runner import run_worker
from tests.machine.peaks.workers import environment, no_report
with held(pathlib.Path(sys.argv[1])) as lock:
    given = environment(behaviour="hang")
    asyncio.run(run_worker(Plan(libraries=("torch",)), given, no_report, lock_descriptor=lock))
"""


def test_a_server_that_is_killed_takes_the_worker_with_it_and_the_lock_lasts_until_then(tmp_path: Path) -> None:
    lock = tmp_path / "lock"
    parent = subprocess.Popen([sys.executable, "-c", PARENT, str(lock)], cwd=ROOT)
    try:
        worker = None
        ends_at = time.monotonic() + 10
        while worker is None and time.monotonic() < ends_at:
            children = Path(f"/proc/{parent.pid}/task/{parent.pid}/children").read_text().split()
            worker = int(children[0]) if children else None
            time.sleep(0.01)
        assert worker is not None
        assert os.getpgid(worker) == worker != os.getpgid(0)
        assert is_held(lock)
    finally:
        parent.kill()
        parent.wait()
    assert gone(worker, within_s=5)
    assert not is_held(lock)
    with held(lock):
        pass
