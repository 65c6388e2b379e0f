"""What a scrape counts, histograms and their quantiles included, under one adapter."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from app.machine.probes.servers.adapter import Adapter, Selector
from app.machine.probes.servers.exposition import Exposition, Series


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


STARTED_AT = "process_start_time_seconds"
Key = tuple[tuple[str, str], ...]
_LOWEST, _NUMBERLESS = -1, 10**9


@dataclass(frozen=True, slots=True)
class Tally:
    """Counts by selector and series; `names` has the name under which each selector's metric was met.

    `unusable` are selectors whose metric is there, but with nothing that a count can be: NaN, or less than zero.
    """

    counters: Mapping[Selector, Mapping[Key, float]]
    histograms: Mapping[Selector, Mapping[Key, Observed]]
    names: Mapping[Selector, str]
    unusable: frozenset[Selector]
    started_at_s: float | None = None
    """When the server's process began, by its own clock, where it says so: a restart shows there at once."""


def tally_of(exposition: Exposition, adapter: Adapter) -> Tally:
    """The counts of a scrape."""
    counters: dict[Selector, Mapping[Key, float]] = {}
    histograms: dict[Selector, Mapping[Key, Observed]] = {}
    names: dict[Selector, str] = {}
    unusable: set[Selector] = set()
    for selector in set(adapter.counters()):
        for name in (selector.name, f"{selector.name}_total"):
            found = {each.key: each.value for each in chosen(exposition.series.get(name, ()), adapter, selector)}
            if found and min(found.values()) >= 0:
                counters[selector], names[selector] = found, name
                break
            if found or name in exposition.unusable:
                unusable.add(selector)
    for selector in set(adapter.histograms()):
        observed = dict(_observed(exposition, adapter, selector))
        if observed:
            histograms[selector], names[selector] = observed, selector.name
        elif any(f"{selector.name}{end}" in exposition.names for end in ("_sum", "_count")):
            unusable.add(selector)
    started = exposition.series.get(STARTED_AT, ())
    return Tally(
        counters,
        histograms,
        names,
        frozenset(unusable - names.keys()),
        round(started[0].value) if len(started) == 1 else None,
    )


def chosen(series: Iterable[Series], adapter: Adapter, selector: Selector) -> tuple[Series, ...]:
    """Of the series of a metric those to be read: as the selector says, totals for their parts, one of all ranks."""
    kept = [
        each for each in series if selector.where is None or each.labels.get(selector.where[0]) == selector.where[1]
    ]
    for label, value in adapter.totals.items():
        if any(each.labels.get(label) == value for each in kept):
            kept = [each for each in kept if each.labels.get(label) == value]
    if not adapter.ranks:
        return tuple(kept)
    first: dict[Key, Series] = {}
    for each in sorted(kept, key=lambda one: [_number(one.labels.get(rank)) for rank in adapter.ranks]):
        first.setdefault(tuple(pair for pair in each.key if pair[0] not in adapter.ranks), each)
    return tuple(first.values())


def _number(rank: str | None) -> int:
    if rank is None:
        return _LOWEST
    return int(rank) if rank.isascii() and rank.isdigit() and len(rank) < 9 else _NUMBERLESS


def _observed(exposition: Exposition, adapter: Adapter, selector: Selector) -> Iterator[tuple[Key, Observed]]:
    """Each histogram of a metric that makes sense: no count is negative."""
    buckets: dict[Key, dict[float, float]] = {}
    for each in exposition.series.get(f"{selector.name}_bucket", ()):
        if (bound := _bound(each.labels.get("le", ""))) is not None:
            key = tuple(pair for pair in each.key if pair[0] != "le")
            buckets.setdefault(key, {})[bound] = each.value
    sums = {each.key: each.value for each in exposition.series.get(f"{selector.name}_sum", ())}
    for each in chosen(exposition.series.get(f"{selector.name}_count", ()), adapter, selector):
        own = buckets.get(each.key, {})
        if own:
            own.setdefault(math.inf, each.value)
        if each.value >= 0 and each.key in sums and min(own.values(), default=0) >= 0:
            yield each.key, Observed(own, each.value, sums[each.key])


def _bound(text: str) -> float | None:
    try:
        bound = float(text)
    except ValueError:
        return None
    return None if math.isnan(bound) else bound
