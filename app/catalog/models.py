"""How a published checkpoint stores its weights: a format for each group that is not in its wide type.

The model catalog: TOML files read into checked, immutable records.

Families of chips whose kernels are alike: what the calibration of expected times groups accelerators by.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Annotated

from pydantic import Field

from app.calc.dtypes import Dtype, WeightFormat, WeightLayout
from app.calc.model.architecture import Architecture, LayerGroup, MultiTokenPrediction, SidePath
from app.calc.model.layers.parts import WeightGroup
from app.calc.model.parameters import WeightPlan, count_parameters, named, weight_bytes
from app.catalog.rows import READ_ONLY, read_catalog


@dataclass(frozen=True, slots=True)
class Scheme:
    """A format by its name, or elements with `scale_bits` of scale and zero for each block, where none has a name."""

    format: WeightFormat | None = None
    element: Dtype | None = None
    block_elements: int = 1
    scale_bits: int | None = None

    @property
    def layout(self) -> WeightLayout:
        """The same for the calculators.

        Raises:
            ValueError: neither a format nor an element is given, or both.
        """
        if (self.format is None) == (self.element is None):
            raise ValueError("give a format, or an element")
        if self.format is not None:
            return self.format.layout
        assert self.element is not None  # noqa: S101  # for the type checker: one of the two is there
        return WeightLayout(self.element, self.block_elements, self.scale_bits or 0)


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """One published set of files. `file_bytes` is their size where it is known; `hub_id` where it is not the model's.

    `carries_mtp` says that the multi-token-prediction layers, and the copies they bring, are in the files.
    """

    label: str
    wide: WeightFormat = WeightFormat.BF16
    narrow: Annotated[Mapping[WeightGroup, Scheme], READ_ONLY] = field(default_factory=lambda: MappingProxyType({}))
    hub_id: str | None = None
    file_bytes: int | None = None
    carries_mtp: bool = False

    def plan(self, architecture: Architecture) -> WeightPlan:
        """The same for the calculators, under a format's own name where it is what that name means."""
        narrow = tuple((group, scheme.layout) for group, scheme in self.narrow.items())
        return named(WeightPlan("", self.wide.layout, narrow), architecture)

    def computed_bytes(self, architecture: Architecture, duplicate_params: int = 0) -> float:
        """Bytes of the files by our count; copies of embedding and head are in the wide type."""
        plan = self.plan(architecture)
        return weight_bytes(count_parameters(architecture), plan) + duplicate_params * plan.wide.bytes_per_weight


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


# The first that the architecture's name begins with. GeForce parts of Ampere and Ada are rated for products that are
# added up in fp32, which their other parts do at the full rate: they stand apart.
_FAMILIES = (
    ("Hopper", "hopper"),
    ("Blackwell Ultra", "blackwell-ultra"),
    ("Blackwell GB100", "blackwell"),
    ("Blackwell GB20B", "blackwell-soc"),
    ("Blackwell GB10B", "blackwell-soc"),
    ("Blackwell GB2", "blackwell-gddr"),
    ("Ampere GA100", "ampere"),
    ("Ampere", "ampere-gddr"),
    ("Ada", "ada"),
    ("CDNA2", "cdna2"),
    ("CDNA", "cdna3"),
    ("RDNA3.5", "rdna-soc"),
    ("RDNA", "rdna"),
    ("Apple", "apple"),
    ("Xe2", "xe2"),
    ("Xe-HPC", "xe-hpc"),
)
_SPLIT_BY_MARKET = ("ampere-gddr", "ada")


def family_of(architecture: str, *, is_consumer: bool) -> str:
    """The family of an architecture; the architecture itself, in small letters, where it stands alone."""
    for start, family in _FAMILIES:
        if architecture.startswith(start):
            return f"{family}-consumer" if is_consumer and family in _SPLIT_BY_MARKET else family
    return architecture.lower()


def memory_kind_of(memory_type: str) -> str:
    """`unified` for the machine's own memory, else `gddr`, `hbm`, or `sram` for memory on the chip."""
    if "unified" in memory_type and "HBM" not in memory_type:
        return "unified"
    if "GDDR" in memory_type:
        return "gddr"
    return "hbm" if "HBM" in memory_type else "sram"
