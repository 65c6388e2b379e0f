"""When to try a driver again that could not be opened: after a pause that doubles."""

import time
from collections.abc import Callable

from app.probes.reading import Absence

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
        """Whether to try again."""
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
