"""Nemotron-H and the Nemotron models of neural architecture search."""

import math
from collections.abc import Sequence

from app.calc.dtypes import Dtype
from app.calc.model.architecture import LayerGroup, MultiTokenPrediction
from app.calc.model.layers.dense import DenseFeedForward
from app.calc.model.layers.experts import Experts
from app.calc.model.layers.grouped_attention import GroupedAttention
from app.checkpoint import limits, spellings
from app.checkpoint.attention import read_head_dim
from app.checkpoint.feed_forward import read_dense, read_experts
from app.checkpoint.frame import Frame, read_frame
from app.checkpoint.hybrid_families import plain_attention
from app.checkpoint.keys import Keys
from app.checkpoint.recipe import Body, Family, joint_params, stacked
from app.checkpoint.recurrent import read_mamba2

LETTERS = {"M": "mamba", "*": "attention", "-": "mlp", "E": "moe"}
WORDS = {"linear_attention": "mamba", "full_attention": "attention"} | {kind: kind for kind in LETTERS.values()}
MAMBA_KEYS = ("mamba_num_heads", "mamba_head_dim", "ssm_state_size", "n_groups", "conv_kernel", "expand")


def read_kinds(keys: Keys, letters_key: str, words_key: str) -> tuple[str, ...] | None:
    """What each layer is.

    Raises:
        ConfigError: a letter or word that stands for no kind known.
    """
    words = keys.words(words_key, words_key, tuple(WORDS))
    letters = keys.word(letters_key, (letters_key,))
    if words is not None:
        return tuple(WORDS[word] for word in words)
    if letters is None:
        return None
    if len(letters) > limits.LAYERS or set(letters) - set(LETTERS):
        raise keys.refused(letters_key, f"may have the letters {' '.join(LETTERS)} only, one a layer.")
    return tuple(LETTERS[letter] for letter in letters)


def read(keys: Keys) -> Body:
    """The whole model; each layer has one norm.

    Raises:
        ConfigError: with the key that is missing, impossible or contradictory.
    """
    kinds = read_kinds(keys, "hybrid_override_pattern", "layers_block_type")
    if not kinds:
        raise keys.refused("hybrid_override_pattern", "is missing, and so is layers_block_type.")
    depth = keys.maybe_whole("n_layers", spellings.LAYERS, limits.LAYERS)
    if depth is None:
        keys.ledger.derive("n_layers", len(kinds), "one entry of the list a layer")
    elif depth != len(kinds):
        key = "layers_block_type" if keys.has("layers_block_type") else "hybrid_override_pattern"
        raise keys.refused(key, f"has {len(kinds):,} entries for {depth:,} layers.")
    if len(kinds) > limits.LAYERS:
        raise keys.refused("layers_block_type", f"has more than {limits.LAYERS:,} entries.")
    frame = read_frame(keys, tied=False, n_layers=len(kinds))
    predicted = read_kinds(keys, "mtp_hybrid_override_pattern", "mtp_layers_block_type") or ()
    groups = {kind: _layer(keys, frame, kind) for kind in dict.fromkeys((*kinds, *predicted))}
    keys.passed_over(*MAMBA_KEYS, "intermediate_size", "chunk_size", "sliding_window", "time_step_rank")
    layers, order = stacked([groups[kind] for kind in kinds])
    return Body(frame, layers, order, mtp=_mtp(keys, frame, [groups[kind] for kind in predicted]))


def _layer(keys: Keys, frame: Frame, kind: str) -> LayerGroup:
    if kind == "mamba":
        return LayerGroup(1, read_mamba2(keys, frame.hidden_size, Dtype.BF16), norms=1)
    if kind == "attention":
        return LayerGroup(1, plain_attention(keys, frame), norms=1)
    block = _experts(keys) if kind == "moe" else _dense(keys, frame)
    return LayerGroup(1, None, (block,), norms=1)


def _dense(keys: Keys, frame: Frame) -> DenseFeedForward:
    bias = keys.flag("mlp_bias", ("mlp_bias",), default=False)
    return DenseFeedForward(read_dense(keys, frame, gated=False).intermediate_size, gated=False, bias=bias)


def _experts(keys: Keys) -> Experts:
    """Experts of two matrices; those of the larger models work in a latent space."""
    if keys.flag("mlp_bias", ("mlp_bias",), default=False):
        raise keys.refused("mlp_bias", "biases of these experts are not computed.")
    count = keys.whole("shared_experts", ("n_shared_experts",), limits.EXPERTS, default=1, least=0)
    names = ("moe_shared_expert_intermediate_size",)
    width = keys.maybe_whole("shared_size", names, limits.WIDTH, least=0) or 0
    latent = keys.maybe_whole("expert_hidden_size", ("moe_latent_size",), limits.HIDDEN)
    keys.passed_over("moe_shared_expert_overlap")
    return read_experts(keys, shared=lambda *_: count * width or None, gated=False, latent=latent)


def _mtp(keys: Keys, frame: Frame, predicted: Sequence[LayerGroup]) -> MultiTokenPrediction | None:
    count = keys.maybe_whole("mtp_layers", spellings.MTP_LAYERS, limits.LAYERS, least=0)
    if not count or not predicted:
        if predicted and count is None:
            keys.ledger.notice("A pattern of multi-token-prediction layers is given, but no number of them: none read.")
        return None
    layers, _ = stacked([*predicted] * count)
    return MultiTokenPrediction(layers, count * joint_params(frame.hidden_size))


FAMILIES: Sequence[Family] = (Family("Nemotron-H and 3", ("nemotron_h",), read),)


MULTIPLE = 256
"""Widths are rounded up to a multiple of this."""


def read_nas(keys: Keys) -> Body:
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


NAS_FAMILIES: Sequence[Family] = (Family("Nemotron NAS", ("nemotron-nas",), read_nas),)
