"""Between the texts of the editor's form and a document in the catalog's own terms; what is wrong is told by field.

What the editor starts from: a model of the catalog, or whatever an address of the workbench brings.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl

from pydantic import ValidationError

from app.calc.dtypes import WeightFormat
from app.calc.model.architecture import Architecture, LayerGroup, MultiTokenPrediction, SidePath
from app.calc.model.layers.dense import ChannelMix
from app.calc.model.layers.grouped_attention import GroupedAttention
from app.calc.model.layers.mamba import Mamba2, ParallelMamba2
from app.calc.model.layers.parts import FeedForward, Mixer
from app.calc.model.layers.registry import kind_of
from app.calc.model.layers.rg_lru import RgLru
from app.calc.model.layers.rwkv import Rwkv6, Rwkv7
from app.calc.model.layers.short_convolution import ShortConvolution
from app.calc.model.parameters import WeightPlan
from app.catalog.architecture_document import ArchitectureError, architecture_document, read_architecture
from app.catalog.catalog import Catalog
from app.catalog.models import spelled
from app.catalog.rows import MOST
from app.features.editors.tree import (
    BLOCKS,
    EDITOR_TREE_GROUPS,
    KIND,
    MOST_BLOCKS,
    MOST_GROUPS,
    MOST_ORDER,
    MOST_SIDE_PATHS,
    MOST_TEXT,
    MTP,
    NO_KIND,
    ORDER,
    REGISTRIES,
    SHOWN,
    SIDE_PATHS,
    THERE,
    Input,
    Nested,
    Spec,
    Tree,
    branch,
    items_in,
    leaf,
    path_of,
    put_items,
    shape_specs,
    specs_of,
    spelling,
)
from app.scenario.parts import MAX_TEXT
from app.scenario.query import BY_NAME, scenario_document
from app.scenario.refusal import ScenarioError, unknown
from app.scenario.resolve_parts import DEFAULT_NAME, ResolvedModel, resolve_model
from app.scenario.scenario import DEFAULT_HARDWARE, DEFAULT_MODEL, Model
from app.web.problem import ProblemError, refusals_of

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
        document[EDITOR_TREE_GROUPS] = self._groups(tree, EDITOR_TREE_GROUPS)
        if not document[EDITOR_TREE_GROUPS]:
            self.errors[EDITOR_TREE_GROUPS] = "A model has layers: add a group."
        order = leaf(tree, ORDER).strip()
        if len(order) > MOST_ORDER:
            self.errors[ORDER] = "Is too long."
        elif order:
            document[ORDER] = order
        self._side_paths(document, tree, "")
        mtp = branch(tree, MTP)
        if leaf(mtp, THERE):
            document[MTP] = self._cells(MultiTokenPrediction, mtp, MTP) | {
                EDITOR_TREE_GROUPS: self._groups(mtp, path_of(MTP, EDITOR_TREE_GROUPS))
            }
        return document

    def _groups(self, tree: Tree, path: str) -> list[dict[str, Any]]:
        groups = items_in(tree, EDITOR_TREE_GROUPS, MOST_GROUPS)
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
    put_items(tree, EDITOR_TREE_GROUPS, [_group_tree(group) for group in document[EDITOR_TREE_GROUPS]])
    put_items(tree, SIDE_PATHS, [_filled(SidePath, path) for path in document.get(SIDE_PATHS, ())])
    tree[ORDER] = spelling(spelled(document[ORDER])) if document.get(ORDER) else ""
    mtp = document.get(MTP)
    tree[MTP] = {}
    if mtp:
        below = _filled(MultiTokenPrediction, mtp) | {THERE: "1"}
        put_items(below, EDITOR_TREE_GROUPS, [_group_tree(group) for group in mtp[EDITOR_TREE_GROUPS]])
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


Items = Sequence[tuple[str, str]]
MOST_CARRIED = 60
EDITED = ", edited"
FURTHER = Architecture(
    "Kinds that no model of the catalog has",
    hidden_size=2048,
    vocab_size=65_536,
    layers=(
        LayerGroup(1, ParallelMamba2(GroupedAttention(8, 2, 64), Mamba2(24, 64, 128, 1, gated_norm=False))),
        LayerGroup(1, RgLru(2560, 10)),
        LayerGroup(1, Rwkv6(32, 64, 2048, 32, 64), (ChannelMix(7168, receptance=True),)),
        LayerGroup(1, Rwkv7(32, 64, 2048, 96, 96, 256, 64)),
        LayerGroup(1, ShortConvolution(2048)),
    ),
)
"""Layers of Falcon-H1-0.5B, RecurrentGemma-2B, RWKV 6 and 7 and LFM2-1.2B, for a kind that is just chosen."""


@dataclass(frozen=True, slots=True)
class Start:
    """The texts to begin with, and what of the address is neither model nor weights and is carried along."""

    tree: Tree
    carried: Items
    obstacle: str = ""
    model_id: str = DEFAULT_MODEL


def start_from(items: Items, catalog: Catalog) -> Start:
    """The start that an address asks for: `from=` an id of the catalog, or the model of a workbench address.

    Raises:
        ProblemError: 404, there is no such model in the catalog.
    """
    asked = dict(items)
    carried = carried_of(items)
    if "from" in asked or not {"model", "config", "arch"} & asked.keys():
        id_ = asked.get("from", DEFAULT_MODEL)
        record = catalog.models.get(id_)
        if record is None:
            raise ProblemError(404, unknown("from", "model", id_[:MAX_TEXT], catalog.models).message)
        start = _tree(record.architecture_with_mtp, record.native_plan, f"{record.name}{EDITED}")
        return Start(_with_weights(start, asked), carried, model_id=id_)
    try:
        model = Model.model_validate(scenario_document(_of_model(items)).get("model", {}))
        resolved = _resolved(model, catalog)
    except (ScenarioError, ValidationError) as error:
        obstacle = " ".join(f"{refusal.path}: {refusal.message}" for refusal in refusals_of(error)[:5])
        return Start(start_from([("from", DEFAULT_MODEL)], catalog).tree, carried, obstacle)
    architecture = resolved.architecture
    if not fits(architecture):
        obstacle = "It has more groups or parts of a group than the editor shows."
        return Start(start_from([("from", DEFAULT_MODEL)], catalog).tree, carried, obstacle)
    name = architecture.name if model.id is None else f"{architecture.name}{EDITED}"
    tree = _with_weights(_tree(architecture, resolved.native_plan, name), asked)
    return Start(tree, carried, model_id=model.id or DEFAULT_MODEL)


def fits(architecture: Architecture) -> bool:
    """True where the form has a place for every part of the model."""
    groups = (*architecture.layers, *(architecture.mtp.layers if architecture.mtp else ()))
    return (
        max(len(architecture.layers), len(groups) - len(architecture.layers)) <= MOST_GROUPS
        and all(len(group.feed_forwards) <= MOST_BLOCKS for group in groups)
        and len(architecture.side_paths) <= MOST_SIDE_PATHS
        and all(len(group.side_paths) <= MOST_SIDE_PATHS for group in groups)
    )


def _resolved(model: Model, catalog: Catalog) -> ResolvedModel:
    """The model with its multi-token-prediction layers, where it has any: they are part of a description."""
    try:
        return resolve_model(model.model_copy(update={"mtp": True}), catalog)
    except ScenarioError:
        return resolve_model(model.model_copy(update={"mtp": False}), catalog)


def _of_model(items: Items) -> Items:
    return [item for item in items if item[0] in BY_NAME and BY_NAME[item[0]].path.startswith("model.")]


def _tree(architecture: Architecture, plan: WeightPlan, name: str) -> Tree:
    weights = plan.label if plan.label in tuple(WeightFormat) else WeightFormat.BF16
    texts: Tree = {"model_name": (name or DEFAULT_NAME)[:MAX_TEXT], "w": str(weights)}
    return tree_of(architecture_document(architecture)) | texts


def _with_weights(tree: Tree, asked: Mapping[str, str]) -> Tree:
    weights = asked.get("w", "")
    return tree | {"w": weights} if weights in tuple(WeightFormat) else tree


def carried_of(items: Iterable[tuple[str, str]]) -> Items:
    """The items of a workbench address that the editor hands on: all but the model and the weights."""
    fields = ((name, text) for name, text in items if name in BY_NAME)
    kept = [item for item in fields if item[0] not in ("w", "compute", "v") and item not in _of_model([item])]
    return kept[:MOST_CARRIED]


def carried_in(text: str) -> Items:
    """The same from the query string that the form keeps them in; nothing where it is none."""
    try:
        return carried_of(parse_qsl(text[:8_000], keep_blank_values=True, max_num_fields=MOST_CARRIED))
    except ValueError:  # more fields than are carried
        return []


def workbench_items(name: str, description: str, weights: str, carried: Items) -> list[tuple[str, str]]:
    """The address of the workbench for a described model: on the hardware that was carried along, else the default."""
    given = dict(carried)
    hardware = [] if {"hw", "hw_mem"} & given.keys() else [("hw", DEFAULT_HARDWARE)]
    return [
        ("v", "1"),
        ("model", "custom"),
        ("model_name", name),
        ("arch", description),
        ("w", weights),
        *hardware,
        *carried,
    ]


def samples_of(catalog: Catalog) -> Mapping[str, Tree]:
    """For each kind the texts of the first layer that has it, so that a chosen kind begins filled in."""
    found: dict[str, Tree] = {}
    for architecture in (*catalog.architectures.values(), FURTHER):
        parts = [part for group in architecture.layers for part in (group.mixer, *group.feed_forwards) if part]
        if all(kind_of(part) in found for part in parts):
            continue  # most models bring no new kind, and writing one out is a millisecond
        document = architecture_document(architecture)
        for group, written in zip(architecture.layers, document["layers"], strict=True):
            if group.mixer is not None:
                found.setdefault(kind_of(group.mixer), part_tree(Mixer, written["mixer"]))
            for block, texts in zip(group.feed_forwards, written.get("feed_forwards", ()), strict=True):
                found.setdefault(kind_of(block), part_tree(FeedForward, texts))
    return found
