"""The flags of a command as they are written, and the names of models and cards in them."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from app.calc.dtypes import WeightFormat
from app.calc.model.parameters import NATIVE
from app.calc.time.speculation import Method
from app.catalog.catalog import Catalog
from app.catalog.models import ModelRecord
from app.engine_io.launch.findings import Findings, Reason
from app.engine_io.logs.model_names import find_model
from app.scenario.scenario import Model, Scenario

MOST_LETTERS = 300
UNNAMED = "custom"
"""Last part of the path that stands for a model of one's own."""
SIXTEEN_BITS_OR_MORE = (WeightFormat.FP32, WeightFormat.BF16, WeightFormat.FP16)

# How published files say their format at the end of their name, longest first where one ends in another.
_ENDINGS: Mapping[str, WeightFormat] = {
    "fp8-dynamic": WeightFormat.FP8,
    "fp8-static-pertensor": WeightFormat.FP8,
    "fp8": WeightFormat.FP8,
    "gptq-int4": WeightFormat.INT4,
    "gptq-int8": WeightFormat.INT8,
    "quantized.w4a16": WeightFormat.INT4,
    "quantized.w8a8": WeightFormat.INT8,
    "awq-int4": WeightFormat.INT4,
    "awq": WeightFormat.INT4,
    "w4a16": WeightFormat.INT4,
    "w8a8": WeightFormat.INT8,
    "int4": WeightFormat.INT4,
    "int8": WeightFormat.INT8,
    "nvfp4": WeightFormat.NVFP4,
    "mxfp4": WeightFormat.MXFP4,
    "fp4": WeightFormat.NVFP4,
    "fp16": WeightFormat.FP16,
    "fp32": WeightFormat.FP32,
    "bf16": WeightFormat.BF16,
    # Of GGUF files.
    "q8_0": WeightFormat.INT8,
    "q4_0": WeightFormat.INT4,
    "q4_1": WeightFormat.INT4,
    "q4_k_s": WeightFormat.INT4,
    "q4_k_m": WeightFormat.INT4,
    "q4_k_xl": WeightFormat.INT4,
    "iq4_nl": WeightFormat.INT4,
    "iq4_xs": WeightFormat.INT4,
    "mxfp4_moe": WeightFormat.MXFP4,
    "f16": WeightFormat.FP16,
    "f32": WeightFormat.FP32,
}


@dataclass(frozen=True, slots=True)
class Named:
    """What a name says: a catalog model where it matches one, and a format where it tells one.

    `mixed` says that the files are known, and stored in a way that no one format's name stands for.
    """

    model: str | None = None
    weights: str | None = None
    mixed: bool = False


@dataclass(frozen=True, slots=True)
class Source:
    """Where a model's weights come from: a hub id or a path to be filled in, and the format that lies there."""

    path: str
    held: str | None
    on_hub: bool


def read_name(text: str, catalog: Catalog) -> Named:
    """The model that a hub id, a path or the name of a GGUF file stands for, as far as the catalog knows it."""
    text = text.removeprefix("hf://").rstrip("/").lower()
    if len(text) > MOST_LETTERS:
        return Named()
    hubs = _hub_ids(catalog)
    for part in (text, *_cache_folders(text)):
        if part in hubs:
            return _checkpoint(catalog, *hubs[part])
    tails = _tails(hubs)
    last = text.rpartition("/")[2]
    tail = last.removesuffix(".gguf").removesuffix("-gguf")
    if tail in tails:
        # A GGUF file is a conversion: it does not hold what the checkpoint of that name holds.
        return _checkpoint(catalog, *tails[tail]) if tail == last else Named(tails[tail][0])
    base, weights = _without_ending(tail)
    if base in tails:
        return Named(tails[base][0], weights)
    # Tuned checkpoints and models of the same shape go by other names.
    same = find_model(text, catalog.models)
    return Named(None, weights) if same is None else Named(same.id, weights or same.weights)


def _without_ending(tail: str) -> tuple[str, WeightFormat | None]:
    for ending, weights in _ENDINGS.items():
        base = tail.removesuffix(ending)
        if base != tail and base.endswith(("-", ".", "_")):
            return base[:-1].removesuffix("-gguf").removesuffix("-ud"), weights
    return tail, None


def read_quantization(text: str) -> str | None:
    """The format that the tag of a GGUF repository names, such as Q4_K_M."""
    return _ENDINGS.get(text.lower().removeprefix("ud-"))


def choose_source(model: Model, weights: str | None, catalog: Catalog) -> Source:
    """The published files in that format; else a path whose name says which files are needed."""
    record = catalog.models.get(model.id or "")
    if record is None:
        return Source(f"/models/{UNNAMED}", None, False)
    for number, (hub_id, label) in enumerate(published(record)):
        if label == weights or (number == 0 and weights in (None, NATIVE)):
            return Source(hub_id, label, True)
    return needed_files(record, str(weights))


def needed_files(record: ModelRecord, weights: str) -> Source:
    """A path for files that the catalog does not know, named for what they must hold."""
    tail = record.hub_id.rpartition("/")[2]
    return Source(f"/models/{tail}-{weights.upper()}", weights, False)


def published(record: ModelRecord) -> Iterator[tuple[str, str]]:
    """Hub ids of a model's checkpoints and how they store the weights, the one that is used by default first."""
    for number, checkpoint in enumerate(record.checkpoints):
        if number == 0 or checkpoint.hub_id:
            yield checkpoint.hub_id or record.hub_id, str(checkpoint.plan(record.architecture).label)


def stored_bytes(source: Source, model_id: str | None, catalog: Catalog) -> float | None:
    """Size of the published files at a source; None where they are not published."""
    record = catalog.models.get(model_id or "")
    if record is None or not source.on_hub:
        return None
    for checkpoint in record.checkpoints:
        if source.path == (checkpoint.hub_id or record.hub_id):
            return checkpoint.file_bytes or checkpoint.computed_bytes(record.architecture)
    return None


def hub_id_of(model_id: str | None, catalog: Catalog) -> str | None:
    """The hub id of a catalog model's usual files."""
    record = catalog.models.get(model_id or "")
    return None if record is None else record.checkpoints[0].hub_id or record.hub_id


def _checkpoint(catalog: Catalog, model: str, number: int) -> Named:
    if number == 0:
        return Named(model, str(catalog.plans[model].label))
    record = catalog.models[model]
    checkpoint = record.checkpoints[number]
    label = str(checkpoint.plan(record.architecture).label)
    if label != NATIVE:
        return Named(model, label)
    # "native" would mean the model's first checkpoint. What this one's own name says comes nearest.
    weights = _without_ending((checkpoint.hub_id or "").lower())[1]
    return Named(model, weights, weights is None)


def _hub_ids(catalog: Catalog) -> dict[str, tuple[str, int]]:
    """Model and number of checkpoint by hub id; of two models with one id, the first has it."""
    found: dict[str, tuple[str, int]] = {}
    for record in catalog.models.values():
        for number, checkpoint in enumerate(record.checkpoints):
            hub_id = checkpoint.hub_id or (record.hub_id if number == 0 else None)
            if hub_id:
                found.setdefault(hub_id.lower(), (record.id, number))
    return found


def _tails(hubs: Mapping[str, tuple[str, int]]) -> dict[str, tuple[str, int]]:
    """The same by the last part of the id, which local folders and GGUF files keep; only where it is no one else's."""
    found: dict[str, tuple[str, int]] = {}
    shared = set()
    for hub_id, place in hubs.items():
        tail = hub_id.rpartition("/")[2]
        if tail in found:
            shared.add(tail)
        found[tail] = place
    return {tail: place for tail, place in found.items() if tail not in shared}


def _cache_folders(text: str) -> Iterator[str]:
    """Hub ids as the Hugging Face cache spells them in its folders: models--org--name."""
    for part in text.split("/"):
        if part.startswith("models--"):
            yield part.removeprefix("models--").replace("--", "/")


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
        if on:
            self.pairs.append((flag,))

    def note(self, text: str) -> None:
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
