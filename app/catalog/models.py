"""The model catalog: TOML files read into checked, immutable records."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Annotated

from pydantic import Field

from app.calc.architecture import Architecture, LayerGroup, MultiTokenPrediction, SidePath
from app.calc.parameters import count_parameters
from app.calc.weight_plan import WeightPlan
from app.catalog.checkpoints import Checkpoint
from app.catalog.rows import READ_ONLY, read_catalog

DATA_FOLDER = Path(__file__).resolve().parent / "data" / "models"
TOLERANCE = 1e-4  # of the stated total; a row that is further off must give its reason
_RUN = re.compile(r"([a-z]+)(?:\*([0-9]{1,6}))?")


class Confidence(StrEnum):
    """High: the total matches a published count; medium: dimensions or the total are recalled."""

    HIGH = "high"
    MEDIUM = "medium"


class ActiveConvention(StrEnum):
    """What a vendor counts as active: every weight a token meets, all but the embedding, or neither it nor the head."""

    ALL = "all weights"
    WITHOUT_EMBEDDING = "without the input embedding"
    WITHOUT_EMBEDDINGS = "without embedding and head"


@dataclass(frozen=True, slots=True)
class Stated:
    """The published parameter total, what kind of figure it is, and what it counts beside loaded weights.

    `active_params` is the vendor's figure, and `active_convention` the way of counting that comes nearest to it.
    """

    params: int
    basis: str
    counts_mtp: bool = False
    beside_weights: Annotated[Mapping[str, int], READ_ONLY] = field(default_factory=lambda: MappingProxyType({}))
    deviation_reason: str | None = None
    active_params: int | None = None
    active_convention: ActiveConvention | None = None


@dataclass(frozen=True, slots=True)
class Shape:
    """Dimensions of the whole model, elements and tokens."""

    hidden_size: int
    vocab_size: int
    max_position: int
    tied_embeddings: bool
    learned_positions: int = 0
    norm_bias: bool = False
    head_bias: bool = False
    vision_params: int = 0
    side_paths: tuple[SidePath, ...] = ()


@dataclass(frozen=True, slots=True)
class Release:
    """When the model came out, as exactly as it is known, and where that was read."""

    date: str
    source: str


@dataclass(frozen=True, slots=True)
class Lineage:
    """The catalog model that this one was made from, and how."""

    base: str
    link: str


@dataclass(frozen=True)
class ModelRecord:
    """All facts of one model with their sources.

    `order` spells the layers from the input up, a letter for each group in the order of `layers`: "aab*10 b" is ten
    times two layers of the first group and one of the second, then one more. It is left out where it is not known.
    """

    id: str
    name: str
    family: str
    hub_id: str
    model_type: str
    confidence: Confidence
    sources: tuple[str, ...]
    caveats: tuple[str, ...]
    stated: Stated
    shape: Shape
    layers: tuple[LayerGroup, ...]
    checkpoints: Annotated[tuple[Checkpoint, ...], Field(alias="checkpoint")]
    order: str | None = None
    mtp: MultiTokenPrediction | None = None
    same_shape: tuple[str, ...] = ()
    released: Release | None = None
    lineage: Lineage | None = None

    @cached_property
    def architecture(self) -> Architecture:
        """The same model for the calculators, multi-token prediction not loaded."""
        shape = self.shape
        return Architecture(
            name=self.name,
            hidden_size=shape.hidden_size,
            vocab_size=shape.vocab_size,
            layers=self.layers,
            order=spelled(self.order) if self.order else (0,) * self.layers[0].count if len(self.layers) == 1 else (),
            tied_embeddings=shape.tied_embeddings,
            max_position=shape.max_position,
            learned_positions=shape.learned_positions,
            norm_bias=shape.norm_bias,
            head_bias=shape.head_bias,
            vision_params=shape.vision_params,
            side_paths=shape.side_paths,
        )

    @property
    def architecture_with_mtp(self) -> Architecture:
        """The same with the multi-token-prediction layers loaded, where it has any."""
        return replace(self.architecture, mtp=self.mtp)

    @property
    def native_plan(self) -> WeightPlan:
        """How the first checkpoint stores its weights."""
        return self.checkpoints[0].plan(self.architecture)

    @property
    def stated_parts(self) -> int:
        """What the stated total should be by our count."""
        counted = self.architecture_with_mtp if self.stated.counts_mtp else self.architecture
        return count_parameters(counted).total + sum(self.stated.beside_weights.values())

    @property
    def deviation(self) -> float:
        """(recomputed − stated) ÷ stated, what is counted beside weights taken into account."""
        return (self.stated_parts - self.stated.params) / self.stated.params


def spelled(order: str, most: int = 10_000) -> tuple[int, ...]:
    """The group of each layer, `most` layers in all.

    Raises:
        ValueError: the text is no such spelling.
    """
    found: list[int] = []
    for part in order.split():
        run = _RUN.fullmatch(part)
        if run is None:
            raise ValueError(f"{part!r} is no run of layers; write letters and how often, as in aab*10")
        times = int(run[2] or 1)
        if len(found) + len(run[1]) * times > most:
            raise ValueError(f"spells more than {most:,} layers")
        found += [ord(letter) - ord("a") for letter in run[1]] * times
    return tuple(found)


def load_models(folder: Path = DATA_FOLDER) -> Mapping[str, ModelRecord]:
    """Every model of the folder's TOML files by id, in the order of file names and of rows.

    Raises:
        CatalogError: a row is not to be trusted; names the file, the row and the field.
    """
    return read_catalog(folder, "model", ModelRecord, _check)


def _check(record: ModelRecord) -> Iterator[tuple[str, str]]:
    if not record.layers:
        yield "layers", "a model has layers"
    if not record.checkpoints:
        yield "checkpoint", "a model ships weights in some format"
    wrong_order = _order_fault(record)
    if wrong_order:
        yield "order", wrong_order
    for number, group in enumerate(record.layers, start=1):
        heads, kv_heads = getattr(group.mixer, "n_heads", 1), getattr(group.mixer, "n_kv_heads", 1)
        if heads % kv_heads:
            yield f"layers[{number}].mixer", "the KV heads do not divide the heads"
            return
    if not record.layers or wrong_order:
        return
    if abs(record.deviation) > TOLERANCE and record.stated.deviation_reason is None:
        off = f"the dimensions give a total {record.deviation:+.2%} from this, and no deviation_reason is given"
        yield "stated.params", off


def _order_fault(record: ModelRecord) -> str | None:
    if record.order is None:
        return None
    try:
        order = spelled(record.order)
    except ValueError as error:
        return str(error)
    for number, group in enumerate(record.layers):
        if order.count(number) != group.count:
            letter = chr(ord("a") + number)
            return f"has {order.count(number)} layers {letter!r}, but the group has {group.count}"
    if len(order) != sum(group.count for group in record.layers):
        return "names a group that there is not"
    return None
