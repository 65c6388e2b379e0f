"""Which fields the editor has: read from the dataclasses of the layer kinds, so that a new kind needs no form.

A path names a field: its keys and, in lists, its places, joined by dashes (`layers-0-mixer-n_heads`). Texts stand at
paths; a document of the catalog's own terms stands in between.

What stands in the editor's form, as a tree of texts: from flat names, and with the changes that buttons make.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import MISSING, Field, dataclass, fields, is_dataclass
from enum import Enum, StrEnum
from functools import lru_cache
from types import UnionType
from typing import Any, TypeAlias, get_args, get_origin

from app.calc.model.architecture import Architecture
from app.calc.model.layers.parts import FeedForward, Mixer, WeightGroup
from app.calc.model.layers.registry import FEED_FORWARDS, MIXERS
from app.catalog.models import spelled
from app.features.editors.labels import EMPTY, GROUPS, label_of

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


Tree: TypeAlias = dict[str, Any]
"""Texts by key, and branches of the same."""
Change: TypeAlias = Callable[[tuple[int, ...]], Iterable[int]]
MOST_FIELDS = 4_000
MOST_TEXT = 400
MOST_ORDER = 12_000
MOST_GROUPS, MOST_BLOCKS, MOST_SIDE_PATHS = 26, 4, 12
EDITOR_TREE_GROUPS, BLOCKS, SIDE_PATHS, MTP, ORDER = "layers", "feed_forwards", "side_paths", "mtp", "order"
_CHANGE = re.compile(r"(add|remove):((?:mtp-)?layers)(?:-([0-9]{1,2}))?")


def nest(items: Iterable[tuple[str, str]]) -> Tree:
    """The tree of flat names. What is too long is cut to a length that is refused; a branch wins over a leaf."""
    tree: Tree = {}
    for name, text in items:
        *parents, last = name.split(SEP)
        if len(parents) > 8:
            continue
        here = tree
        for key in parents:
            below = here.get(key)
            if not isinstance(below, dict):
                below = here[key] = {}
            here = below
        if not isinstance(here.get(last), dict):
            here[last] = text[: (MOST_ORDER if name == ORDER else MOST_TEXT) + 1]
    return tree


def branch(tree: Mapping[str, Any], key: str) -> Tree:
    """The branch at a key; an empty one where there is none."""
    below = tree.get(key)
    return below if isinstance(below, dict) else {}


def leaf(tree: Mapping[str, Any], key: str) -> str:
    """The text at a key; empty where there is none."""
    text = tree.get(key)
    return text if isinstance(text, str) else ""


def items_in(tree: Tree, key: str, most: int) -> list[Tree]:
    """The branches of a list, in the order of their places; places beyond `most` do not exist."""
    listed = branch(tree, key)
    places = sorted(int(place) for place in listed if place.isascii() and place.isdigit() and len(place) < 3)
    return [item for place in places if place < most and isinstance(item := listed.get(str(place)), dict)]


def put_items(tree: Tree, key: str, items: Iterable[Tree]) -> None:
    """Make a list of `items`."""
    tree[key] = {str(place): item for place, item in enumerate(items)}


def settle(tree: Tree, samples: Mapping[str, Tree]) -> None:
    """Give every part the fields of its kind: where another was chosen, those of a sample, and what the two share.

    Blocks without a kind and rows with nothing in them are taken out.
    """
    mtp = branch(tree, MTP)
    for owner in (tree, mtp):
        groups = items_in(owner, EDITOR_TREE_GROUPS, MOST_GROUPS)
        for group in groups:
            group["mixer"] = _settled(branch(group, "mixer"), samples)
            blocks = [_settled(block, samples) for block in items_in(group, BLOCKS, MOST_BLOCKS)]
            put_items(group, BLOCKS, [block for block in blocks if block[KIND] != NO_KIND])
        for holder in (owner, *groups):
            rows = items_in(holder, SIDE_PATHS, MOST_SIDE_PATHS)
            put_items(holder, SIDE_PATHS, [row for row in rows if any(str(text).strip() for text in row.values())])
        put_items(owner, EDITOR_TREE_GROUPS, groups)
    if leaf(mtp, THERE) and not items_in(mtp, EDITOR_TREE_GROUPS, MOST_GROUPS):
        # Chosen just now: a block like the last layer is what most models have.
        last = items_in(tree, EDITOR_TREE_GROUPS, MOST_GROUPS)[-1:]
        put_items(mtp, EDITOR_TREE_GROUPS, [copy_of(group) | {"count": "1"} for group in last])
    tree[MTP] = mtp


def _settled(part: Tree, samples: Mapping[str, Tree]) -> Tree:
    kind = leaf(part, KIND) or NO_KIND
    if kind == leaf(part, SHOWN) or kind not in samples:
        return part | {KIND: kind, SHOWN: kind}
    kept = {key: text for key, text in part.items() if key in samples[kind] and text not in ("", {})}
    return copy_of(samples[kind]) | kept | {KIND: kind, SHOWN: kind}


def copy_of(tree: Tree) -> Tree:
    """The same, to be changed apart."""
    return {key: copy_of(below) if isinstance(below, dict) else below for key, below in tree.items()}


def change(tree: Tree, asked: str) -> None:
    """Make the change that a button asks for: `add:layers` or `remove:layers-2`; nothing for any other text."""
    found = _CHANGE.fullmatch(asked)
    if found is None:
        return
    verb, listed, place = found.groups()
    owner = branch(tree, MTP) if listed.startswith(MTP) else tree
    groups = items_in(owner, EDITOR_TREE_GROUPS, MOST_GROUPS)
    if verb == "add" and groups and len(groups) < MOST_GROUPS:
        groups.append(copy_of(groups[-1]) | {"count": "1"})
        if owner is tree:
            _order_with(tree, lambda order: (*order, len(groups) - 1))
    elif verb == "remove" and place is not None and int(place) < len(groups) > 1:
        gone = int(place)
        del groups[gone]
        if owner is tree:
            _order_with(tree, lambda order: (n - (n > gone) for n in order if n != gone))
    put_items(owner, EDITOR_TREE_GROUPS, groups)


def _order_with(tree: Tree, changed: Change) -> None:
    """The order once groups have come or gone; one that cannot be read is left for its author."""
    text = leaf(tree, ORDER)
    try:
        order = spelled(text)
    except ValueError:
        return
    if order:
        tree[ORDER] = spelling(changed(order))


def spelling(order: Iterable[int]) -> str:
    """The order in letters, repeated runs counted: "a*3 b*58", "aaaaab*10 aa"; what `spelled` reads."""
    letters = "".join(chr(ord("a") + number) for number in order)
    parts: list[str] = []
    plain = ""
    at = 0
    while at < len(letters):
        period, times = max(_repeats(letters, at), key=lambda run: (run[0] * run[1], -run[0]), default=(1, 1))
        if period * times < 3:
            plain, at = plain + letters[at], at + 1
            continue
        parts += [plain] * bool(plain) + [f"{letters[at : at + period]}*{times}"]
        plain, at = "", at + period * times
    return " ".join([*parts, plain] if plain else parts)


def _repeats(letters: str, at: int) -> Iterator[tuple[int, int]]:
    """Periods from a place on, and how often each repeats: twice or more."""
    for period in range(1, min(16, (len(letters) - at) // 2) + 1):
        unit, times = letters[at : at + period], 1
        while letters.startswith(unit, at + period * times):
            times += 1
        if times > 1:
            yield period, times
