"""One sampler for all viewers: it asks the probes only while somebody watches, and never holds up the event loop."""

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager

from app.machine.probes.lane import CALL_TIMEOUT_S, Lane
from app.machine.probes.snapshot import Probe, ProbeSnapshot

HISTORY_S = 60.0
HISTORY_ROUNDS = 400

Snapshots = tuple[ProbeSnapshot, ...]
"""The answers of all probes to one question, in the order of the probes."""


class TooManyViewersError(RuntimeError):
    """As many viewers as are allowed are watching already; `limit` says how many."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        super().__init__(f"Already {limit} viewers are watching the live readings.")


class Subscription:
    """An endless iterator of snapshots, the newest each time; it ends when the sampler closes.

    A slow viewer skips what it had no time for. For one task at a time.
    """

    def __init__(self) -> None:
        self._news = asyncio.Event()
        self._newest: Snapshots | None = None
        self._ended = False

    def __aiter__(self) -> "Subscription":
        return self

    async def __anext__(self) -> Snapshots:
        """The newest snapshots not yet seen, waiting for them if need be."""
        await self._news.wait()
        if self._ended or self._newest is None:
            raise StopAsyncIteration
        self._news.clear()
        return self._newest

    def offer(self, snapshots: Snapshots) -> None:
        """Puts snapshots in the place of whatever was not yet taken."""
        self._newest = snapshots
        self._news.set()

    def end(self) -> None:
        """Ends the iteration at once; what was not yet taken is dropped."""
        self._ended = True
        self._news.set()


class Sampler:
    """Asks the probes every `interval_s` seconds while there are viewers, and otherwise only when `latest` is called.

    One round of calls serves everybody. A probe that takes longer than `timeout_s` is reported as its last good
    snapshot with the polls missed since, or as a `timeout`; the others are held up by it once and no more. `clock`
    (seconds, monotonic) measures the age of the rounds. Belongs to one event loop; makes nothing before it is first
    used.
    """

    def __init__(
        self,
        probes: Sequence[Probe],
        interval_s: float = 1.0,
        clock: Callable[[], float] = time.monotonic,
        *,
        timeout_s: float = CALL_TIMEOUT_S,
        max_viewers: int = 64,
    ) -> None:
        self._lanes = [Lane(probe, timeout_s, clock) for probe in probes]
        self._interval_s, self._clock, self._max_viewers = interval_s, clock, max_viewers
        self._viewers: set[Subscription] = set()
        self._cached: Snapshots = ()
        self._cached_at = float("-inf")
        self._rounds: deque[tuple[float, Snapshots]] = deque(maxlen=HISTORY_ROUNDS)
        self._round: asyncio.Task[None] | None = None
        self._metronome: asyncio.Task[None] | None = None
        self._closed = False

    @property
    def viewers(self) -> int:
        """How many subscriptions are open."""
        return len(self._viewers)

    @property
    def history(self) -> tuple[Snapshots, ...]:
        """The rounds of the last `HISTORY_S` seconds, the oldest first, at most `HISTORY_ROUNDS` of them.

        A page that opens has the tail of its moving dot at once. While nobody asks nothing is sampled, so there may be
        gaps, and after a minute it is empty.
        """
        self._forget_rounds_before(self._clock() - HISTORY_S)
        return tuple(snapshots for _, snapshots in self._rounds)

    async def latest(self) -> Snapshots:
        """The cached round if it is younger than the interval, else a new one; after `aclose` the last there was."""
        if self._closed or self._clock() - self._cached_at < self._interval_s:
            return self._cached
        return await self._sample()

    @asynccontextmanager
    async def subscribe(self) -> AsyncIterator[Subscription]:
        """An open subscription for the length of the `async with`; its first item comes without waiting an interval.

        Raises:
            TooManyViewersError: as many viewers as are allowed are watching already.
        """
        if len(self._viewers) >= self._max_viewers:
            raise TooManyViewersError(self._max_viewers)
        viewer = Subscription()
        self._viewers.add(viewer)
        if self._closed:
            viewer.end()
        elif self._clock() - self._cached_at < self._interval_s:
            viewer.offer(self._cached)
        try:
            if self._metronome is None and not self._closed:
                self._metronome = asyncio.create_task(self._beat(), name="probe-sampler")
            yield viewer
        finally:
            viewer.end()
            self._viewers.discard(viewer)
            if not self._viewers and self._metronome is not None:
                self._metronome.cancel()
                self._metronome = None

    async def aclose(self) -> None:
        """Ends all subscriptions, stops sampling and lets the probes go, within a second even if a driver hangs."""
        self._closed = True
        for viewer in tuple(self._viewers):
            viewer.end()
        tasks = [task for task in (self._metronome, self._round) if task is not None]
        self._metronome = self._round = None
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await asyncio.gather(*(lane.aclose() for lane in self._lanes))

    async def _beat(self) -> None:
        while True:
            await asyncio.sleep(max(0.0, self._cached_at + self._interval_s - self._clock()))
            await self._sample()

    async def _sample(self) -> Snapshots:
        """One round, shared by all who ask while it runs; a caller that gives up does not stop it."""
        if self._round is None:
            self._round = asyncio.create_task(self._ask_all(), name="probe-round")
        await asyncio.wait({self._round})
        return self._cached

    async def _ask_all(self) -> None:
        started_at = self._clock()
        self._cached = tuple(await asyncio.gather(*(lane.read() for lane in self._lanes)))
        self._cached_at, self._round = started_at, None
        self._forget_rounds_before(started_at - HISTORY_S)
        self._rounds.append((started_at, self._cached))
        for viewer in self._viewers:
            viewer.offer(self._cached)

    def _forget_rounds_before(self, earliest: float) -> None:
        while self._rounds and self._rounds[0][0] < earliest:
            self._rounds.popleft()
