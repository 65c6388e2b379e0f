"""Quantiles of what a histogram observed between two scrapes, from the growth of its cumulative buckets.

The arithmetic is that of PromQL's histogram_quantile: within a bucket the observations are taken to lie evenly.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Observed:
    """Observations by cumulative buckets: `buckets` has the count of those at most as large as each upper bound.

    The bound of the last is infinity; a histogram of which only sum and count are known has no buckets at all.
    """

    buckets: Mapping[float, float]
    count: float
    sum: float

    @property
    def mean(self) -> float | None:
        """The mean of the observations; None where there are none."""
        return self.sum / self.count if self.count > 0 else None


@dataclass(frozen=True, slots=True)
class Quantile:
    """A quantile in the unit of the bounds; `beyond`: it is larger than this, the last finite bound."""

    value: float
    beyond: bool = False


def observed_between(before: Observed, after: Observed) -> Observed | None:
    """What was observed after `before` and until `after`; None if a count fell, so that the server began anew.

    Bounds that only one of them has are left out. A sum that falls is passed on: negative observations do that.
    """
    if after.count < before.count:
        return None
    buckets: dict[float, float] = {}
    for bound in after.buckets.keys() & before.buckets.keys():
        buckets[bound] = after.buckets[bound] - before.buckets[bound]
        if buckets[bound] < 0:
            return None
    return Observed(buckets, after.count - before.count, after.sum - before.sum)


def merged(parts: Sequence[Observed]) -> Observed:
    """All observations together. Only bounds that all parts share are kept: there the counts can be added.

    A part without observations has no say in which bounds these are.
    """
    busy = [part for part in parts if part.count > 0] or parts[:1]
    shared = set[float].intersection(*(set(part.buckets) for part in busy)) if busy else set()
    return Observed(
        {bound: sum(part.buckets[bound] for part in busy) for bound in shared},
        sum(part.count for part in busy),
        sum(part.sum for part in busy),
    )


def quantile(observed: Observed, share: float) -> Quantile | None:
    """The value below which `share` (0 to 1) of the observations lie; None without observations or finite bounds.

    Where it falls into the bucket without an upper bound, the last finite one is answered, and that it lies beyond.
    Buckets that a scrape caught half-way (a wider one with fewer observations) are levelled up.
    """
    bounds = sorted(observed.buckets)
    if len(bounds) < 2 or not math.isinf(bounds[-1]):
        return None
    counts: list[float] = []
    for bound in bounds:
        counts.append(max(observed.buckets[bound], counts[-1] if counts else 0.0))
    if counts[-1] <= 0:
        return None
    rank = share * counts[-1]
    place = next(index for index, count in enumerate(counts) if count >= rank)
    if math.isinf(bounds[place]):
        return Quantile(bounds[place - 1], beyond=True)
    if place == 0:
        return Quantile(bounds[0] * rank / counts[0] if bounds[0] > 0 and counts[0] > 0 else min(bounds[0], 0.0))
    lower, upper, under, over = bounds[place - 1], bounds[place], counts[place - 1], counts[place]
    return Quantile(lower + (upper - lower) * (rank - under) / (over - under))
