"""Hunyuan with experts: sizes as lists of one entry a layer, and layers that reuse the keys and values of another."""

from collections.abc import Sequence
from dataclasses import replace

from app.calc.layers.grouped_attention import GroupedAttention, KvProjection, QkNorm
from app.calc.layers.parts import FeedForward, Mixer
from app.catalog.importing import limits, spellings
from app.catalog.importing.feed_forward import count_shared, dense, read_experts
from app.catalog.importing.frame import Frame, Switch
from app.catalog.importing.grouped import read_heads
from app.catalog.importing.keys import Keys

LISTED = ("moe_topk", "num_shared_expert", "moe_intermediate_size", "num_experts", "intermediate_size")


def hunyuan_attention(keys: Keys, frame: Frame) -> Sequence[Mixer | None]:
    """Grouped attention; where layers share, the first of each round projects and keeps what the others read."""
    heads = read_heads(keys, frame.hidden_size)
    for key in ("use_mla", "attention_bias", "mlp_bias"):
        if keys.flag(key, (key,), default=False):
            raise keys.refused(key, "is not computed for this family.")
    norm = QkNorm.PER_HEAD if keys.flag("qk_norm", ("use_qk_norm",), default=True) else QkNorm.NONE
    owner = GroupedAttention(heads.n_heads, heads.n_kv_heads, heads.head_dim, qk_norm=norm)
    shares = keys.flag("shares_cache", ("use_cla",), default=False)
    keys.passed_over("cla_share_factor")
    if not shares:
        return [owner] * frame.n_layers
    factor = keys.whole("cache_share_factor", ("cla_share_factor",), limits.LAYERS, default=2)
    reader = replace(owner, kv_projection=KvProjection.NONE, shares_cache=True)
    return [owner if i % factor == 0 else reader for i in range(frame.n_layers)]


ONE_EXPERT = ("moe_intermediate_size", "moe_topk", "num_experts_per_tok", "num_shared_expert", "use_mixed_mlp_moe")
"""Keys beside a single expert, which its class does not act on."""


def dense_of_one(keys: Keys, frame: Frame) -> Sequence[tuple[FeedForward, ...]]:
    """Dense blocks, which the files of this family call one expert."""
    if type(keys.values.get("num_experts")) is int and keys.values["num_experts"] <= 1:
        keys.passed_over("num_experts", "moe_layer_num_skipped", *ONE_EXPERT)
    return dense(bias=Switch(("mlp_bias",)))(keys, frame)


def hunyuan_blocks(keys: Keys, frame: Frame) -> Sequence[tuple[FeedForward, ...]]:
    """Experts in every layer, with shared ones of the same width beside them; a single one is a dense block."""
    plain = _uniform(keys, frame.n_layers)
    if plain.values.get("num_experts") == 1:
        return dense_of_one(plain, frame)
    width = ("moe_intermediate_size",) if keys.has("moe_intermediate_size") else ("intermediate_size",)
    keys.passed_over("intermediate_size")
    if keys.whole("dense_layers", ("moe_layer_num_skipped",), limits.LAYERS, default=0, least=0):
        raise keys.refused("moe_layer_num_skipped", "dense layers of this family are not computed.")
    shared = count_shared if keys.flag("has_shared", ("use_mixed_mlp_moe",), default=True) else lambda *_: None
    if shared is not count_shared:
        keys.passed_over(*spellings.SHARED_EXPERTS)
    return [(read_experts(plain, width=width, shared=shared),)] * frame.n_layers


def _uniform(keys: Keys, n_layers: int) -> Keys:
    """The same keys with each list of one value a layer as that value.

    Raises:
        ConfigError: layers of different sizes, which the published models do not have.
    """
    values = dict(keys.values)
    for key in LISTED:
        listed = values.get(key)
        if not isinstance(listed, list):
            continue
        if len(listed) != n_layers:
            raise keys.refused(key, f"has {len(listed):,} entries for {n_layers:,} layers.")
        if any(type(entry) is not int or entry != listed[0] for entry in listed):
            raise keys.refused(key, "must have the same whole number for every layer.")
        values[key] = listed[0]
    return replace(keys, values=values)
