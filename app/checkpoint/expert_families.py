"""Families of experts, with grouped, latent or compressed attention."""

from collections.abc import Sequence
from dataclasses import replace

from app.calc.model.architecture import LayerGroup, MultiTokenPrediction, SidePath
from app.calc.model.layers.compressed_attention import CompressedAttention
from app.calc.model.layers.dense import DenseFeedForward
from app.calc.model.layers.experts import Experts
from app.calc.model.layers.grouped_attention import QkNorm
from app.calc.model.layers.latent_attention import SparseLatentAttention
from app.calc.model.layers.parts import Mixer
from app.checkpoint import limits, spellings
from app.checkpoint.attention import (
    FULL_WIDTH,
    PER_HEAD,
    Norm,
    by_letters,
    even_layers,
    everywhere,
    grouped,
    latent,
    latent_from_hidden,
    latent_or_grouped,
    read_latent,
    sparse_latent,
    upper_layers,
)
from app.checkpoint.dense_families import (
    QWEN2_ATTENTION,
    QWEN3_ATTENTION,
    USE_BIAS,
    attention,
    hunyuan_attention,
    hunyuan_blocks,
)
from app.checkpoint.feed_forward import count_shared, dense, experts, read_experts, shared_width
from app.checkpoint.frame import Frame, Switch, after_dense, by_sparse_step, from_start_index, read_frame
from app.checkpoint.keys import Keys
from app.checkpoint.recipe import (
    Body,
    Family,
    Recipe,
    advertised,
    early_glm,
    embedding_and_head,
    first_layer,
    joint_params,
    predicting,
    read_count,
    stacked,
)

PLAIN_WIDTH = ("intermediate_size",)
QWEN_SHARED = shared_width("shared_expert_intermediate_size")
GLM_ATTENTION = grouped(qkv_bias=Switch(("attention_bias",)), qk_norm=Norm(QkNorm.PER_HEAD, Switch(("use_qk_norm",))))
DEEPSEEK_BLOCKS = experts(shared=count_shared, placed=after_dense, correction_bias=True)
MINIMAX_M2_NORM = Norm(QkNorm.FULL_WIDTH, Switch(("use_qk_norm",), default=True))


def minimax_m2_attention(keys: Keys, frame: Frame) -> Sequence[Mixer | None]:
    """Full attention in every layer; the list of its kinds is left from MiniMax-01."""
    kinds = keys.wholes("layer_types", "attn_type_list", 1, frame.n_layers)
    if kinds is not None and not all(kinds):
        raise keys.refused("attn_type_list", "has layers without full attention, which this family is not known for.")
    keys.word("qk_norm_kind", ("qk_norm_type",), ("per_layer",))
    return attention(bias=False, qk_norm=MINIMAX_M2_NORM)(keys, frame)


FAMILIES = (
    Family("Mixtral", ("mixtral",), Recipe(attention(bias=False, windows=everywhere), experts(width=PLAIN_WIDTH))),
    Family(
        "Phi-3.5-MoE",
        ("phimoe",),
        Recipe(
            attention(windows=everywhere),
            experts(width=PLAIN_WIDTH),
            norm_bias=True,
            head_bias=Switch(("lm_head_bias",)),
        ),
    ),
    Family(
        "Qwen2 with experts",
        ("qwen2_moe",),
        Recipe(QWEN2_ATTENTION, experts(shared=QWEN_SHARED, shared_gate=True, placed=by_sparse_step)),
    ),
    Family(
        "Qwen3 with experts",
        ("qwen3_moe", "qwen3_vl_moe_text", "qwen3_omni_moe_text", "mellum"),
        Recipe(QWEN3_ATTENTION, experts(placed=by_sparse_step)),
    ),
    Family("OLMoE", ("olmoe", "flex_olmo"), Recipe(attention(qk_norm=FULL_WIDTH), experts(width=PLAIN_WIDTH))),
    Family(
        "Granite with experts",
        ("granitemoe", "granitemoeshared"),
        Recipe(attention(), experts(width=PLAIN_WIDTH, shared=shared_width("shared_intermediate_size"))),
    ),
    Family(
        "gpt-oss",
        ("gpt_oss",),
        Recipe(
            grouped(
                qkv_bias=Switch(("attention_bias",), default=True),
                output_bias=Switch(("attention_bias",), default=True),
                sinks=True,
                windows=even_layers,
            ),
            experts(width=PLAIN_WIDTH, router_bias=True, bias=True),
        ),
    ),
    Family(
        "DeepSeek-MoE",
        ("deepseek",),
        Recipe(attention(), experts(shared=count_shared, placed=after_dense)),
    ),
    Family("dots.llm1", ("dots1",), Recipe(attention(qk_norm=PER_HEAD, windows=upper_layers), DEEPSEEK_BLOCKS)),
    Family(
        "GLM-4.5 and 4.6",
        ("glm4_moe", "glm4v_moe_text"),
        Recipe(GLM_ATTENTION, DEEPSEEK_BLOCKS, mtp=predicting(duplicates=early_glm)),
    ),
    Family(
        "ERNIE 4.5 with experts",
        ("ernie4_5_moe",),
        Recipe(
            attention(USE_BIAS),
            experts(shared=count_shared, placed=from_start_index, correction_bias=True),
            tied=True,
            mtp=predicting(pick=first_layer, norms=2),
        ),
    ),
    Family("Hunyuan with experts", ("hunyuan_v1_moe", "hunyuan"), Recipe(hunyuan_attention, hunyuan_blocks)),
    Family(
        "MiniMax-M2",
        ("minimax_m2",),
        Recipe(
            minimax_m2_attention,
            experts(
                width=PLAIN_WIDTH,
                shared=shared_width("shared_intermediate_size"),
                correction_bias=Switch(("use_routing_bias",), default=True),
            ),
            mtp=advertised,
        ),
    ),
    Family(
        "Ling",
        ("bailing_moe",),
        Recipe(
            grouped(qkv_bias=Switch(("use_qkv_bias",)), output_bias=USE_BIAS),
            experts(shared=count_shared, placed=after_dense),
        ),
    ),
    Family("Solar Open", ("solar_open",), Recipe(attention(), DEEPSEEK_BLOCKS)),
    Family(
        "EXAONE with experts",
        ("exaone_moe",),
        Recipe(attention(bias=False, qk_norm=PER_HEAD, windows=by_letters), DEEPSEEK_BLOCKS),
    ),
    Family("Hy3", ("hy_v3",), Recipe(attention(qk_norm=PER_HEAD), DEEPSEEK_BLOCKS)),
)


V3_BLOCKS = experts(shared=count_shared, placed=after_dense, correction_bias=True)


def layer_with_index(each: Sequence[LayerGroup]) -> LayerGroup:
    """A predicting layer makes an index of its own, like the last layer that makes one."""
    owners = [g for g in each if isinstance(g.mixer, SparseLatentAttention) and g.mixer.indexer]
    return replace(owners[-1], feed_forwards=each[-1].feed_forwards)


def longcat(keys: Keys) -> Body:
    """LongCat: each layer has two attentions and two dense blocks, and one set of experts beside them.

    It is read as two layers, the first with the experts, so that both caches are counted.
    """
    frame = read_frame(keys, tied=False)
    mixer = read_latent(keys)
    inner = DenseFeedForward(keys.whole("intermediate_size", spellings.WIDTH, limits.WIDTH))
    identity = keys.maybe_whole("identity_experts", ("zero_expert_num",), limits.EXPERTS, least=0)
    keys.word("identity_kind", ("zero_expert_type",), ("identity",))
    routed = read_experts(keys, shared=lambda *_: None, correction_bias=True, identity=identity or None)
    keys.passed_over("attention_method", "mla_scale_q_lora", "mla_scale_kv_lora", "router_bias")
    halves = [LayerGroup(1, mixer, (routed, inner)), LayerGroup(1, mixer, (inner,))] * frame.n_layers
    keys.ledger.derive("attention_layers", 2 * frame.n_layers, "two attentions in each layer")
    keys.ledger.notice("Each layer is counted as two: it has two attentions and two dense blocks.")
    layers, order = stacked(halves)
    count = read_count(keys, ("num_nextn_predict_layers", "mtp_num_layers"), 1, "the published files carry one")
    mtp = None
    if count:
        copies = frame.vocab_size * frame.hidden_size
        keys.ledger.assume("mtp_duplicates", copies, "the published files repeat the embedding")
        block = replace(halves[1], count=count)
        mtp = MultiTokenPrediction((block,), count * joint_params(frame.hidden_size), copies)
    return Body(frame, layers, order, mtp=mtp)


LATENT_FAMILIES = (
    Family(
        "DeepSeek-V2",
        ("deepseek_v2",),
        Recipe(latent_or_grouped(attention()), experts(shared=count_shared, placed=after_dense)),
    ),
    Family(
        "DeepSeek-V3 and R1",
        ("deepseek_v3",),
        Recipe(latent, V3_BLOCKS, mtp=predicting(duplicates=embedding_and_head)),
    ),
    Family(
        "DeepSeek-V3.2",
        ("deepseek_v32",),
        Recipe(sparse_latent, V3_BLOCKS, mtp=predicting(pick=layer_with_index, duplicates=embedding_and_head)),
    ),
    Family("Kimi K2", ("kimi_k2",), Recipe(latent, V3_BLOCKS, mtp=predicting(duplicates=embedding_and_head))),
    Family("GLM-5", ("glm_moe_dsa",), Recipe(sparse_latent, V3_BLOCKS, mtp=predicting(pick=layer_with_index))),
    Family("GLM-4.7 Flash", ("glm4_moe_lite",), Recipe(latent, V3_BLOCKS, mtp=predicting())),
    Family(
        "Mistral Small 4 and Large 3",
        ("mistral4",),
        Recipe(latent, experts(shared=count_shared, placed=after_dense)),
    ),
    Family("LongCat-Flash", ("longcat_flash",), longcat),
    Family("Youtu", ("youtu",), Recipe(latent, dense(), tied=True)),
    Family("MiniCPM 3", ("minicpm3",), Recipe(latent_from_hidden, dense(), tied=True)),
)


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


COMPRESSED_FAMILIES: Sequence[Family] = (Family("DeepSeek V4", ("deepseek_v4", "deepseek_ref"), read),)
