"""What an engine module says of a scenario: flags with values, options of a file, and what it could not say."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from app.calc.dtypes import WeightFormat
from app.calc.techniques.speculation import Method
from app.catalog.catalog import Catalog
from app.launch.findings import Findings
from app.launch.forms import Reason
from app.launch.names import SIXTEEN_BITS_OR_MORE, Source, choose_source, hub_id_of, read_name
from app.scenario import Scenario

EAGLE_HEAD = "/models/eagle3-head"
_DRAFT = "/models/draft"


@dataclass(slots=True)
class Invocation:
    """The flags of one launch, in order; `options` go to a file where the engine reads one."""

    source: Source
    pairs: list[tuple[str, ...]] = field(default_factory=list)
    options: dict[str, Any] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def add(self, flag: str, value: object = None) -> None:
        """A flag; nothing where there is no value."""
        if value is not None:
            self.pairs.append((flag, str(value)))

    def switch(self, flag: str, on: bool | None) -> None:
        """A flag without a value, where it is on."""
        if on:
            self.pairs.append((flag,))

    def note(self, text: str) -> None:
        """Something that the flags cannot say."""
        self.notes.append(text)


def begin(scenario: Scenario, catalog: Catalog, casts: Mapping[WeightFormat, tuple[str, str]]) -> Invocation:
    """The invocation with its model: published files in the format that is asked for, or files that a flag of `casts`
    turns into it while they are loaded, or a path to be filled in."""
    weights, model_id = scenario.precision.weights, scenario.model.id
    source = choose_source(scenario.model, weights, catalog)
    if source.on_hub or model_id is None or model_id not in catalog.models:
        invocation = Invocation(source)
        if not source.on_hub:
            invocation.note(f"{source.path} stands for the model: put its path there.")
        return invocation
    label, hub_id = str(catalog.plans[model_id].label), hub_id_of(model_id, catalog)
    cast = casts.get(weights) if isinstance(weights, WeightFormat) else None
    if hub_id and cast and label in SIXTEEN_BITS_OR_MORE:
        invocation = Invocation(Source(hub_id, label, True))
        invocation.add(*cast)
        return invocation
    invocation = Invocation(source)
    invocation.note(
        f"Serving {weights} takes files in that format, and the catalog knows none: {source.path} stands for them."
    )
    return invocation


def guesser_of(scenario: Scenario) -> Method | None:
    """Who guesses: as asked, or what follows from the rest; None where nobody does."""
    speculative = scenario.techniques.speculative
    if speculative is None or speculative.method is not None:
        return None if speculative is None else speculative.method
    if speculative.draft is not None:
        return Method.DRAFT_MODEL
    return Method.MTP if scenario.model.mtp else Method.NGRAM


def drafter_source(told: Invocation, scenario: Scenario, catalog: Catalog) -> str | None:
    """Where the files of a draft model or of a head come from; None where nothing beside the model guesses."""
    speculative, method = scenario.techniques.speculative, guesser_of(scenario)
    if method is Method.EAGLE:
        told.note(f"{EAGLE_HEAD} stands for the files of an EAGLE-3 head trained for this model: put its path there.")
        return EAGLE_HEAD
    if speculative is None or method is not Method.DRAFT_MODEL:
        return None
    return (hub_id_of(speculative.draft.id, catalog) if speculative.draft else None) or _DRAFT


def read_model(findings: Findings, flag: str, text: str | None, served: str | None, catalog: Catalog) -> str | None:
    """Set the model that a path or hub id names, or the served name where the path names none; the format it tells."""
    found = None
    if text is not None and findings.resolved(flag, text):
        named = read_name(text, catalog)
        found = named.weights
        if named.model is not None:
            findings.tell(flag, "model.id", named.model)
        if found is not None:
            findings.tell(flag, "precision.weights", found, inferred=True)
        if named.mixed:
            findings.missing.append("precision.weights")
        if named.model is not None:
            return found
        if served is None:
            findings.leave(flag, Reason.VALUE)
    if served is not None:
        named = read_name(served.split(" ")[0].split(",")[0], catalog)
        if named.model is not None:
            findings.tell("--served-model-name", "model.id", named.model)
    return found


def read_cast(findings: Findings, flag: str, text: str | None, held: str | None, meanings: Mapping[str, str]) -> None:
    """Set the weights' format by a flag that converts on loading; files that are quantized keep theirs."""
    if text is None or not findings.resolved(flag, text) or text in ("auto", "none"):
        return
    if held is not None and held not in SIXTEEN_BITS_OR_MORE:
        findings.leave(flag, Reason.WITHOUT_EFFECT)
    else:
        findings.choice(flag, "precision.weights", text.lower(), meanings)


def read_draft(findings: Findings, flag: str, text: str | None, catalog: Catalog) -> None:
    """Set the draft model that a path or hub id names."""
    if text is None or not findings.resolved(flag, text):
        return
    named = read_name(text, catalog)
    if named.model is None:
        findings.leave(flag, Reason.VALUE)
    else:
        findings.tell(flag, "techniques.speculative.draft.id", named.model)
