"""DeepSeek V4: compressed attention, hyper-connections around every block, and layers routed by a table."""

from collections.abc import Sequence

from app.calc.architecture import LayerGroup, MultiTokenPrediction, SidePath
from app.calc.layers.compressed_attention import CompressedAttention
from app.calc.layers.experts import Experts
from app.catalog.importing import limits, spellings
from app.catalog.importing.family import Family
from app.catalog.importing.feed_forward import count_shared, read_experts
from app.catalog.importing.frame import Frame, read_frame
from app.catalog.importing.keys import Keys
from app.catalog.importing.mtp import joint_params, read_count
from app.catalog.importing.recipe import Body, stacked

WINDOW_ONLY, SPARSE, HEAVY = 0, 4, 128
OVERLAP = {SPARSE: 2, HEAVY: 1}
"""Strides that a compressed row looks back over, itself included."""
TYPES = {"sliding_attention": WINDOW_ONLY, "compressed_sparse_attention": SPARSE, "heavily_compressed_attention": HEAVY}


def connections(streams: int, hidden_size: int) -> SidePath:
    """Hyper-connections of one layer: two mixers of all streams, each with a bias and three scales."""
    mixed = (2 + streams) * streams
    return SidePath("hyper-connections", 2 * mixed * streams * hidden_size, vectors=2 * (mixed + 3))


def connection_head(streams: int, hidden_size: int) -> SidePath:
    """What joins the streams again before the head."""
    return SidePath("hyper-connection head", streams * streams * hidden_size, vectors=streams + 1)


def read_ratios(keys: Keys, n_layers: int) -> tuple[tuple[int, ...], int]:
    """Compression of each layer, and of the predicting layers that the list goes on to."""
    listed = keys.wholes("compression", "compress_ratios", limits.POSITIONS)
    if listed is None:
        types = keys.words("layer_types", "layer_types", tuple(TYPES), n_layers)
        if types is None:
            raise keys.refused("compress_ratios", "is missing.")
        keys.passed_over("compress_rates")
        return tuple(TYPES[kind] for kind in types), WINDOW_ONLY
    extra = keys.maybe_whole("mtp_layers", spellings.MTP_LAYERS, limits.LAYERS, least=0) or 0
    if len(listed) not in (n_layers, n_layers + extra):
        raise keys.refused("compress_ratios", f"has {len(listed):,} entries for {n_layers:,} layers.")
    if set(listed) - {WINDOW_ONLY, *OVERLAP}:
        raise keys.refused("compress_ratios", "has a ratio other than 0, 4 and 128, which is not computed.")
    return listed[:n_layers], listed[-1] if len(listed) > n_layers else WINDOW_ONLY


def read_attention(keys: Keys, ratio: int) -> CompressedAttention:
    """The attention of a layer that stands one row for `ratio` positions; an index chooses among those of 4."""
    kv_heads = keys.whole("n_kv_heads", spellings.KV_HEADS, limits.HEADS, default=1)
    if kv_heads != 1:
        raise keys.refused("num_key_value_heads", "must be 1: one row serves all heads.")
    if keys.flag("attention_bias", ("attention_bias",), default=False):
        raise keys.refused("attention_bias", "biases of this attention are not computed.")
    keys.passed_over("qk_rope_head_dim", "compress_rope_theta")
    heads = keys.whole("n_heads", spellings.HEADS, limits.HEADS)
    width = keys.whole("head_dim", ("head_dim",), limits.HEAD_WIDTH)
    groups = keys.whole("output_groups", ("o_groups",), limits.HEADS)
    if (heads * width) % groups:
        raise keys.refused("o_groups", f"{groups:,} groups do not divide {heads * width:,} output elements.")
    indexed = ratio == SPARSE
    top = keys.whole("index_top", ("index_topk",), limits.POSITIONS)
    index_heads = keys.whole("index_heads", ("index_n_heads",), limits.HEADS)
    index_dim = keys.whole("index_dim", ("index_head_dim",), limits.HEAD_WIDTH)
    return CompressedAttention(
        heads,
        width,
        q_rank=keys.whole("q_rank", ("q_lora_rank",), limits.WIDTH),
        o_rank=keys.whole("o_rank", ("o_lora_rank",), limits.WIDTH),
        o_groups=groups,
        window=keys.whole("window", spellings.WINDOW, limits.POSITIONS),
        compression=ratio or None,
        overlap=OVERLAP.get(ratio, 1),
        top=top if indexed else None,
        index_heads=index_heads if indexed else 0,
        index_dim=index_dim if indexed else 0,
    )


def read(keys: Keys) -> Body:
    """The whole model.

    Raises:
        ConfigError: with the key that is missing, impossible or contradictory.
    """
    frame = read_frame(keys, tied=False)
    ratios, predicting = read_ratios(keys, frame.n_layers)
    mixers = {ratio: read_attention(keys, ratio) for ratio in {*ratios, predicting}}
    hashed = _hash_layers(keys, frame)
    routed = read_experts(keys, shared=count_shared, correction_bias=True)
    by_table = _by_table(routed, frame)
    keys.passed_over("first_k_dense_replace", "moe_layer_freq", "topk_method", "intermediate_size", "mlp_bias")
    streams = keys.whole("hyper_connections", ("hc_mult",), limits.HEADS, default=4)
    paths = (connections(streams, frame.hidden_size),)
    each = [
        LayerGroup(1, mixers[ratio], (by_table if i < hashed else routed,), side_paths=paths)
        for i, ratio in enumerate(ratios)
    ]
    layers, order = stacked(each)
    head = connection_head(streams, frame.hidden_size)
    mtp = _mtp(keys, frame, LayerGroup(1, mixers[predicting], (routed,), side_paths=paths), head)
    return Body(frame, layers, order, side_paths=(head,), mtp=mtp)


def _hash_layers(keys: Keys, frame: Frame) -> int:
    types = keys.words("mlp_layer_types", "mlp_layer_types", ("hash_moe", "moe"), frame.n_layers)
    if types is not None:
        return types.count("hash_moe")
    hashed = keys.whole("hash_layers", ("num_hash_layers",), limits.LAYERS, default=0, least=0)
    if hashed > frame.n_layers:
        raise keys.refused("num_hash_layers", f"{hashed:,} are more than {frame.n_layers:,} layers.")
    return hashed


def _by_table(routed: Experts, frame: Frame) -> Experts:
    """The experts of a layer whose choices stand in a table with a row for each entry of the vocabulary."""
    return Experts(
        routed.n_experts,
        routed.per_token,
        routed.intermediate_size,
        shared_size=routed.shared_size,
        correction_bias=True,
        hash_table=frame.vocab_size,
    )


def _mtp(keys: Keys, frame: Frame, layer: LayerGroup, head: SidePath) -> MultiTokenPrediction | None:
    count = read_count(keys)
    if not count:
        return None
    group = LayerGroup(count, layer.mixer, layer.feed_forwards, side_paths=(*layer.side_paths, head))
    return MultiTokenPrediction((group,), count * joint_params(frame.hidden_size))


FAMILIES: Sequence[Family] = (Family("DeepSeek V4", ("deepseek_v4", "deepseek_ref"), read),)
