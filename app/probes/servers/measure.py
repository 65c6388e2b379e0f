"""From a scrape and the seconds before it to the readings of a server."""

import math
from dataclasses import dataclass

from app.probes.reading import Absence, Reading, units_of
from app.probes.servers.adapter import GAUGES, Adapter, Concept, Rule
from app.probes.servers.describe import model_name, settings
from app.probes.servers.exposition import Exposition
from app.probes.servers.gauges import by_instance, together
from app.probes.servers.quantiles import quantile
from app.probes.servers.readings import ServerReadings
from app.probes.servers.selector import Candidate
from app.probes.servers.tally import Tally
from app.probes.servers.window import Window

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
