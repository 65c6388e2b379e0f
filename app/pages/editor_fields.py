"""Which fields the editor has: read from the dataclasses of the layer kinds, so that a new kind needs no form.

A path names a field: its keys and, in lists, its places, joined by dashes (`layers-0-mixer-n_heads`). Texts stand at
paths; a document of the catalog's own terms stands in between.
"""

from collections.abc import Iterator, Mapping
from dataclasses import MISSING, Field, dataclass, fields, is_dataclass
from enum import Enum, StrEnum
from functools import lru_cache
from types import UnionType
from typing import Any, get_args, get_origin

from app.calc.architecture import Architecture
from app.calc.layers.parts import FeedForward, Mixer, WeightGroup
from app.calc.layers.registry import FEED_FORWARDS, MIXERS
from app.pages.editor_words import EMPTY, GROUPS, label_of

SEP = "-"
KIND, THERE, SHOWN = "kind", "there", "shown"
NO_KIND = "none"
REGISTRIES: Mapping[type, Mapping[str, type]] = {Mixer: MIXERS, FeedForward: FEED_FORWARDS}
SHAPE = (
    "hidden_size",
    "vocab_size",
    "max_position",
    "tied_embeddings",
    "norm_bias",
    "head_bias",
    "learned_positions",
    "vision_params",
)


class Input(Enum):
    """How a field is typed in."""

    WHOLE = "whole"
    TEXT = "text"
    FLAG = "flag"
    CHOICE = "choice"
    SET = "set"


@dataclass(frozen=True, slots=True)
class Spec:
    """One field: `default` is what it is where nothing is written, None for nothing."""

    name: str
    input: Input
    is_required: bool
    default: Any = None
    choices: tuple[tuple[str, str], ...] = ()

    @property
    def label(self) -> str:
        """Its words."""
        return label_of(self.name)

    @property
    def placeholder(self) -> str:
        """What an empty field means."""
        if self.is_required or self.input is not Input.WHOLE:
            return ""
        return EMPTY.get(self.name, "none") if not self.default else f"{self.default:,}"


@dataclass(frozen=True, slots=True)
class Nested:
    """A part inside a part, with fields of its own; one that is optional has a box that says whether it is there."""

    name: str
    kind: type
    is_required: bool

    @property
    def label(self) -> str:
        """Its words."""
        return label_of(self.name)


def path_of(*parts: str | int) -> str:
    """A path from its parts; empty ones are left out."""
    return SEP.join(str(part) for part in parts if part != "")


@lru_cache(maxsize=64)
def specs_of(kind: type) -> tuple[Spec | Nested, ...]:
    """The fields of a dataclass, in its order: numbers first, then choices and boxes; nested parts last."""
    found = [spec for f in fields(kind) if (spec := _spec(f)) is not None]
    rank = {Input.TEXT: 0, Input.WHOLE: 1, Input.CHOICE: 2, Input.FLAG: 3, Input.SET: 4}
    return tuple(sorted(found, key=lambda spec: rank[spec.input] if isinstance(spec, Spec) else 5))


@lru_cache(maxsize=1)
def shape_specs() -> tuple[Spec, ...]:
    """The fields of the whole model, in the order of the form."""
    named = {spec.name: spec for spec in specs_of(Architecture) if isinstance(spec, Spec)}
    return tuple(named[name] for name in SHAPE)


def flat_specs(kind: type, prefix: str = "") -> Iterator[tuple[str, Spec]]:
    """Every field of a kind, those of nested parts too, each with its path below `prefix`."""
    for spec in specs_of(kind):
        if isinstance(spec, Spec):
            yield path_of(prefix, spec.name), spec
        else:
            yield from flat_specs(spec.kind, path_of(prefix, spec.name))


def _spec(f: Field[Any]) -> Spec | Nested | None:
    """The field of a dataclass's cell; None for lists of parts and for parts of an open kind, which have forms."""
    kind, is_required = f.type, f.default is MISSING
    default = None if is_required else f.default
    if isinstance(kind, UnionType):
        kind = next(one for one in get_args(kind) if one is not type(None))
    if kind in REGISTRIES:
        return None
    if get_origin(kind) is frozenset:
        choices = tuple((group.value, GROUPS[group]) for group in WeightGroup if group.value in GROUPS)
        return Spec(f.name, Input.SET, is_required=False, choices=choices)
    if get_origin(kind) is not None:
        return None
    assert isinstance(kind, type)  # noqa: S101  # for the type checker: annotations are objects here
    if is_dataclass(kind):
        return Nested(f.name, kind, is_required)
    if kind is bool:
        return Spec(f.name, Input.FLAG, is_required, default=bool(default))
    if issubclass(kind, StrEnum):
        choices = tuple((member.value, member.value.replace("_", " ")) for member in kind)
        return Spec(f.name, Input.CHOICE, is_required, default=default, choices=choices)
    return Spec(f.name, Input.WHOLE if kind is int else Input.TEXT, is_required, default=default)
