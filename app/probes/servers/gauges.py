"""Gauges of one scrape, put together over the engines, ranks or pools of a server."""

from collections.abc import Mapping

from app.probes.servers.adapter import Adapter, Concept, Rule
from app.probes.servers.exposition import Exposition
from app.probes.servers.selector import Candidate, Selector
from app.probes.servers.tally import chosen

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
