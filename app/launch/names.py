"""Which catalog model a path or a hub id names, and how a model's files are named in a launch text."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from app.calc.dtypes import WeightFormat
from app.calc.weight_plan import NATIVE
from app.catalog.catalog import Catalog
from app.catalog.models import ModelRecord
from app.scenario import Model
from app.startup_log.model_names import find_model

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
