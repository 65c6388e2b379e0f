"""The adapters, read from their files, and which of them a server's metrics call for."""

import tomllib
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

from app.machine.probes.servers.adapter import (
    CONCEPTS,
    COUNTERS,
    GAUGES,
    SETTINGS,
    Adapter,
    Candidate,
    Concept,
    Rule,
    parse_candidate,
    parse_selector,
)
from app.machine.probes.servers.exposition import Exposition
from app.machine.probes.servers.tally import STARTED_AT


class AdapterError(ValueError):
    """A data file is not to be trusted; says which, where and why."""


def load_adapter(file: Path) -> Adapter:
    """The adapter that a data file describes.

    Raises:
        AdapterError: something in the file is unknown, missing or malformed.
    """
    try:
        return _adapter(tomllib.loads(file.read_text(encoding="utf-8")))
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise AdapterError(f"{file.name}: {error}") from error


def _adapter(raw: dict[str, Any]) -> Adapter:
    adapter = Adapter(
        kind=_text(raw.pop("kind")),
        prefixes=_texts(raw.pop("prefixes", [])),
        marks=_texts(raw.pop("marks", [])),
        instances=_texts(raw.pop("instances", [])),
        ranks=_texts(raw.pop("ranks", [])),
        totals=MappingProxyType({_text(label): _text(value) for label, value in raw.pop("totals", {}).items()}),
        models=_texts(raw.pop("models", [])),
        concepts=tuple(_concept(row) for row in raw.pop("concept")),
        labels=MappingProxyType({name: _settings(keys) for name, keys in raw.pop("labels", {}).items()}),
        gauges=MappingProxyType({key: _candidates(names) for key, names in raw.pop("gauges", {}).items()}),
        versions=tuple(parse_selector(each) for each in _texts(raw.pop("versions", []))),
    )
    if raw:
        raise ValueError(f"unknown key {min(raw)!r}")
    if not adapter.prefixes and not adapter.marks:
        raise ValueError("nothing tells the server: neither prefixes nor marks")
    if not all(adapter.prefixes):
        raise ValueError("an empty prefix would claim every server")
    _settings(list(adapter.gauges))
    if any(each.label is None for each in adapter.versions):
        raise ValueError("a version is read from a label")
    return adapter


def _concept(row: dict[str, Any]) -> Concept:
    concept = Concept(
        reading=_text(row.pop("reading")),
        rule=Rule(row.pop("rule")),
        candidates=_candidates(row.pop("names")),
        weights=_candidates(row.pop("weights", [])),
        scale=float(row.pop("scale", 1.0)),
    )
    where = f"concept {concept.reading!r}"
    if row:
        raise ValueError(f"{where}: unknown key {min(row)!r}")
    if concept.rule not in CONCEPTS.get(concept.reading, frozenset()):
        raise ValueError(f"{where}: not known, or not by the rule {concept.rule.value!r}")
    if not concept.candidates or not 0 < concept.scale < 1e15:
        raise ValueError(f"{where}: no names, or an absurd scale")
    if concept.weights and concept.rule is not Rule.MEAN:
        raise ValueError(f"{where}: only a mean has weights")
    for candidate in concept.candidates:
        _check_form(where, concept.rule, candidate)
    return concept


def _check_form(where: str, rule: Rule, candidate: Candidate) -> None:
    if rule in GAUGES:
        fits = candidate.joint in ("", "×")
    elif rule is Rule.RATIO:
        fits = candidate.joint in ("", "+") and bool(candidate.below)
    elif rule in COUNTERS:
        fits = candidate.joint in ("", "+") and not candidate.below
    else:
        fits = len(candidate.selectors) == 1
    if not fits or (rule not in GAUGES and any(each.label is not None for each in candidate.selectors)):
        raise ValueError(f"{where}: a candidate does not fit the rule {rule.value!r}")


def _candidates(names: object) -> tuple[Candidate, ...]:
    return tuple(parse_candidate(each) for each in _texts(names))


def _settings(keys: object) -> tuple[str, ...]:
    named = _texts(keys)
    if unknown := sorted(set(named) - SETTINGS):
        raise ValueError(f"{unknown[0]!r} is not among the settings that may be shown")
    return named


def _texts(raw: object) -> tuple[str, ...]:
    if not isinstance(raw, list):
        raise TypeError(f"a list of texts is wanted, not {raw!r}")
    return tuple(_text(each) for each in raw)


def _text(raw: object) -> str:
    if not isinstance(raw, str):
        raise TypeError(f"a text is wanted, not {raw!r}")
    return raw


DATA = Path(__file__).resolve().parent / "data"

ORDER = (
    # Engines before what stands in front of them: a worker of Dynamo and a Triton backend pass their engine's on.
    "vllm",
    "sglang",
    "tensorrt-llm",
    "llama.cpp",
    "tgi",
    "triton",
    "dynamo",
    "endpoint-picker",
)
"""The kinds in the order in which they are tried. Those without prefixes are recognised last."""


@cache
def known_adapters(folder: Path = DATA) -> tuple[Adapter, ...]:
    """Every adapter, in the order in which they are tried.

    Raises:
        AdapterError: a data file is not to be trusted, is missing, or is of no known kind.
    """
    adapters = {adapter.kind: adapter for adapter in map(load_adapter, sorted(folder.glob("*.toml")))}
    if set(adapters) != set(ORDER):
        raise AdapterError(f"the data files are of {sorted(adapters)}, not of {sorted(ORDER)}")
    return tuple(adapters[kind] for kind in ORDER)


def adapter_of(kind: str) -> Adapter:
    """The adapter of a kind.

    Raises:
        KeyError: there is none.
    """
    return MappingProxyType({adapter.kind: adapter for adapter in known_adapters()})[kind]


@cache
def wanted_names() -> frozenset[str]:
    """The names of all samples that any adapter reads."""
    return frozenset(name for adapter in known_adapters() for name in adapter.wanted()) | {STARTED_AT}


def recognise(exposition: Exposition) -> Adapter | None:
    """The adapter for a scrape, by its names; None for a server that is not known."""
    for adapter in known_adapters():
        if adapter.prefixes and any(name.startswith(adapter.prefixes) for name in exposition.names):
            return adapter
    for adapter in known_adapters():
        if adapter.marks and exposition.names >= set(adapter.marks):
            return adapter
    return None
