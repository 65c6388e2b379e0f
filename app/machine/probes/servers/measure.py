"""From a scrape and the seconds before it to the readings of a server."""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from app.machine.probes.accelerator import text
from app.machine.probes.reading import Absence, Reading, units_of
from app.machine.probes.servers.adapter import GAUGES, Adapter, Candidate, Concept, Rule, Selector
from app.machine.probes.servers.exposition import Exposition
from app.machine.probes.servers.readings import ServerReadings
from app.machine.probes.servers.tally import Tally, chosen, quantile
from app.machine.probes.servers.window import Window

Instance = tuple[str, ...]
"""The values of the labels that tell the engines of a server apart."""


def by_instance(exposition: Exposition, adapter: Adapter, candidate: Candidate) -> Mapping[Instance, float] | None:
    """The candidate's value for each instance; None where the server does not report all that it takes.

    A factor that is given only once holds for all instances.
    """
    values = dict(_values(exposition, adapter, candidate.above[0]))
    for selector in candidate.above[1:] + candidate.below:
        other = _values(exposition, adapter, selector)
        divides = selector in candidate.below
        for instance in values:
            factor = next(iter(other.values())) if len(other) == 1 else other.get(instance)
            if factor is None or (divides and factor == 0):
                return None
            values[instance] = values[instance] / factor if divides else values[instance] * factor
    return values or None


def together(values: Mapping[Instance, float], concept: Concept, exposition: Exposition, adapter: Adapter) -> float:
    """The sum over the instances, or by `mean` the average, weighted where every instance has a weight."""
    if concept.rule is Rule.SUM:
        return sum(values.values())
    for candidate in concept.weights:
        weights = by_instance(exposition, adapter, candidate)
        if weights is not None and values.keys() <= weights.keys():
            total = sum(weights[instance] for instance in values)
            if total > 0 and min(weights.values()) >= 0:
                return sum(value * weights[instance] for instance, value in values.items()) / total
    return sum(values.values()) / len(values)


def _values(exposition: Exposition, adapter: Adapter, selector: Selector) -> Mapping[Instance, float]:
    values: dict[Instance, float] = {}
    for each in chosen(exposition.series.get(selector.name, ()), adapter, selector):
        instance = tuple(each.labels.get(label, "") for label in adapter.instances)
        value = each.value if selector.label is None else _number(each.labels.get(selector.label, ""))
        if value is not None:
            values[instance] = values.get(instance, 0.0) + value
    return values


def _number(text: str) -> float | None:
    """The whole number in a label; None for the words that stand there when it is not set."""
    return float(text) if text.isascii() and text.isdigit() and len(text) < 16 else None


_UNSET = frozenset({"", "none", "null", "undefined", "unknown"})
_CACHED_REPOSITORY = re.compile(r"models--([^/\\]+?)--([^/\\]+)")
_PATH_PARTS_FOR_TWO = 4
"""From so many parts on, the last but one is a folder of models rather than a person's or the machine's."""

_HOMES = frozenset({"home", "users"})


def model_name(exposition: Exposition, adapter: Adapter) -> Reading[str]:
    """The name under which the model is served; absent where there are several, for the readings are of all of them."""
    for label in adapter.models:
        named = {each.labels[label] for series in exposition.series.values() for each in series if label in each.labels}
        names = {name for name in named if name.lower() not in _UNSET}
        if len(names) == 1:
            shown = text(without_path(names.pop()))
            return Reading(shown.value, read_from=label) if shown.value is not None else shown
        if names:
            break
    return Reading.missing(Absence.NOT_REPORTED)


def without_path(name: str) -> str:
    """The name of a model, of a path to one only the end: `organisation/model`, or only the model where in doubt."""
    if cached := _CACHED_REPOSITORY.search(name):
        return "/".join(cached.groups())
    rooted = bool(re.match(r"[/\\~.]|[A-Za-z]:", name)) or "\\" in name
    parts = [part for part in re.split(r"[/\\]", name) if part not in ("", ".", "..", "~") and part[1:] != ":"]
    if not rooted and len(parts) <= 2:
        return name
    folder_is_of_models = len(parts) >= _PATH_PARTS_FOR_TWO and parts[-3].lower() not in _HOMES
    return "/".join(parts[-2:] if folder_is_of_models else parts[-1:])


def settings(exposition: Exposition, adapter: Adapter) -> Mapping[str, str]:
    """What the server shows of its configuration, as far as all its engines agree."""
    found: dict[str, str] = {}
    for name, labels in adapter.labels.items():
        series = exposition.series.get(name, ())
        for label in labels:
            values = {each.labels.get(label, "") for each in series}
            if len(values) == 1 and (shown := _setting(values.pop())) is not None:
                found.setdefault(label, shown)
    for key, candidates in adapter.gauges.items():
        for candidate in candidates:
            numbers = set((by_instance(exposition, adapter, candidate) or {}).values())
            if len(numbers) == 1:
                found.setdefault(key, f"{numbers.pop():.12g}")
                break
    return MappingProxyType(found)


def version(exposition: Exposition, adapter: Adapter) -> Reading[str]:
    """The version of the engine, where a metric tells it."""
    for selector in adapter.versions:
        values = {each.labels.get(selector.label or "", "") for each in exposition.series.get(selector.name, ())}
        if len(values) == 1 and (shown := _setting(values.pop())) is not None:
            return Reading(shown, read_from=selector.name)
    return Reading.missing(Absence.NOT_REPORTED)


def _setting(raw: str) -> str | None:
    """One line of it, unless it is not set or could be a path or an address."""
    if raw.strip().lower() in _UNSET or any(sign in raw for sign in ("/", "\\", "@")):
        return None
    return text(raw).value


MOST = 1e18
"""No count, rate or size of a server comes near; what is larger is garbage."""

_SHARES = frozenset({"kv_cache_usage", "prefix_hit_rate"})
_WHOLE = frozenset({"kv_capacity_tokens", "kv_pool_bytes"})
_SHARE_SLACK = 1e-9
_QUANTILES = {"p50": 0.5, "p99": 0.99}

Readings = dict[str, Reading[float]]


@dataclass(frozen=True, slots=True)
class _Told:
    """All that readings are made of: one scrape, what it has counted, and the growth of that since earlier ones."""

    adapter: Adapter
    exposition: Exposition
    tally: Tally
    window: Window


def measure(adapter: Adapter, exposition: Exposition, tally: Tally, window: Window) -> ServerReadings:
    """What the server says of itself now, and what it did in the window that ends with this scrape."""
    told = _Told(adapter, exposition, tally, window)
    readings: Readings = {}
    unusable: set[str] = set()
    for concept in adapter.concepts:
        fields = _fields(concept)
        if fields[0] in readings:
            continue
        for candidate in concept.candidates:
            found = _by_rule(concept, candidate, told)
            if found is not None:
                readings = found | readings  # What an earlier row has read stays.
                break
            if _is_unusable(candidate, told):
                unusable.update(fields)
    units = units_of(ServerReadings)
    for field in unusable - readings.keys():
        readings[field] = Reading.missing(Absence.IMPLAUSIBLE, units[field])
    return ServerReadings.of(
        adapter.kind,
        Absence.NOT_REPORTED,
        window_s=window.seconds,
        settings=settings(exposition, adapter),
        model_name=model_name(exposition, adapter),
        **readings,
    )


def _fields(concept: Concept) -> tuple[str, ...]:
    """The readings that a concept gives."""
    if concept.rule is not Rule.HISTOGRAM:
        return (concept.reading,)
    wanted = (f"{concept.reading}_{part}_s" for part in (*_QUANTILES, "mean"))
    return tuple(field for field in wanted if field in units_of(ServerReadings))


def _by_rule(concept: Concept, candidate: Candidate, told: _Told) -> Readings | None:
    """The readings by one candidate; None where the server does not report it."""
    if concept.rule in GAUGES:
        values = by_instance(told.exposition, told.adapter, candidate)
        if values is None:
            return None
        shown = candidate.shown({each: each.name for each in candidate.selectors})
        return {concept.reading: _reading(concept, together(values, concept, told.exposition, told.adapter), shown)}
    of_histogram = concept.rule in (Rule.HISTOGRAM, Rule.AVERAGE)
    counted = told.tally.histograms.keys() if of_histogram else told.tally.counters.keys()
    if not counted >= set(candidate.selectors):
        return None
    shown = candidate.shown(told.tally.names)
    if told.window.absence is not None:
        return _missing(concept, told.window.absence, shown)
    return (_of_histogram if of_histogram else _of_counters)(concept, candidate, shown, told.window)


def _of_counters(concept: Concept, candidate: Candidate, shown: str, window: Window) -> Readings:
    above, below = ([window.growths(each) for each in side] for side in (candidate.above, candidate.below))
    if not all(any(grown.series for grown, _ in steps) for steps in above + below):
        return _missing(concept, Absence.NEEDS_TWO_SAMPLES, shown)  # They came with this scrape, the others did not.
    if concept.rule is Rule.RATIO:
        part, whole = (math.fsum(grown.total for steps in side for grown, _ in steps) for side in (above, below))
        if whole <= 0:
            return _missing(concept, Absence.NOTHING_TO_MEASURE, shown)
        return {concept.reading: _reading(concept, part / whole, shown)}
    rate = 0.0
    for steps in above:
        grown_by = math.fsum(grown.mean if concept.rule is Rule.MEAN_RATE else grown.total for grown, _ in steps)
        rate += grown_by / math.fsum(seconds for _, seconds in steps)
    return {concept.reading: _reading(concept, rate, shown)}


def _of_histogram(concept: Concept, candidate: Candidate, shown: str, window: Window) -> Readings:
    observed = window.observed(candidate.above[0])
    if observed is None:
        return _missing(concept, Absence.NEEDS_TWO_SAMPLES, shown)
    if observed.count <= 0 or observed.mean is None:
        return _missing(concept, Absence.NOTHING_TO_MEASURE, shown)
    mean = _reading(concept, observed.mean, shown)
    readings: Readings = {}
    for field in _fields(concept):
        share = next((share for part, share in _QUANTILES.items() if field.endswith(f"_{part}_s")), None)
        if share is None:
            readings[field] = mean
        elif (at := quantile(observed, share)) is None:
            readings[field] = Reading.missing(Absence.NOT_REPORTED, mean.unit)
        else:
            readings[field] = _reading(concept, at.value, f"{shown} (beyond its last bucket)" if at.beyond else shown)
    return readings


def _reading(concept: Concept, value: float, shown: str) -> Reading[float]:
    unit = units_of(ServerReadings)[_fields(concept)[0]]
    value *= concept.scale
    if concept.reading in _SHARES and 1 < value <= 1 + _SHARE_SLACK:
        value = 1.0
    if not 0 <= value <= (1 if concept.reading in _SHARES else MOST):
        return Reading.missing(Absence.IMPLAUSIBLE, unit)
    if concept.reading in _WHOLE:
        return Reading(round(value), unit, read_from=shown) if value else Reading.missing(Absence.ZERO_READING, unit)
    return Reading(float(value), unit, read_from=shown)


def _missing(concept: Concept, absence: Absence, shown: str) -> Readings:
    units = units_of(ServerReadings)
    return {field: Reading(None, units[field], absence, shown) for field in _fields(concept)}


def _is_unusable(candidate: Candidate, told: _Told) -> bool:
    """Whether a metric is there, but with no value that could be read."""
    return any(each in told.tally.unusable or each.name in told.exposition.unusable for each in candidate.selectors)
