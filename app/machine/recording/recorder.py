"""The recorder: one task in every process of the server, of which at any time one process writes the readings down."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import Protocol, TypeVar

from sqlalchemy import Engine

from app.machine.probes.snapshot import ProbeSnapshot
from app.machine.recording.figures import samples_of
from app.settings import Settings
from app.store.database import facts_of
from app.store.disk import Seat, recorder_lock_path
from app.store.errors import StoreError
from app.store.links import utc_now
from app.store.samples import RecorderSpan, Samples, Span

logger = logging.getLogger(__name__)

POLL_S = 5.0
"""Seconds between two looks at what other processes were asked, and at whether the one that records still lives."""

PRUNE_EVERY_S = 60.0
COMPLAIN_EVERY_S = 60.0
CLOSE_TIMEOUT_S = 0.5
T = TypeVar("T")


class Rounds(Protocol):
    """Where the readings come from: the `Sampler`."""

    def latest(self) -> Awaitable[Sequence[ProbeSnapshot]]:
        """The newest readings of all probes."""


@dataclass(frozen=True, slots=True)
class RecorderState:
    """Whether readings are recorded now. `since` and `until` (UTC) are those of somebody's wish, where there is one;
    `by_setting` says that the operator's settings have them recorded whatever anybody wishes.
    """

    is_on: bool
    by_setting: bool
    since: datetime | None = None
    until: datetime | None = None


class Recorder:
    """Writes a round of readings down every `record_every_s` while recording is on, and forgets old ones.

    It is on where the settings say so, or until the moment that somebody asked for in any process. Of all processes
    on one database the one that holds the lock file beside it records; when it dies, another takes over within
    `poll_s` seconds. A store that fails or is busy costs the rounds of that time, and one line in the log a minute.
    `now` tells the time with a zone, `clock` counts seconds. Belongs to one event loop.
    """

    def __init__(
        self,
        sampler: Rounds,
        engine: Engine,
        settings: Settings,
        *,
        now: Callable[[], datetime] = utc_now,
        clock: Callable[[], float] = time.monotonic,
        poll_s: float = POLL_S,
    ) -> None:
        self._sampler, self._settings = sampler, settings
        self._samples, self._span = Samples(engine), RecorderSpan(engine)
        self._seat = Seat(recorder_lock_path(facts_of(engine).path))
        self._now, self._clock, self._poll_s = now, clock, poll_s
        self._round_due = self._prune_due = self._complaint_due = float("-inf")
        self._asked = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._at_work: set[asyncio.Task[object]] = set()

    def open(self) -> None:
        """Begins to look after recording; to be called once, in the event loop."""
        self._task = asyncio.create_task(self._run(), name="recorder")

    async def aclose(self) -> None:
        """Ends within half a second, for which it waits for the store. A write that takes longer ends by itself, and is
        committed whole or not at all.
        """
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait({self._task, *self._at_work}, timeout=CLOSE_TIMEOUT_S)
        self._seat.leave()

    async def start(self, hours: float) -> RecorderState:
        """The state after recording was asked for from now on for `hours`, or for as long as readings are kept.

        Raises:
            ValueError: `hours` is not a positive number.
            StoreError: as in `RecorderSpan`.
        """
        length = timedelta(hours=min(hours, self._settings.record_keep_hours)) if hours > 0 else timedelta(0)
        if length <= timedelta(0):
            raise ValueError("Recording needs a positive number of hours.")
        now = self._now()
        span = await self._in_thread(partial(self._span.start, now + length, now))
        self._asked.set()
        return self._state_of(span)

    async def stop(self) -> RecorderState:
        """The state after nobody asks for recording any more; where the settings ask for it, it goes on.

        Raises:
            StoreError: as in `RecorderSpan`.
        """
        await self._in_thread(self._span.stop)
        self._asked.set()
        return self._state_of(None)

    async def state(self) -> RecorderState:
        """The state now, the same in every process.

        Raises:
            StoreError: as in `RecorderSpan`.
        """
        return self._state_of(await self._in_thread(partial(self._span.current, self._now())))

    def _state_of(self, span: Span | None) -> RecorderState:
        by_setting = self._settings.recording
        if span is None:
            return RecorderState(by_setting, by_setting)
        return RecorderState(True, by_setting, span.since, span.until)

    async def _run(self) -> None:
        while True:
            await self._surviving(self._forget)
            await self._surviving(self._record)
            until_round_s = self._round_due - self._clock()
            wait_s = min(self._poll_s, until_round_s) if until_round_s > 0 else self._poll_s
            # Not wait_for: in Python 3.11 it loses a cancellation that comes together with the event.
            with suppress(TimeoutError):
                async with asyncio.timeout(wait_s):
                    await self._asked.wait()
            self._asked.clear()

    async def _record(self) -> None:
        """A round is written down, where that is wanted, due, and for this process to do."""
        if not (await self.state()).is_on:
            self._seat.leave()
        elif self._seat.take() and self._clock() >= self._round_due:
            # On a grid of the machine's clock: what a round takes does not add up, and a successor keeps in step.
            now_s, every_s = self._clock(), self._settings.record_every_s
            self._round_due = now_s - now_s % every_s + every_s
            samples = samples_of(await self._sampler.latest())
            await self._in_thread(partial(self._samples.add, samples))

    async def _forget(self) -> None:
        """Old readings are gone, on or off: every process sees to it, and mostly there is nothing to do."""
        if self._clock() >= self._prune_due:
            self._prune_due = self._clock() + PRUNE_EVERY_S
            keep = timedelta(hours=self._settings.record_keep_hours)
            await self._in_thread(partial(self._samples.prune, self._now() - keep))

    async def _in_thread(self, work: Callable[[], T]) -> T:
        """The answer of a call that may wait for the disk. Who stops waiting for it does not stop it."""
        task = asyncio.create_task(asyncio.to_thread(work))
        self._at_work.add(task)
        task.add_done_callback(self._at_work.discard)
        return await asyncio.shield(task)

    async def _surviving(self, work: Callable[[], Awaitable[None]]) -> None:
        """The work is done, or the log says once a minute why not; the next round may go better."""
        try:
            await work()
        except Exception as error:
            if self._clock() >= self._complaint_due:
                self._complaint_due = self._clock() + COMPLAIN_EVERY_S
                unexpected = not isinstance(error, StoreError)
                logger.warning("recording the live readings failed: %s", error, exc_info=unexpected)
