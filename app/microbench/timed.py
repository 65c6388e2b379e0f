"""How long a pass takes: warmed up, many times, by the card's own clock, within its share of the time."""

from collections.abc import Callable

from app.microbench.kernels import Kernels, Work
from app.microbench.outcome import Timing, timing_of
from app.microbench.plan import Plan

BATCH = 25
"""Passes that are queued on the card before it is waited for: few enough to stop in time, and the first of a batch,
which an empty queue makes a little longer, weighs little."""

FEWEST = 5
"""Passes without which there is no median to speak of."""

_WARM_UP_SHARE = 1 / 3


class TooSlowError(Exception):
    """Not even the fewest passes fit into the time."""


def timed(kernels: Kernels, work: Work, plan: Plan, share_s: float, clock: Callable[[], float]) -> Timing:
    """Median and best of up to `plan.iterations` passes after `plan.warm_ups` of them, within `share_s` seconds.

    Where the time is short, warm-ups end after a third of it; of either kind there are always `FEWEST`. `clock` is in
    seconds, monotonic.

    Raises:
        TooSlowError: the time does not suffice for that.
        OutOfCardMemoryError: a pass needs more memory than there is.
        ValueError: the card's clock gave times that cannot be.
    """
    begun_at = clock()
    # The first pass loads code and picks kernels; the second one tells the pace.
    kernels.intervals_s(work, 1)
    pace_s = max(kernels.intervals_s(work, 1)[0], 0.0)
    ends_at = begun_at + share_s
    if pace_s * 2 * FEWEST > ends_at - clock():
        raise TooSlowError
    _passes(kernels, work, plan.warm_ups - 2, (begun_at + share_s * _WARM_UP_SHARE, clock), pace_s)
    return timing_of(_passes(kernels, work, plan.iterations, (ends_at, clock), pace_s))


def _passes(
    kernels: Kernels, work: Work, most: int, until: tuple[float, Callable[[], float]], pace_s: float
) -> list[float]:
    """Seconds of each pass: `most` of them, fewer where the time ends before, but never fewer than `FEWEST`."""
    ends_at, clock = until
    times_s: list[float] = []
    while (missing := most - len(times_s)) > 0:
        fits = int((ends_at - clock()) / pace_s) if pace_s > 0 else BATCH
        owed = FEWEST - len(times_s)
        if max(fits, owed) < 1:
            break
        times_s += kernels.intervals_s(work, min(missing, BATCH, max(fits, owed)))
    return times_s
