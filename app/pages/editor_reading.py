"""Between the texts of the editor's form and a document in the catalog's own terms; what is wrong is told by field."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from app.calc.architecture import Architecture, LayerGroup, MultiTokenPrediction, SidePath
from app.calc.layers.parts import FeedForward, Mixer
from app.catalog.architecture_document import ArchitectureError, read_architecture
from app.catalog.models import spelled
from app.catalog.rows import MOST
from app.pages.editor_fields import (
    KIND,
    NO_KIND,
    REGISTRIES,
    SHOWN,
    THERE,
    Input,
    Nested,
    Spec,
    path_of,
    shape_specs,
    specs_of,
)
from app.pages.editor_tree import (
    BLOCKS,
    GROUPS,
    MOST_BLOCKS,
    MOST_GROUPS,
    MOST_ORDER,
    MOST_SIDE_PATHS,
    MOST_TEXT,
    MTP,
    ORDER,
    SIDE_PATHS,
    Tree,
    branch,
    items_in,
    leaf,
    put_items,
    spelling,
)

_WHOLE = re.compile(r"[0-9]{1,30}")
_ITEM = re.compile(r"\[([0-9]+)\]")
_KIND_KEY, _MIXER = KIND, "mixer"


@dataclass(frozen=True, slots=True)
class Read:
    """What the form says: an architecture, or what is wrong with it. `errors` are messages by path."""

    document: Mapping[str, Any]
    architecture: Architecture | None
    errors: Mapping[str, str]


def read_form(tree: Tree, name: str) -> Read:
    """The architecture that the texts describe, with every field that is not right told at once."""
    reader = _Reader()
    document = reader.model(tree)
    if reader.errors:
        return Read(document, None, reader.errors)
    try:
        return Read(document, read_architecture(document, name), {})
    except ArchitectureError as error:
        return Read(document, None, {_path_of_document(error.path): f"{error.message[:1].upper()}{error.message[1:]}."})


def _path_of_document(path: str) -> str:
    """`layers[1].mixer.n_heads` as the form names it, `layers-0-mixer-n_heads`."""
    return _ITEM.sub(lambda found: f".{int(found[1]) - 1}", path).replace(".", "-")


class _Reader:
    """Walks the texts, and notes what is wrong with them."""

    def __init__(self) -> None:
        self.errors: dict[str, str] = {}

    def model(self, tree: Tree) -> dict[str, Any]:
        document: dict[str, Any] = {}
        for spec in shape_specs():
            self._cell(document, tree, spec, "")
        document[GROUPS] = self._groups(tree, GROUPS)
        if not document[GROUPS]:
            self.errors[GROUPS] = "A model has layers: add a group."
        order = leaf(tree, ORDER).strip()
        if len(order) > MOST_ORDER:
            self.errors[ORDER] = "Is too long."
        elif order:
            document[ORDER] = order
        self._side_paths(document, tree, "")
        mtp = branch(tree, MTP)
        if leaf(mtp, THERE):
            document[MTP] = self._cells(MultiTokenPrediction, mtp, MTP) | {
                GROUPS: self._groups(mtp, path_of(MTP, GROUPS))
            }
        return document

    def _groups(self, tree: Tree, path: str) -> list[dict[str, Any]]:
        groups = items_in(tree, GROUPS, MOST_GROUPS)
        return [self._group(group, path_of(path, place)) for place, group in enumerate(groups)]

    def _group(self, tree: Tree, path: str) -> dict[str, Any]:
        group = self._cells(LayerGroup, tree, path)
        mixer = self._part(Mixer, branch(tree, _MIXER), path_of(path, _MIXER))
        if mixer is not None:
            group[_MIXER] = mixer
        blocks = [
            self._part(FeedForward, block, path_of(path, BLOCKS, place))
            for place, block in enumerate(items_in(tree, BLOCKS, MOST_BLOCKS))
        ]
        if found := [block for block in blocks if block is not None]:
            group[BLOCKS] = found
        self._side_paths(group, tree, path)
        return group

    def _side_paths(self, document: dict[str, Any], tree: Tree, path: str) -> None:
        found = [
            self._cells(SidePath, row, path_of(path, SIDE_PATHS, place))
            for place, row in enumerate(items_in(tree, SIDE_PATHS, MOST_SIDE_PATHS))
        ]
        if found:
            document[SIDE_PATHS] = found

    def _part(self, of: type, tree: Tree, path: str) -> dict[str, Any] | None:
        kind = leaf(tree, KIND)
        if kind in ("", NO_KIND):
            return None
        known = REGISTRIES[of].get(kind)
        if known is None:
            self.errors[path_of(path, KIND)] = "There is no such kind."
            return None
        return {_KIND_KEY: kind} | self._cells(known, tree, path)

    def _cells(self, kind: type, tree: Tree, path: str) -> dict[str, Any]:
        document: dict[str, Any] = {}
        for spec in specs_of(kind):
            if isinstance(spec, Spec):
                self._cell(document, tree, spec, path)
                continue
            below = branch(tree, spec.name)
            if spec.is_required or leaf(below, THERE):
                document[spec.name] = self._cells(spec.kind, below, path_of(path, spec.name))
        return document

    def _cell(self, document: dict[str, Any], tree: Tree, spec: Spec, path: str) -> None:
        """Puts the value of one field, unless it is what is taken without it."""
        here, text = path_of(path, spec.name), leaf(tree, spec.name).strip()
        value: Any
        if spec.input is Input.FLAG:
            value = text not in ("", "0")
        elif spec.input is Input.SET:
            value = [name for name, _ in spec.choices if leaf(branch(tree, spec.name), name)]
            if not value:
                return
        elif text == "":
            if spec.is_required:
                self.errors[here] = "This field is needed."
            return
        elif spec.input is Input.WHOLE:
            if not _WHOLE.fullmatch(text) or int(text) < 1:
                self.errors[here] = "Must be a whole number above zero, written in digits."
                return
            value = int(text)
            if value > MOST:
                self.errors[here] = "Is too large."
        else:
            value = text
            if len(text) > MOST_TEXT or (spec.choices and text not in dict(spec.choices)):
                self.errors[here] = "Must be one of the list." if spec.choices else "Is too long."
        if spec.is_required or value != spec.default:
            document[spec.name] = value


def tree_of(document: Mapping[str, Any]) -> Tree:
    """The texts that stand for a document, every field written out."""
    tree: Tree = {spec.name: _text(spec, document) for spec in shape_specs()}
    put_items(tree, GROUPS, [_group_tree(group) for group in document[GROUPS]])
    put_items(tree, SIDE_PATHS, [_filled(SidePath, path) for path in document.get(SIDE_PATHS, ())])
    tree[ORDER] = spelling(spelled(document[ORDER])) if document.get(ORDER) else ""
    mtp = document.get(MTP)
    tree[MTP] = {}
    if mtp:
        below = _filled(MultiTokenPrediction, mtp) | {THERE: "1"}
        put_items(below, GROUPS, [_group_tree(group) for group in mtp[GROUPS]])
        tree[MTP] = below
    return tree


def _group_tree(group: Mapping[str, Any]) -> Tree:
    tree = _filled(LayerGroup, group)
    tree[_MIXER] = part_tree(Mixer, group.get(_MIXER))
    put_items(tree, BLOCKS, [part_tree(FeedForward, block) for block in group.get(BLOCKS, ())])
    put_items(tree, SIDE_PATHS, [_filled(SidePath, path) for path in group.get(SIDE_PATHS, ())])
    return tree


def part_tree(of: type, part: Mapping[str, Any] | None) -> Tree:
    """The texts of a mixer or a block."""
    if part is None:
        return {KIND: NO_KIND, SHOWN: NO_KIND}
    return _filled(REGISTRIES[of][part[KIND]], part) | {KIND: part[KIND], SHOWN: part[KIND]}


def _filled(kind: type, document: Mapping[str, Any]) -> Tree:
    tree: Tree = {}
    for spec in specs_of(kind):
        if isinstance(spec, Nested):
            below = document.get(spec.name)
            tree[spec.name] = {} if below is None else _filled(spec.kind, below) | {THERE: "1"}
        elif spec.input is Input.SET:
            tree[spec.name] = dict.fromkeys(document.get(spec.name, ()), "1")
        else:
            tree[spec.name] = _text(spec, document)
    return tree


def _text(spec: Spec, document: Mapping[str, Any]) -> str:
    value = document.get(spec.name, spec.default)
    if spec.input is Input.FLAG:
        return "1" if value else ""
    if spec.input is Input.WHOLE and value == 0:
        return ""
    return "" if value is None else str(value)
