"""Nemotron NAS: a block configuration for each layer, with attention or block pruned, thinned or left out."""

import math
from collections.abc import Sequence

from app.calc.architecture import LayerGroup
from app.calc.layers.dense import DenseFeedForward
from app.calc.layers.grouped_attention import GroupedAttention
from app.catalog.importing import limits, spellings
from app.catalog.importing.family import Family
from app.catalog.importing.frame import read_frame
from app.catalog.importing.grouped import read_head_dim
from app.catalog.importing.keys import Keys
from app.catalog.importing.recipe import Body, stacked

MULTIPLE = 256
"""Widths are rounded up to a multiple of this."""


def read(keys: Keys) -> Body:
    """The whole model; a layer has a norm for each part it has.

    Raises:
        ConfigError: with the key that is missing, impossible or contradictory.
    """
    frame = read_frame(keys, tied=False)
    heads = keys.whole("n_heads", spellings.HEADS, limits.HEADS)
    dim = read_head_dim(keys, frame.hidden_size, heads)
    for key in ("attention_bias", "mlp_bias"):
        if keys.flag(key, (key,), default=False):
            raise keys.refused(key, "biases of this family are not computed.")
    keys.passed_over("num_key_value_heads", "intermediate_size", "block_configs", "attn_implementation")
    listed = keys.values.get("block_configs")
    if not isinstance(listed, list) or len(listed) != frame.n_layers:
        raise keys.refused("block_configs", f"must be a list with an entry for each of {frame.n_layers:,} layers.")
    each = []
    for number, entry in enumerate(listed):
        if not isinstance(entry, dict):
            raise keys.refused(f"block_configs[{number}]", "must be an object.")
        inside = Keys(entry, keys.path(f"block_configs[{number}]"), keys.ledger)
        attention = _attention(inside, heads, dim)
        block = _block(inside, frame.hidden_size)
        norms = (attention is not None) + (block is not None)
        each.append(LayerGroup(1, attention, (block,) if block else (), norms=norms))
    layers, order = stacked(each)
    if not any(group.mixer for group in layers):
        raise keys.refused("block_configs", "leaves no layer with attention.")
    kept = sum(group.count for group in layers if group.mixer)
    keys.ledger.derive("attention_layers", kept, "blocks that keep their attention")
    return Body(frame, layers, order)


def _part(entry: Keys, key: str) -> Keys | None:
    """A part of a layer; None where it is left out."""
    inside = entry.inside(key)
    if inside is None:
        raise entry.refused(key, "is missing.")
    if inside.flag(f"{key}_linear", ("replace_with_linear",), default=False):
        raise inside.refused("replace_with_linear", "a part replaced by one matrix is not computed.")
    for other in ("window_length", "sparsify", "num_sink_tokens", "hidden_act"):
        if other in ("window_length", "num_sink_tokens") and inside.has(other):
            raise inside.refused(other, "is not computed.")
    return None if inside.flag(f"{key}_left_out", ("no_op",), default=False) else inside


def _attention(entry: Keys, heads: int, dim: int) -> GroupedAttention | None:
    inside = _part(entry, "attention")
    if inside is None:
        return None
    group = inside.whole("heads_in_group", ("n_heads_in_group",), limits.HEADS)
    if heads % group:
        raise inside.refused("n_heads_in_group", f"{group:,} does not divide {heads:,} heads.")
    return GroupedAttention(heads, heads // group, dim)


def _block(entry: Keys, hidden_size: int) -> DenseFeedForward | None:
    inside = _part(entry, "ffn")
    if inside is None:
        return None
    width = inside.maybe_whole("intermediate_size", ("intermediate_size",), limits.WIDTH)
    if width is None:
        times = inside.number("ffn_mult", "ffn_mult", most=1000)
        if not times:
            raise inside.refused("ffn_mult", "is missing.")
        # Two thirds, as usual where a gate adds a third matrix.
        width = MULTIPLE * math.ceil(int(2 * times * hidden_size / 3) / MULTIPLE)
    return DenseFeedForward(width)


FAMILIES: Sequence[Family] = (Family("Nemotron NAS", ("nemotron-nas",), read),)
