"""What the editor starts from: a model of the catalog, or whatever an address of the workbench brings."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import parse_qsl

from pydantic import ValidationError

from app.calc.architecture import Architecture, LayerGroup
from app.calc.dtypes import WeightFormat
from app.calc.layers.channel_mix import ChannelMix
from app.calc.layers.grouped_attention import GroupedAttention
from app.calc.layers.mamba2 import Mamba2
from app.calc.layers.parallel_mamba2 import ParallelMamba2
from app.calc.layers.parts import FeedForward, Mixer
from app.calc.layers.registry import kind_of
from app.calc.layers.rg_lru import RgLru
from app.calc.layers.rwkv6 import Rwkv6
from app.calc.layers.rwkv7 import Rwkv7
from app.calc.layers.short_convolution import ShortConvolution
from app.calc.weight_plan import WeightPlan
from app.catalog.architecture_document import architecture_document
from app.catalog.catalog import Catalog
from app.default_scenario import DEFAULT_HARDWARE, DEFAULT_MODEL
from app.pages.editor_reading import part_tree, tree_of
from app.pages.editor_tree import MOST_BLOCKS, MOST_GROUPS, MOST_SIDE_PATHS, Tree
from app.refusal import ScenarioError, unknown
from app.resolve_model import DEFAULT_NAME, ResolvedModel, resolve_model
from app.scenario import Model
from app.scenario_parts import MAX_TEXT
from app.scenario_query import BY_NAME, scenario_document
from app.web.problem import ProblemError, refusals_of

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
