"""From a counter that only grows to a rate, by the difference of two samples."""

from collections.abc import Callable

from app.probes.card import BYTES_PER_SECOND
from app.probes.reading import Absence, Reading

SHORTEST_WINDOW_S = 0.1
"""Two samples nearer than this say nothing sure: drivers refresh their counters about that often."""

LONGEST_WINDOW_S = 60.0
"""Two samples further apart than this are a mean of the past, not a rate of now."""


class CounterMeter:
    """The rate of one counter of bytes, per second of `clock`; for the counters of one card only.

    The first count, and one that comes after a long pause, has no rate yet; a counter that went backwards (a reset, or
    a wrap) costs one rate. A rate over `ceiling_bytes_per_s` is not believed.
    """

    def __init__(self, clock: Callable[[], float], ceiling_bytes_per_s: float) -> None:
        self._clock, self._ceiling = clock, ceiling_bytes_per_s
        self._before: tuple[int, float] | None = None
        self._rate: Reading[float] = Reading.missing(Absence.NEEDS_TWO_SAMPLES, BYTES_PER_SECOND)

    def rate(self, count: Reading[int]) -> Reading[float]:
        """The bytes per second since the count before, or why there is no such rate; that count is then forgotten."""
        now = self._clock()
        if count.value is None:
            self._before = None
            return Reading(None, BYTES_PER_SECOND, count.absence)
        if self._before is not None and now - self._before[1] < SHORTEST_WINDOW_S:
            return self._rate
        before, self._before = self._before, (count.value, now)
        self._rate = self._between(before, count.value, now)
        return self._rate

    def _between(self, before: tuple[int, float] | None, count_bytes: int, now: float) -> Reading[float]:
        if before is None or now - before[1] > LONGEST_WINDOW_S:
            return Reading.missing(Absence.NEEDS_TWO_SAMPLES, BYTES_PER_SECOND)
        count_before, then = before
        if count_bytes < count_before:
            return Reading.missing(Absence.COUNTER_RESET, BYTES_PER_SECOND)
        rate = (count_bytes - count_before) / (now - then)
        if rate > self._ceiling:
            return Reading.missing(Absence.IMPLAUSIBLE, BYTES_PER_SECOND)
        return Reading(rate, BYTES_PER_SECOND)
