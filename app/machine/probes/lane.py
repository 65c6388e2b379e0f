"""One probe with one thread at most: a driver that hangs costs its own readings, and nothing else.

When to try a driver again that could not be opened: after a pause that doubles.
"""

import asyncio
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

from app.machine.probes.reading import Absence
from app.machine.probes.snapshot import Probe, ProbeSnapshot

CALL_TIMEOUT_S = 3.0
CLOSE_TIMEOUT_S = 0.5

STALE_LIMIT_S = 60.0
"""After this long without a newer one, an earlier snapshot gives way to the plain absence."""

T = TypeVar("T")

# What may pass by itself; until then the last good readings are worth more than none.
_MAY_PASS = frozenset({Absence.TIMEOUT, Absence.UNREACHABLE, Absence.FAILING, Absence.UNKNOWN_ERROR})


class Lane:
    """Runs the blocking calls of one probe, one at a time, each in a daemon thread of its own.

    Not in the event loop's pool: the pool's threads are joined when the loop and the interpreter end, so a driver call
    that never returns would keep the server from stopping. A call that is overdue is not repeated; its answer is taken
    whenever it comes.
    """

    def __init__(self, probe: Probe, timeout_s: float, clock: Callable[[], float]) -> None:
        self._probe, self._timeout_s, self._clock = probe, timeout_s, clock
        self._pending: asyncio.Future[ProbeSnapshot] | None = None
        self._asked_at = self._answered_at = 0.0
        self._last_good: ProbeSnapshot | None = None
        self._last_good_at = 0.0
        self._missed_polls = 0
        self._last_miss: ProbeSnapshot | None = None
        self._handover = threading.Lock()
        self._busy = self._closing = False

    async def read(self) -> ProbeSnapshot:
        """The probe's snapshot, or within `timeout_s` the last good one with the polls missed since, or an absence.

        Never raises. A poll is missed when no answer comes in time, or one that says what may pass by itself.
        """
        now = asyncio.get_running_loop().time()
        if self._pending is not None and self._pending.done() and now - self._answered_at > self._timeout_s:
            # An answer that came late, when nobody was waiting any more. If it is a failure, it was counted as missed.
            if self._pending.result().state == "ok":
                self._keep(self._pending.result(), age_s=now - self._answered_at)
            self._pending = None
        if self._pending is None:
            self._busy = True
            try:
                self._pending, self._asked_at = self._in_thread(self._snapshot), now
            except RuntimeError:  # No thread to be had.
                self._busy = False
                return self._stand_in(Absence.UNKNOWN_ERROR)
            self._pending.add_done_callback(self._note_the_time)
        done, _ = await asyncio.wait({self._pending}, timeout=max(0.0, self._asked_at + self._timeout_s - now))
        if not done:
            return self._stand_in(Absence.TIMEOUT)
        answer, self._pending = self._pending.result(), None
        return self._taken(answer)

    async def aclose(self) -> None:
        """Closes the probe, waiting half a second at most; a call in progress closes it when it returns."""
        with self._handover:
            self._closing, busy = True, self._busy
        with suppress(RuntimeError):
            last = self._pending if busy else self._in_thread(self._close)
            if last is not None:
                await asyncio.wait({last}, timeout=CLOSE_TIMEOUT_S)

    def _in_thread(self, work: Callable[[], T]) -> asyncio.Future[T]:
        loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()

        def settle(answer: T) -> None:
            if not future.done():
                future.set_result(answer)

        def run() -> None:
            answer = work()
            with suppress(RuntimeError):  # The loop has been closed meanwhile.
                loop.call_soon_threadsafe(settle, answer)

        threading.Thread(target=run, name=f"probe-{self._probe.name}", daemon=True).start()
        return future

    def _snapshot(self) -> ProbeSnapshot:
        try:
            answer = self._probe.snapshot()
        except Exception:  # Probes promise not to raise; one that does must not stop the others.
            answer = self._absent(Absence.UNKNOWN_ERROR)
        with self._handover:
            self._busy, close_now = False, self._closing
        if close_now:
            self._close()
        return answer

    def _close(self) -> None:
        with suppress(Exception):
            self._probe.close()

    def _note_the_time(self, future: asyncio.Future[ProbeSnapshot]) -> None:
        self._answered_at = future.get_loop().time()

    def _taken(self, answer: ProbeSnapshot) -> ProbeSnapshot:
        if answer.state == "ok":
            self._keep(answer, age_s=0.0)
            return answer
        if answer.absence not in _MAY_PASS:
            self._last_good, self._missed_polls = None, 0  # What was before says nothing of what is now.
            return answer
        # A probe with a pace of its own hands the same failure over until it has asked again.
        again = answer is self._last_miss
        self._last_miss = answer
        return self._stand_in(answer.absence, missed=0 if again else 1)

    def _keep(self, answer: ProbeSnapshot, age_s: float) -> None:
        self._last_good, self._last_good_at = answer, self._clock() - age_s
        self._last_miss, self._missed_polls = None, 0

    def _stand_in(self, absence: Absence, missed: int = 1) -> ProbeSnapshot:
        self._missed_polls += missed
        if self._last_good is None or self._clock() - self._last_good_at > STALE_LIMIT_S:
            return self._absent(absence)
        return self._last_good.missed(absence, self._missed_polls)

    def _absent(self, absence: Absence) -> ProbeSnapshot:
        return ProbeSnapshot.absent(self._probe.name, self._probe.label, self._probe.kind, absence)


FIRST_RETRY_S = 1.0
LAST_RETRY_S = 60.0


class Backoff:
    """After each failure in a row another attempt is due 1, 2, 4, … 60 s later, by `clock` (seconds, monotonic).

    So a container whose driver answers "Unknown Error" recovers by itself, and a machine without one costs nothing.
    `failure` is why the last attempt came to nothing.
    """

    def __init__(self, failure: Absence, clock: Callable[[], float] = time.monotonic) -> None:
        self.failure = failure
        self._clock = clock
        self._failures = 0
        self._retry_at = float("-inf")

    @property
    def is_due(self) -> bool:
        return self._clock() >= self._retry_at

    def attempt(self, opening: Callable[[], Absence | None]) -> bool:
        """Whether `opening` worked now: it is tried when that is due, and answers why it came to nothing."""
        if not self.is_due:
            return False
        failure = opening()
        if failure is not None:
            self.failed(failure)
        return failure is None

    def failed(self, failure: Absence) -> None:
        """Another attempt came to nothing."""
        self.failure = failure
        self._retry_at = self._clock() + min(LAST_RETRY_S, FIRST_RETRY_S * 2 ** min(self._failures, 10))
        self._failures += 1

    def worked(self) -> None:
        """The next failure is the first again."""
        self._failures = 0
