"""Runs the worker alone on the machine, in a process group of its own; believes nothing it says, and always ends it."""

import asyncio
import fcntl
import logging
import os
import re
import signal
import sys
import tempfile
import time
from asyncio.subprocess import PIPE, Process
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pydantic import TypeAdapter

from app.machine.peaks.outcome import MOST_LINE_BYTES, Failure, Fault, Line, MeasureError, Outcome, Progress
from app.machine.peaks.plan import Plan
from app.machine.probes.accelerator import text

_NAMES = frozenset(
    {
        *("PATH", "HOME", "USER", "LOGNAME", "LANG", "LANGUAGE", "TMPDIR", "TEMP", "TMP", "SYSTEMROOT"),
        *("LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", "CONDA_PREFIX"),
        *("GPU_DEVICE_ORDINAL", "XDG_CACHE_HOME"),
    }
)
_PREFIXES = ("LC_", "CUDA_", "NVIDIA_", "HIP_", "HSA_", "ROCM_", "ROCR_", "CUPY_", "TORCH_", "PYTORCH_", "CUBLAS")
_SECRET = re.compile(r"TOKEN|SECRET|PASSW|CREDENTIAL|AUTH|KEY")

FEW_THREADS = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
"""The card computes: threads of the processor's own libraries would only take memory for their stacks."""


def worker_environment(own: Mapping[str, str], card_uuid: str | None) -> dict[str, str]:
    """The variables for the worker: those of `own` that loaders, CUDA and ROCm read, none that may hold a secret.

    With `card_uuid`, the driver's key of an NVIDIA card, the worker sees that card alone, as number 0. Without it cards
    keep the order of the PCI bus, which is that of the driver.
    """
    kept = {
        name: value
        for name, value in own.items()
        if (name in _NAMES or name.startswith(_PREFIXES)) and not _SECRET.search(name)
    }
    pinned = {} if card_uuid is None else {"CUDA_VISIBLE_DEVICES": card_uuid}
    return kept | FEW_THREADS | {"CUDA_DEVICE_ORDER": "PCI_BUS_ID"} | pinned


# In a folder that all users share somebody may have put a link or a pipe there, which would wait for a writer.
_FLAGS = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
_ATTEMPTS = 4
_PAUSE_S = 0.005


def machine_lock() -> Path:
    """The lock file of the machine: in the folder for temporary files, which all users share."""
    return Path(tempfile.gettempdir()) / "tokenroof-measure.lock"


@contextmanager
def held(path: Path) -> Iterator[int]:
    """The lock, for the length of the `with`; its descriptor may be left to a child, and then lasts as long as that.

    The file stays, for deleting it would race.

    Raises:
        MeasureError: RUNNING, somebody else holds it; NOT_STARTED, there can be no such file.
    """
    try:
        descriptor = _opened(path)
    except OSError as error:
        raise MeasureError(Fault.NOT_STARTED) from error
    try:
        _take(descriptor)
        yield descriptor
    finally:
        os.close(descriptor)


def is_held(path: Path) -> bool:
    """Whether anybody measures on this machine now."""
    try:
        descriptor = os.open(path, _FLAGS)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(descriptor)
    return False


def _opened(path: Path) -> int:
    # For reading, which is enough to lock: the file may be another user's. The kernel refuses to open such a file in a
    # shared folder with O_CREAT, so that is the second attempt.
    try:
        return os.open(path, _FLAGS)
    except FileNotFoundError:
        return os.open(path, _FLAGS | os.O_CREAT, 0o644)


def _take(descriptor: int) -> None:
    """At once, or not at all; who only looks (`is_held`) is gone in less than a pause."""
    for attempt in range(1, _ATTEMPTS + 1):
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            if attempt == _ATTEMPTS:
                raise MeasureError(Fault.RUNNING) from None
            time.sleep(_PAUSE_S)
        else:
            return


_LINE: Final = TypeAdapter(Line)


class GarbledLineError(ValueError):
    """The line is none that a worker writes."""


def said_in(line: bytes) -> Progress | Outcome | Failure:
    """What the line says.

    Raises:
        GarbledLineError: it is not one of ours, or says what cannot be; the error does not repeat it.
    """
    try:
        return _LINE.validate_json(line, strict=True).said
    except ValueError:
        raise GarbledLineError("This is no line of the worker.") from None


logger = logging.getLogger("tokenroof.microbench")

WORKER = (sys.executable, "-m", "app.machine.peaks.worker")
_ROOT = Path(__file__).resolve().parents[3]  # the folder that holds the package `app`
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
