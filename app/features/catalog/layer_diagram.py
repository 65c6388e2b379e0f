"""The layers of a model as a strip of cells, one a layer from the input up, and as text for who does not see it.

The groups of like layers as a table: what each is made of, a column a group, in the words of the field.

An architecture in numbers for a page: parameters, bytes, cache, and its strip.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from enum import StrEnum
from functools import cached_property
from typing import Any

from app.calc.dtypes import Dtype
from app.calc.memory.cache import cache_shape, kv_bytes_per_sequence
from app.calc.model.architecture import Architecture, Blocks, Keeps, LayerGroup, MixerKind, blocks, keeps, mixer_kind
from app.calc.model.parameters import ParameterCounts, WeightPlan, count_parameters, layer_weights, weight_bytes
from app.features.editors.tree import spelling

MIXER_WORDS: Mapping[MixerKind, str] = {
    MixerKind.NONE: "no attention",
    MixerKind.FULL: "attention over everything",
    MixerKind.WINDOW: "attention in a window",
    MixerKind.CHUNK: "attention in a chunk",
    MixerKind.LATENT: "latent attention",
    MixerKind.SPARSE: "attention to a selection",
    MixerKind.COMPRESSED: "attention to compressed rows",
    MixerKind.RECURRENT: "recurrence",
}
KEEPS_WORDS: Mapping[Keeps, str] = {
    Keeps.EVERYTHING: "a row for every position",
    Keeps.PART: "rows for a part of the positions",
    Keeps.STATE: "a state of one size",
    Keeps.NOTHING: "nothing",
}
BLOCK_WORDS: Mapping[Blocks, str] = {
    Blocks.EXPERTS: "experts",
    Blocks.DENSE: "dense feed-forward",
    Blocks.NONE: "no feed-forward",
}


@dataclass(frozen=True, slots=True)
class Cell:
    """One layer: the letter of its group, its classes in the drawing, and its words."""

    letter: str
    classes: str
    title: str


@dataclass(frozen=True, slots=True)
class Sign:
    """One sign of the drawing, for its legend."""

    classes: str
    words: str


@dataclass(frozen=True, slots=True)
class Strip:
    """The drawing and its words. `known_order` is False where layers are only grouped."""

    cells: Sequence[Cell]
    mixers: Sequence[Sign]
    heights: Sequence[Sign]
    marks: Sequence[Sign]
    text: str
    known_order: bool


def letter(number: int) -> str:
    """The letter of the group of that number."""
    return chr(ord("a") + number) if number < 26 else f"a{number}"


def layer_strip(architecture: Architecture, spelling: str | None) -> Strip:
    """The strip of a model. `spelling` is its order as a catalog row has it: "aab*10 b"."""
    groups = architecture.layers
    known = bool(architecture.order)
    order = architecture.order or [number for number, group in enumerate(groups) for _ in range(group.count)]
    cells = [
        Cell(letter(number), _classes(groups[number]), f"Layer {at}, {letter(number)}: {groups[number].label}")
        if known
        else Cell(letter(number), _classes(groups[number]), f"{letter(number)}: {groups[number].label}")
        for at, number in enumerate(order, start=1)
    ]
    kinds = [kind for kind in MIXER_WORDS if any(mixer_kind(group.mixer) is kind for group in groups)]
    kept = [what for what in KEEPS_WORDS if any(keeps(group.mixer) is what for group in groups)]
    marks = [what for what in BLOCK_WORDS if any(blocks(group) is what for group in groups)]
    return Strip(
        cells=cells,
        mixers=[Sign(f"mix-{kind}", MIXER_WORDS[kind]) for kind in kinds],
        heights=[Sign(f"keeps-{what}", KEEPS_WORDS[what]) for what in kept],
        marks=[Sign(f"ff-{what}", BLOCK_WORDS[what]) for what in marks],
        text=_text(architecture, spelling),
        known_order=known,
    )


def _classes(group: LayerGroup) -> str:
    return f"mix-{mixer_kind(group.mixer)} keeps-{keeps(group.mixer)} ff-{blocks(group)}"


def _text(architecture: Architecture, spelling: str | None) -> str:
    """The order in words and letters; every letter is a row of the table of layers."""
    groups = architecture.layers
    if len(groups) == 1:
        return f"All {architecture.n_layers} layers are alike: {groups[0].label}."
    order = "in an order that is not known"
    if architecture.order and spelling:
        order = f"from the input up {', '.join(map(_run, spelling.split()))}"
    meant = "; ".join(f"{letter(n)} is {group.label} ({group.count:,})" for n, group in enumerate(groups))
    return f"{architecture.n_layers} layers, {order}: {meant}."


def _run(part: str) -> str:
    """One part of the spelling: "aab*10" is "aab × 10"."""
    return part.replace("*", " × ")


# Dimensions in the order of the table; a kind of layer has those of them that it is made of.
_WORDS: Mapping[str, str] = {
    "n_heads": "Query heads",
    "n_kv_heads": "KV heads",
    "head_dim": "Width of a head",
    "v_head_dim": "Width of a value",
    "window": "Window, tokens",
    "chunk": "Chunk, tokens",
    "q_rank": "Rank of the queries",
    "query_rank": "Rank of the queries",
    "kv_rank": "Rank of the latent",
    "nope_dim": "Width without position",
    "rope_dim": "Width with position",
    "v_dim": "Width of a value",
    "o_rank": "Rank of the output",
    "o_groups": "Groups of the output",
    "compression": "Positions a compressed row",
    "overlap": "Strides a compressed row looks back",
    "top": "Rows selected",
    "top_blocks": "Blocks selected",
    "block": "Positions a block",
    "heads": "Heads",
    "index_heads": "Heads of the indexer",
    "index_dim": "Width of an index key",
    "dim": "Width of an index key",
    "key_heads": "Key heads",
    "value_heads": "Value heads",
    "key_dim": "Width of a key",
    "value_dim": "Width of a value",
    "low_rank": "Rank of the decay",
    "mix_rank": "Rank of a mixture",
    "decay_rank": "Rank of the decay",
    "rate_rank": "Rank of the learning rate",
    "gate_rank": "Rank of the gate",
    "value_rank": "Rank of the values taken over",
    "inner": "Channels",
    "state_size": "State of a channel",
    "groups": "Groups",
    "dt_rank": "Rank of the step",
    "conv_width": "Taps of the convolution",
    "state_dtype": "Type of the state",
    "qk_norm": "Norm of queries and keys",
    "output_gate": "Gate of the output",
    "gated": "Gated",
    "receptance": "Gated by receptance",
    "sinks": "Sinks",
    "qkv_bias": "Biases of the projections",
    "n_experts": "Experts",
    "per_token": "Experts a token",
    "identity_experts": "Identity experts",
    "intermediate_size": "Inner width",
    "shared_size": "Shared width",
    "latent_size": "Width experts work at",
}
# Parts with heads of their own beside those of the attention.
_INSIDE: Mapping[str, Mapping[str, str]] = {
    "indexer": {"heads": "Heads of the indexer"},
    "mamba": {"heads": "Heads of Mamba-2", "head_dim": "Width of a Mamba-2 head"},
}
_LEFT_WIDE = "Left in 16 bits"


@dataclass(frozen=True, slots=True)
class Row:
    """One dimension, with the text of each group; None where a group has no such thing."""

    label: str
    texts: Sequence[str | None]

    @property
    def numeric(self) -> bool:
        """True where every text is a number."""
        return all(text is None or text.replace(",", "").isdigit() for text in self.texts)


@dataclass(frozen=True, slots=True)
class LayerTable:
    """A column for each group, headed by its letter; rows from the count down to the parameters."""

    letters: Sequence[str]
    labels: Sequence[str]
    counts: Sequence[int]
    rows: Sequence[Row]
    params: Sequence[int]

    @property
    def total(self) -> int:
        """Parameters of all layers of all groups."""
        return sum(count * params for count, params in zip(self.counts, self.params, strict=True))


def layer_table(architecture: Architecture) -> LayerTable:
    """The groups of `architecture`."""
    groups = architecture.layers
    described = [dict(_dimensions(group)) for group in groups]
    # As each group has them: mixers in the order of their fields, then the blocks, whichever group comes first.
    names = list(dict.fromkeys(name for one in described for name in one))
    names.sort(key=lambda name: (name == _LEFT_WIDE, name.startswith("Feed-forward")))
    return LayerTable(
        letters=[letter(number) for number in range(len(groups))],
        labels=[group.label for group in groups],
        counts=[group.count for group in groups],
        rows=[Row(name, [one.get(name) for one in described]) for name in names],
        params=[
            sum(w.stored for w in layer_weights(group, architecture.hidden_size, norm_bias=architecture.norm_bias))
            for group in groups
        ],
    )


def _dimensions(group: LayerGroup) -> Iterator[tuple[str, str]]:
    if group.mixer is not None:
        yield from _of(group.mixer, "")
    for number, block in enumerate(group.feed_forwards, start=1):
        place = "Feed-forward" if number == 1 else f"Feed-forward {number}"
        yield from _of(block, place)
    if group.unquantized:
        yield _LEFT_WIDE, ", ".join(sorted(name.replace("_", " ") for name in group.unquantized))


def _of(part: Any, place: str, words: Mapping[str, str] = _WORDS) -> Iterator[tuple[str, str]]:
    """The dimensions of a part that are set, those of the parts inside it among them."""
    for field in fields(part):
        value = getattr(part, field.name)
        if is_dataclass(value):
            yield from _of(value, place, {**_WORDS, **_INSIDE.get(field.name, {})})
        elif field.name in words and (text := _layer_table_text(value)) is not None:
            label = words[field.name]
            yield _named(place, label), text


def _named(place: str, label: str) -> str:
    return f"{place}: {label[:1].lower() + label[1:]}" if place else label


def _layer_table_text(value: Any) -> str | None:
    if not value or value == "none":
        return None
    if value is True:
        return "yes"
    if isinstance(value, StrEnum) and not isinstance(value, Dtype):
        return value.value.replace("_", " ")
    return f"{value:,}" if isinstance(value, int) else str(value)


CONTEXTS = (1_024, 8_192, 131_072)
USUAL_CONTEXT = 8_192
MOST_DRAWN = 1_000


@dataclass(frozen=True)
class ArchitectureView:
    """What a page says of a model that is not in the catalog."""

    architecture: Architecture
    plan: WeightPlan
    kv_cache: Dtype = Dtype.BF16

    @cached_property
    def counts(self) -> ParameterCounts:
        return count_parameters(self.architecture)

    @cached_property
    def weight_bytes(self) -> float:
        """Bytes of everything loaded, under the plan."""
        return weight_bytes(self.counts, self.plan)

    @cached_property
    def strip(self) -> Strip | None:
        """The model layer by layer; None where there are more layers than anyone can look at."""
        if self.architecture.n_layers > MOST_DRAWN:
            return None
        return layer_strip(self.architecture, spelling(self.architecture.order) or None)

    @cached_property
    def layers(self) -> LayerTable:
        """The groups of like layers."""
        return layer_table(self.architecture)

    def kv_bytes_per_token(self, context_tokens: int = USUAL_CONTEXT) -> float:
        """Bytes of cache and state of one sequence, divided by its tokens."""
        return float(kv_bytes_per_sequence(self.architecture, context_tokens, self.kv_cache)) / context_tokens

    @property
    def cache_rows(self) -> list[tuple[int, float, float]]:
        """Context, bytes of a sequence, bytes a token; for three contexts."""
        return [
            (tokens, self.kv_bytes_per_token(tokens) * tokens, self.kv_bytes_per_token(tokens)) for tokens in CONTEXTS
        ]

    @property
    def state_bytes(self) -> float:
        """What a sequence keeps whatever its length."""
        return cache_shape(self.architecture).state_bytes

    @property
    def active_rows(self) -> list[tuple[str, float]]:
        """Parameters of one token by the three ways of counting that vendors have."""
        counts = self.counts
        return [
            ("all weights", counts.active),
            ("without the input embedding", counts.active_without_embedding),
            ("without embedding and head", counts.active_without_embeddings),
        ]
