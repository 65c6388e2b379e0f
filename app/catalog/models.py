"""The model catalog: TOML files read into checked, immutable records."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from types import MappingProxyType

from app.calc.architecture import Architecture, LayerGroup
from app.calc.parameters import count_parameters
from app.catalog.errors import Place
from app.catalog.rows import read_catalog

DATA_FOLDER = Path(__file__).resolve().parent / "data" / "models"
TOLERANCE = 1e-4  # of the stated total; a row that is further off must give its reason


class Confidence(StrEnum):
    """High: the total matches a published count; medium: dimensions or the total are recalled."""

    HIGH = "high"
    MEDIUM = "medium"


@dataclass(frozen=True, slots=True)
class Stated:
    """The published parameter total, what kind of figure it is, and what it counts beside loaded weights."""

    params: int
    basis: str
    beside_weights: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))
    deviation_reason: str | None = None


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


@dataclass(frozen=True, slots=True)
class ModelRecord:
    """All facts of one model with their sources."""

    id: str
    name: str
    family: str
    hub_id: str
    model_type: str
    confidence: Confidence
    native_dtype: str
    sources: tuple[str, ...]
    caveats: tuple[str, ...]
    stated: Stated
    shape: Shape
    layers: tuple[LayerGroup, ...]
    same_shape: tuple[str, ...] = ()

    @property
    def architecture(self) -> Architecture:
        """The same model for the calculators."""
        shape = self.shape
        return Architecture(
            name=self.name,
            hidden_size=shape.hidden_size,
            vocab_size=shape.vocab_size,
            layers=self.layers,
            tied_embeddings=shape.tied_embeddings,
            max_position=shape.max_position,
            learned_positions=shape.learned_positions,
            norm_bias=shape.norm_bias,
            head_bias=shape.head_bias,
            vision_params=shape.vision_params,
        )

    @property
    def deviation(self) -> float:
        """(recomputed − stated) ÷ stated, what is counted beside weights taken into account."""
        counted = count_parameters(self.architecture).total + sum(self.stated.beside_weights.values())
        return (counted - self.stated.params) / self.stated.params


def load_models(folder: Path = DATA_FOLDER) -> Mapping[str, ModelRecord]:
    """Every model of the folder's TOML files by id, in the order of file names and of rows.

    Raises:
        CatalogError: a row is not to be trusted; names the file, the row and the field.
    """
    return read_catalog(folder, "model", ModelRecord, _check)


def _check(record: ModelRecord, place: Place) -> None:
    for number, group in enumerate(record.layers, start=1):
        if group.attention.n_heads % group.attention.n_kv_heads:
            inside = place.inside("layers").item(number).inside("attention")
            raise inside.refusal("the KV heads do not divide the heads")
    if not record.layers:
        raise place.inside("layers").refusal("a model has layers")
    if abs(record.deviation) > TOLERANCE and record.stated.deviation_reason is None:
        raise (
            place.inside("stated")
            .inside("params")
            .refusal(f"the dimensions give a total {record.deviation:+.2%} from this, and no deviation_reason is given")
        )
