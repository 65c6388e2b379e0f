"""Runs the worker in a process group of its own, believes nothing it says unread, and ends it whatever happens."""

import asyncio
import logging
import os
import signal
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from app.microbench.faults import Fault, MeasureError
from app.microbench.heard import GarbledLineError, said_in
from app.microbench.lines import MOST_LINE_BYTES
from app.microbench.outcome import Failure, Outcome, Progress
from app.microbench.plan import Plan
from app.probes.plausible import text

logger = logging.getLogger("tokenroof.microbench")

WORKER = (sys.executable, "-m", "app.microbench.worker")
_ROOT = Path(__file__).resolve().parents[2]  # the folder that holds the package `app`
MOST_OUTPUT_BYTES = 256 * 1024
_LAST_WORDS_BYTES = 4096
_ENDING_S = 2.0


@dataclass(frozen=True, slots=True)
class Limits:
    """`timeout_s` by the wall clock for everything; `most_output_bytes` on the standard output."""

    timeout_s: float
    most_output_bytes: int = MOST_OUTPUT_BYTES


async def run_worker(
    plan: Plan,
    environment: Mapping[str, str],
    report: Callable[[Progress], None],
    *,
    limits: Limits | None = None,
    lock_descriptor: int | None = None,
    command: Sequence[str] = WORKER,
) -> Outcome:
    """What the worker found. `report` is told of each step.

    The worker inherits the lock, so that it is held as long as the worker lives, even if this process is killed. When
    this returns, raises or is cancelled, the worker's whole process group is gone.

    Raises:
        MeasureError: with the worker's own reason, or with what was wrong with it.
    """
    limits = limits or Limits(plan.timeout_s)
    try:
        process = await asyncio.create_subprocess_exec(
            *command,
            stdin=PIPE,
            stdout=PIPE,
            stderr=PIPE,
            cwd=_ROOT,
            env=dict(environment),
            pass_fds=() if lock_descriptor is None else (lock_descriptor,),
            start_new_session=True,
            limit=MOST_LINE_BYTES,
        )
    except OSError as error:
        logger.warning("the worker cannot be started: %s", error.strerror)
        raise MeasureError(Fault.NOT_STARTED) from error
    last_words = asyncio.create_task(_last_words(process), name="microbenchmark-stderr")
    try:
        async with asyncio.timeout(limits.timeout_s):
            return await _outcome(process, plan, report, limits.most_output_bytes)
    except TimeoutError:
        raise MeasureError(Fault.TIMEOUT, f"{limits.timeout_s:g} s") from None
    finally:
        await _end(process, last_words)


async def _outcome(process: Process, plan: Plan, report: Callable[[Progress], None], most_bytes: int) -> Outcome:
    assert process.stdin is not None and process.stdout is not None  # noqa: S101, PT018 - both are pipes
    with suppress(ConnectionError):  # it has ended already; how, is told below
        process.stdin.write(plan.line())
        await process.stdin.drain()
    read_bytes = 0
    try:
        while line := await process.stdout.readline():
            read_bytes += len(line)
            if read_bytes > most_bytes:
                raise MeasureError(Fault.FLOODED)
            match said_in(line):
                case Progress() as progress:
                    report(progress)
                case Failure(fault, detail):
                    raise MeasureError(fault, text(detail).value or "")
                case outcome:
                    return outcome
    except GarbledLineError as error:
        raise MeasureError(Fault.GARBLED) from error
    except ValueError as error:  # a line longer than the reader's limit
        raise MeasureError(Fault.FLOODED) from error
    raise MeasureError(Fault.DIED, _how(await process.wait()))


def _how(status: int) -> str:
    if status >= 0:
        return f"status {status}"
    try:
        return f"signal {signal.Signals(-status).name}"
    except ValueError:
        return f"signal {-status}"


async def _last_words(process: Process) -> bytes:
    """The end of the standard error: read to the end so that the worker never waits, kept in a few kilobytes."""
    assert process.stderr is not None  # noqa: S101 - it is a pipe
    kept = b""
    while chunk := await process.stderr.read(_LAST_WORDS_BYTES):
        kept = (kept + chunk)[-_LAST_WORDS_BYTES:]
    return kept


async def _end(process: Process, last_words: asyncio.Task[bytes]) -> None:
    """Kills the group, reads what is left in the pipes and takes the worker's status, within `_ENDING_S`.

    A kill and not a request: a worker that waits for a hanging driver hears none, and the driver gives back what a
    dead process held. One that is stuck in the kernel keeps the lock until it goes.
    """
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    try:
        async with asyncio.timeout(_ENDING_S):
            words = await last_words
            await process.communicate()
    except TimeoutError:
        last_words.cancel()
        logger.error("the worker %d does not end", process.pid)
    else:
        if words:
            logger.info("last words of the worker: %r", words.decode(errors="replace"))
