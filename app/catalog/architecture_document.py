"""An architecture as a document in the catalog's own terms, and back: what the editor saves inside a scenario."""

from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields, is_dataclass
from typing import Any, get_args

from app.calc.model.architecture import Architecture, LayerGroup, MultiTokenPrediction, SidePath
from app.calc.model.layers.registry import kind_of
from app.calc.model.parameters import count_parameters
from app.catalog.models import spelled
from app.catalog.rows import KINDS, validated

MOST_LAYERS = 10_000
MOST_LETTERS = 26
MOST_PARAMS = 10**16


class ArchitectureError(ValueError):
    """A document that describes no model: `path` is where, `message` what is wrong there."""

    def __init__(self, path: str, message: str) -> None:
        self.path, self.message = path, message
        super().__init__(f"{path}: {message}")


@dataclass(frozen=True, slots=True)
class _Document:
    """The schema; a model row's shape, layers and order, without what only a published model has."""

    hidden_size: int
    vocab_size: int
    layers: tuple[LayerGroup, ...]
    max_position: int | None = None
    order: str | None = None
    tied_embeddings: bool = False
    learned_positions: int | None = None
    norm_bias: bool = False
    head_bias: bool = False
    vision_params: int | None = None
    side_paths: tuple[SidePath, ...] = ()
    mtp: MultiTokenPrediction | None = None


def read_architecture(document: Mapping[str, Any], name: str) -> Architecture:
    """The architecture that a document describes.

    Raises:
        ArchitectureError: a key is missing, unknown or impossible, or the model is absurdly large; with the path.
    """
    read, wrong = validated(_Document, dict(document))
    if read is None:
        raise ArchitectureError(*wrong[0])
    architecture = _architecture(read, name)
    if count_parameters(architecture).total > MOST_PARAMS:
        raise ArchitectureError("layers", f"The model has more than {MOST_PARAMS:,} parameters.")
    return architecture


def _architecture(read: _Document, name: str) -> Architecture:
    n_layers = sum(group.count for group in read.layers)
    if not 1 <= n_layers <= MOST_LAYERS:
        raise ArchitectureError("layers", f"must be 1 to {MOST_LAYERS:,} layers in all, not {n_layers:,}")
    order = (0,) * n_layers if len(read.layers) == 1 else ()
    if read.order is not None:
        order = _order(read.order, [group.count for group in read.layers])
    return Architecture(
        name=name,
        hidden_size=read.hidden_size,
        vocab_size=read.vocab_size,
        layers=read.layers,
        order=order,
        tied_embeddings=read.tied_embeddings,
        max_position=read.max_position,
        learned_positions=read.learned_positions or 0,
        norm_bias=read.norm_bias,
        head_bias=read.head_bias,
        vision_params=read.vision_params or 0,
        side_paths=read.side_paths,
        mtp=read.mtp,
    )


def _order(text: str, counts: list[int]) -> tuple[int, ...]:
    try:
        order = spelled(text, MOST_LAYERS)
    except ValueError as error:
        raise ArchitectureError("order", str(error)) from error
    if [order.count(number) for number in range(len(counts))] != counts or len(order) != sum(counts):
        raise ArchitectureError("order", "does not name each group as often as it has layers")
    return order


def architecture_document(architecture: Architecture) -> dict[str, Any]:
    """The document that `read_architecture` reads back to the same model; defaults are left out."""
    written: dict[str, Any] = _written(architecture)
    document = {key: value for key, value in written.items() if key not in ("name", "order")}
    # There are letters for so many groups; with more of them the order cannot be spelled.
    if architecture.order and 1 < len(architecture.layers) <= MOST_LETTERS:
        document["order"] = "".join(chr(ord("a") + number) for number in architecture.order)
    return document


def _written(value: Any, *, with_kind: bool = False) -> Any:
    """A part in plain types; its kind is named only where the schema leaves the kind open."""
    if isinstance(value, tuple | frozenset):
        items = sorted(value) if isinstance(value, frozenset) else value
        return [_written(item, with_kind=with_kind) for item in items]
    if not is_dataclass(value):
        return value
    part: Any = value
    written = {
        f.name: _written(cell, with_kind=_is_open(f.type))
        for f in fields(value)
        if not _is_default(f, cell := getattr(value, f.name))
    }
    return ({"kind": kind_of(part)} if with_kind else {}) | written


def _is_open(annotation: Any) -> bool:
    return any(kind in KINDS for kind in (annotation, *get_args(annotation)))


def _is_default(f: Any, cell: Any) -> bool:
    return cell is None or (f.default is not MISSING and cell == f.default)
