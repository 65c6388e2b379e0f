"""The server's bench: starts measurements, tells how far they are, and lets none outlive the server."""

import asyncio
import logging
from dataclasses import dataclass, replace
from datetime import datetime

from app.machine.peaks.measure import Rig, measure
from app.machine.peaks.outcome import Fault, MeasureError, Progress
from app.machine.peaks.plan import DEFAULT_SECONDS
from app.machine.peaks.result import MeasuredRoofs
from app.machine.peaks.runner import is_held

logger = logging.getLogger("tokenroof.microbench")


@dataclass(frozen=True, slots=True)
class BenchState:
    """Whether a measurement runs, and how the last one of this process ended.

    `elsewhere` says that it runs in another process of this machine (a second server process, the command line), of
    which nothing more is known here. `libraries` are those that could measure; without any there is nothing to offer.
    """

    running: bool
    elsewhere: bool
    libraries: tuple[str, ...]
    device: int | None = None
    started_at: datetime | None = None
    progress: Progress | None = None
    last_error: MeasureError | None = None

    def document(self) -> dict[str, object]:
        step = self.progress
        return {
            "state": "running" if self.running else "idle",
            "elsewhere": self.elsewhere,
            "libraries": list(self.libraries),
            "device": self.device,
            "started_at": self.started_at.isoformat(timespec="seconds") if self.started_at is not None else None,
            "progress": {"step": step.step, "done": step.done, "of": step.of} if step is not None else None,
            "last_error": self.last_error.document() if self.last_error is not None else None,
        }


class Bench:
    """Measures for the server. Belongs to one event loop; makes nothing before it is first used."""

    def __init__(self, rig: Rig) -> None:
        self._rig = rig
        self._task: asyncio.Task[None] | None = None
        self._device: int | None = None
        self._started_at: datetime | None = None
        self._progress: Progress | None = None
        self._last_error: MeasureError | None = None
        self._closed = False

    @property
    def libraries(self) -> tuple[str, ...]:
        """Those that could measure, by their being installed; empty: there is nothing to offer."""
        return self._rig.libraries

    def state(self) -> BenchState:
        """As things stand. May be called from any thread."""
        here = self._task is not None
        elsewhere = not here and is_held(self._rig.lock)
        return BenchState(
            here or elsewhere,
            elsewhere,
            self._rig.libraries,
            self._device,
            self._started_at,
            self._progress,
            self._last_error,
        )

    def roofs(self) -> tuple[MeasuredRoofs, ...]:
        """All that was measured on this machine, the newest first. Reads a file."""
        return self._rig.store.read()

    async def start(self, device: int = 0, seconds: float = DEFAULT_SECONDS) -> BenchState:
        """Begins a measurement and returns once it is under way; it goes on when the caller is gone.

        Raises:
            MeasureError: it was refused; `state` tells the same, unless a measurement is under way.
        ValueError: there can be no such device or time.
        """
        if self._closed:
            raise MeasureError(Fault.STOPPED)
        if self._task is not None:
            raise MeasureError(Fault.RUNNING)
        replace(self._rig.plan, device=device, seconds=seconds)
        admission: asyncio.Future[MeasureError | None] = asyncio.get_running_loop().create_future()
        self._device, self._started_at, self._progress, self._last_error = device, self._rig.now(), None, None
        self._task = asyncio.create_task(self._run(device, seconds, admission), name="microbenchmark")
        await asyncio.wait({admission})
        refusal = admission.result()
        if refusal is not None:
            raise refusal
        return self.state()

    async def aclose(self) -> None:
        """Ends what runs, the worker's processes with it, within a few seconds."""
        self._closed = True
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait({self._task})

    async def _run(self, device: int, seconds: float, admission: "asyncio.Future[MeasureError | None]") -> None:
        def report(progress: Progress) -> None:
            self._progress = progress

        error = MeasureError(Fault.STOPPED)
        try:
            await measure(self._rig, device, seconds, admitted=lambda: admission.set_result(None), report=report)
        except MeasureError as refused_or_failed:
            self._last_error = error = refused_or_failed
            logger.warning("measurement: %s", error)
        except Exception:
            self._last_error = error = MeasureError(Fault.UNFORESEEN)
            logger.exception("measurement")
        finally:
            self._task = self._device = self._started_at = self._progress = None
            if not admission.done():
                admission.set_result(error)
