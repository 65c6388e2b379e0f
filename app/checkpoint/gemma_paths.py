"""Gemma 3n and Gemma 4: layers that share a cache, other heads in full layers, and side paths."""

from collections.abc import Sequence
from dataclasses import replace

from app.calc.model.architecture import LayerGroup, SidePath
from app.calc.model.layers.dense import DenseFeedForward
from app.calc.model.layers.grouped_attention import GroupedAttention, KvProjection, QkNorm
from app.calc.model.layers.parts import FeedForward
from app.checkpoint import limits, spellings
from app.checkpoint.attention import all_but_every, check_divides, read_heads, read_reaches
from app.checkpoint.feed_forward import read_dense, read_experts
from app.checkpoint.frame import Frame, read_frame
from app.checkpoint.keys import Keys
from app.checkpoint.recipe import Body, Family, stacked


def per_layer_inputs(keys: Keys, frame: Frame) -> tuple[tuple[SidePath, ...], tuple[SidePath, ...], int]:
    """Side paths of the model and of a layer for inputs of a table with a row a layer, and that row's width."""
    names = ("hidden_size_per_layer_input",)
    width = keys.maybe_whole("per_layer_input", names, limits.HIDDEN, least=0) or 0
    if not width:
        keys.passed_over("vocab_size_per_layer_input")
        return (), (), 0
    rows = keys.whole(
        "per_layer_vocabulary", ("vocab_size_per_layer_input",), limits.VOCABULARY, default=frame.vocab_size
    )
    all_layers, hidden = frame.n_layers * width, frame.hidden_size
    model = (
        SidePath("per-layer embedding", rows * all_layers, gathered=all_layers),
        SidePath("per-layer projection", hidden * all_layers, vectors=width),
    )
    return model, (SidePath("per-layer input", 2 * width * hidden, vectors=hidden),), width


def sharing_layers(keys: Keys, frame: Frame) -> int:
    """Layers at the end that read the cache of an earlier one."""
    shared = keys.whole("sharing_layers", ("num_kv_shared_layers",), limits.LAYERS, default=0, least=0)
    if shared >= frame.n_layers:
        raise keys.refused("num_kv_shared_layers", f"{shared:,} of {frame.n_layers:,} layers leave none to share with.")
    return shared


def gemma3n(keys: Keys) -> Body:
    """Gemma 3n: AltUp and LAuReL beside every block; layers that share still carry their projections in the files."""
    frame = read_frame(keys, tied=True)
    hidden = frame.hidden_size
    heads = read_heads(keys, hidden, head_dim=256)
    reaches = read_reaches(keys, frame, all_but_every(5))
    block = DenseFeedForward(_one_width(keys, frame))
    model_paths, layer_paths, _ = per_layer_inputs(keys, frame)
    inputs = keys.whole("altup_inputs", ("altup_num_inputs",), limits.HEADS, default=4)
    rank = keys.whole("laurel_rank", ("laurel_rank",), limits.WIDTH, default=64)
    keys.passed_over("activation_sparsity_pattern", "altup_active_idx", "altup_coef_clip", "altup_correct_scale")
    altup = SidePath("AltUp", inputs * hidden + inputs**2 + inputs**3, vectors=2 * hidden)
    laurel = SidePath("LAuReL", 2 * rank * hidden, vectors=hidden)
    streams = SidePath("AltUp streams", 2 * (inputs - 1) * hidden * hidden)
    first_sharing = frame.n_layers - sharing_layers(keys, frame)
    owner = GroupedAttention(heads.n_heads, heads.n_kv_heads, heads.head_dim, qk_norm=QkNorm.PER_HEAD)
    each = [
        LayerGroup(
            1,
            replace(owner, window=reach.window, shares_cache=i >= first_sharing),
            (block,),
            norms=4,
            side_paths=(*layer_paths, altup, laurel),
        )
        for i, reach in enumerate(reaches)
    ]
    layers, order = stacked(each)
    return Body(frame, layers, order, side_paths=(*model_paths, streams))


def _one_width(keys: Keys, frame: Frame) -> int:
    """The width of all blocks; the key may list it layer by layer."""
    if not isinstance(keys.values.get("intermediate_size"), list):
        return read_dense(keys, frame).intermediate_size
    listed = keys.wholes("intermediate_size", "intermediate_size", limits.WIDTH, frame.n_layers, least=1) or ()
    if len(set(listed)) != 1:
        raise keys.refused("intermediate_size", "must be the same for every layer.")
    return listed[0]


def gemma4(keys: Keys) -> Body:
    """Gemma 4: full layers with heads of their own width, values that may be the keys, experts beside a dense block."""
    frame = read_frame(keys, tied=True)
    reaches = read_reaches(keys, frame, all_but_every(6))
    windowed, full = _gemma4_attentions(keys, frame)
    model_paths, layer_paths, per_layer = per_layer_inputs(keys, frame)
    first_sharing = frame.n_layers - sharing_layers(keys, frame)
    double = keys.flag("double_wide", ("use_double_wide_mlp",), default=False)
    dense_block = read_dense(keys, frame)
    blocks: tuple[FeedForward, ...] = (dense_block,)
    norms = 4
    if keys.flag("has_experts", ("enable_moe_block",), default=False):
        experts = read_experts(keys, width=(*spellings.EXPERT_WIDTH,))
        blocks, norms = (experts, dense_block), 7
        scales = SidePath("router scales", 0, vectors=frame.hidden_size + experts.n_experts)
        layer_paths = (*layer_paths, scales)
    if per_layer:
        layer_paths = (*layer_paths, SidePath("layer scale", 0, vectors=1))
    wide = (replace(dense_block, intermediate_size=2 * dense_block.intermediate_size), *blocks[1:])
    each = []
    for i, reach in enumerate(reaches):
        attention = replace(windowed, window=reach.window) if reach.window else full
        paths = layer_paths
        if i >= first_sharing:
            # The files' projections for these layers are never used, and their norm of the keys is not there at all.
            attention = replace(attention, shares_cache=True, kv_projection=KvProjection.NONE, qk_norm=QkNorm.NONE)
            paths = (*paths, SidePath("query norm", 0, vectors=attention.head_dim))
        own = wide if double and i >= first_sharing else blocks
        each.append(LayerGroup(1, attention, own, norms=norms, side_paths=paths))
    layers, order = stacked(each)
    return Body(frame, layers, order, side_paths=model_paths)


def _gemma4_attentions(keys: Keys, frame: Frame) -> tuple[GroupedAttention, GroupedAttention]:
    """Attention of the layers with a window, and of those without."""
    bias = keys.flag("attention_bias", ("attention_bias",), default=False)
    heads = read_heads(keys, frame.hidden_size, head_dim=256)
    windowed = GroupedAttention(
        heads.n_heads, heads.n_kv_heads, heads.head_dim, qkv_bias=bias, output_bias=bias, qk_norm=QkNorm.PER_HEAD
    )
    wide = keys.whole("full_head_dim", ("global_head_dim",), limits.HEAD_WIDTH, default=512)
    kv_heads, projection = heads.n_kv_heads, KvProjection.BOTH
    if keys.flag("keys_are_values", ("attention_k_eq_v",), default=False):
        names = ("num_global_key_value_heads",)
        kv_heads = keys.whole("full_kv_heads", names, limits.HEADS, default=heads.n_kv_heads)
        check_divides(keys, heads.n_heads, kv_heads, names)
        projection = KvProjection.SHARED
    keys.passed_over("num_global_key_value_heads", "expert_intermediate_size")
    return windowed, replace(windowed, n_kv_heads=kv_heads, head_dim=wide, kv_projection=projection)


FAMILIES: Sequence[Family] = (
    Family("Gemma 3n", ("gemma3n_text",), gemma3n),
    Family("Gemma 4", ("gemma4_text",), gemma4),
)
