"""What one scrape has counted so far: the counters and histograms that an adapter reads, series by series."""

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from app.probes.servers.adapter import Adapter
from app.probes.servers.exposition import Exposition, Series
from app.probes.servers.quantiles import Observed
from app.probes.servers.selector import Selector

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
