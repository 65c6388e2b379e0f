"""The groups of like layers as a table: what each is made of, a column a group, in the words of the field."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from enum import StrEnum
from typing import Any

from app.calc.architecture import Architecture, LayerGroup
from app.calc.dtypes import Dtype
from app.calc.parameters import layer_weights
from app.pages.layer_strip import letter

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
        elif field.name in words and (text := _text(value)) is not None:
            label = words[field.name]
            yield _named(place, label), text


def _named(place: str, label: str) -> str:
    return f"{place}: {label[:1].lower() + label[1:]}" if place else label


def _text(value: Any) -> str | None:
    if not value or value == "none":
        return None
    if value is True:
        return "yes"
    if isinstance(value, StrEnum) and not isinstance(value, Dtype):
        return value.value.replace("_", " ")
    return f"{value:,}" if isinstance(value, int) else str(value)
