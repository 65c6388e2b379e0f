"""Families with an attention of their own."""

from collections.abc import Sequence
from dataclasses import replace

from app.calc.model.architecture import LayerGroup, MultiTokenPrediction
from app.calc.model.layers.dense import DenseFeedForward
from app.calc.model.layers.grouped_attention import GroupedAttention, OutputGate, QkNorm
from app.calc.model.layers.parts import FeedForward, Mixer
from app.calc.model.layers.sparse_attention import BlockSparseAttention, Indexer
from app.checkpoint import limits, spellings
from app.checkpoint.attention import FULL_LAYER, WINDOW_LAYER, Heads, check_divides, grouped, read_head_dim, read_heads
from app.checkpoint.dense_families import attention
from app.checkpoint.feed_forward import count_shared, experts, read_dense, read_experts, shared_width
from app.checkpoint.frame import Frame, Switch, after_dense, by_enumeration, by_interleaving
from app.checkpoint.keys import Keys
from app.checkpoint.recipe import Family, Mtp, Recipe, advertised, joint_params, read_count

STEP_GROUPS = ("num_attention_groups", "num_key_value_heads")


def confined_by_rotary(keys: Keys, frame: Frame) -> Sequence[bool]:
    """Llama 4: layers with rotary positions see a chunk, every fourth has none and sees everything."""
    listed = keys.wholes("rotary_layers", "no_rope_layers", 1) or ()
    if listed and len(listed) != frame.n_layers:
        raise keys.refused("no_rope_layers", f"has {len(listed):,} entries for {frame.n_layers:,} layers.")
    period = keys.whole("window_period", ("no_rope_layer_interval",), limits.LAYERS, default=4)
    return [bool(entry) for entry in listed] or [(i + 1) % period != 0 for i in range(frame.n_layers)]


LLAMA4_ATTENTION = grouped(windows=confined_by_rotary, chunked=True)


def dbrx_attention(keys: Keys, frame: Frame) -> Sequence[Mixer | None]:
    """DBRX: KV heads inside `attn_config`."""
    inside = keys.inside("attn_config")
    heads = keys.whole("n_heads", spellings.HEADS, limits.HEADS)
    kv_heads = 1 if inside is None else inside.whole("n_kv_heads", ("kv_n_heads",), limits.HEADS, default=1)
    check_divides(inside or keys, heads, kv_heads, ("kv_n_heads",))
    return [GroupedAttention(heads, kv_heads, read_head_dim(keys, frame.hidden_size, heads))] * frame.n_layers


def mimo_v2_attention(keys: Keys, frame: Frame) -> Sequence[Mixer | None]:
    """MiMo-V2: values narrower than keys, and other heads in the layers that have a window."""
    full = read_heads(keys, frame.hidden_size)
    value_dim = keys.whole("v_head_dim", ("v_head_dim",), limits.HEAD_WIDTH, default=full.head_dim)
    if keys.flag("attention_bias", ("attention_bias",), default=False):
        raise keys.refused("attention_bias", "biases of this family are not computed.")
    windowed = Heads(
        keys.whole("window_heads", ("swa_num_attention_heads",), limits.HEADS, default=full.n_heads),
        keys.whole("window_kv_heads", ("swa_num_key_value_heads",), limits.HEADS, default=full.n_kv_heads),
        keys.whole("window_head_dim", ("swa_head_dim",), limits.HEAD_WIDTH, default=full.head_dim),
    )
    check_divides(keys, windowed.n_heads, windowed.n_kv_heads, ("swa_num_key_value_heads",))
    window_value = keys.whole("window_v_head_dim", ("swa_v_head_dim",), limits.HEAD_WIDTH, default=value_dim)
    everything = GroupedAttention(
        full.n_heads,
        full.n_kv_heads,
        full.head_dim,
        v_head_dim=value_dim,
        sinks=keys.flag("sinks", ("add_full_attention_sink_bias",), default=False),
    )
    window = GroupedAttention(
        windowed.n_heads,
        windowed.n_kv_heads,
        windowed.head_dim,
        v_head_dim=window_value,
        window=keys.whole("window", spellings.WINDOW, limits.POSITIONS),
        sinks=keys.flag("window_sinks", ("add_swa_attention_sink_bias",), default=False),
    )
    keys.passed_over("attention_chunk_size", "hybrid_block_size")
    pattern = keys.wholes("layer_types", "hybrid_layer_pattern", 1, frame.n_layers)
    if pattern is None:
        raise keys.refused("hybrid_layer_pattern", "is missing.")
    return [window if entry else everything for entry in pattern]


def step35_attention(keys: Keys, frame: Frame) -> Sequence[Mixer | None]:
    """Step-3.5: more heads in the layers with a window, and a gate for each head."""
    heads = keys.whole("n_heads", spellings.HEADS, limits.HEADS)
    kv_heads = keys.whole("n_kv_heads", STEP_GROUPS, limits.HEADS)
    check_divides(keys, heads, kv_heads, STEP_GROUPS)
    dim = read_head_dim(keys, frame.hidden_size, heads)
    gate = OutputGate.PER_HEAD
    everything = GroupedAttention(heads, kv_heads, dim, qk_norm=QkNorm.PER_HEAD, output_gate=gate)
    types = _with_predicting_layers(keys, frame)
    keys.passed_over("use_head_wise_attn_gate", *spellings.WINDOW)
    if WINDOW_LAYER not in types:
        return [everything] * frame.n_layers
    other = keys.inside("attention_other_setting")
    if other is None:
        more = keys.whole("window_heads", ("num_sliding_attention_heads",), limits.HEADS, default=heads)
    else:
        more = other.whole("window_heads", spellings.HEADS, limits.HEADS, default=heads)
        other.passed_over("attention_type", *STEP_GROUPS, *spellings.HEAD_DIM, "true_head_dim")
    check_divides(keys, more, kv_heads, STEP_GROUPS)
    window = replace(everything, n_heads=more, window=keys.whole("window", spellings.WINDOW, limits.POSITIONS))
    return [everything if kind == FULL_LAYER else window for kind in types]


def _with_predicting_layers(keys: Keys, frame: Frame) -> tuple[str, ...]:
    """The list goes on past the last layer, to the multi-token-prediction layers."""
    listed = keys.words("layer_types", "layer_types", (FULL_LAYER, WINDOW_LAYER))
    if listed is None:
        return (FULL_LAYER,) * frame.n_layers
    extra = keys.maybe_whole("mtp_layers", spellings.MTP_LAYERS, limits.LAYERS, least=0) or 0
    if len(listed) not in (frame.n_layers, frame.n_layers + extra):
        raise keys.refused("layer_types", f"has {len(listed):,} entries for {frame.n_layers:,} layers.")
    return listed[: frame.n_layers]


def step3_attention(keys: Keys, frame: Frame) -> Sequence[Mixer | None]:
    """Step-3: one KV head, and queries through a low rank (multi-matrix factorisation)."""
    heads = keys.whole("n_heads", spellings.HEADS, limits.HEADS)
    kv_heads = keys.whole("n_kv_heads", STEP_GROUPS, limits.HEADS, default=1)
    check_divides(keys, heads, kv_heads, STEP_GROUPS)
    dim = read_head_dim(keys, frame.hidden_size, heads, 256)
    rank = keys.whole("query_rank", ("share_q_dim",), limits.WIDTH, default=2048)
    return [GroupedAttention(heads, kv_heads, dim, query_rank=rank)] * frame.n_layers


def minimax_m3_attention(keys: Keys, frame: Frame) -> Sequence[Mixer | None]:
    """MiniMax-M3: in most layers an index chooses the blocks of positions that are read."""
    heads = read_heads(keys, frame.hidden_size)
    if keys.flag("output_gate", ("attention_output_gate",), default=False):
        raise keys.refused("attention_output_gate", "this gate is not computed.")
    norm = QkNorm.PER_HEAD if keys.flag("qk_norm", ("use_qk_norm",), default=True) else QkNorm.NONE
    if norm is QkNorm.PER_HEAD:
        keys.word("qk_norm_kind", ("qk_norm_type",), ("per_head",))
    everything = GroupedAttention(heads.n_heads, heads.n_kv_heads, heads.head_dim, qk_norm=norm)
    inside = keys.inside("sparse_attention_config")
    if inside is None or not inside.flag("sparse", ("use_sparse_attention",), default=True):
        return [everything] * frame.n_layers
    sparse = BlockSparseAttention(
        everything,
        inside.whole("top_blocks", ("sparse_topk_blocks",), limits.POSITIONS),
        inside.whole("block", ("sparse_block_size",), limits.POSITIONS),
        Indexer(
            inside.whole("index_heads", ("sparse_num_index_heads",), limits.HEADS),
            inside.whole("index_dim", ("sparse_index_dim",), limits.HEAD_WIDTH),
            weighs_heads=False,
        ),
    )
    inside.passed_over(*inside.values)
    places = inside.wholes("sparse_layers", "sparse_attention_freq", 1, frame.n_layers)
    if places is None:
        raise inside.refused("sparse_attention_freq", "is missing.")
    return [sparse if entry else everything for entry in places]


def llama4_blocks(keys: Keys, frame: Frame) -> Sequence[tuple[FeedForward, ...]]:
    """Llama 4: one shared expert as wide as a routed one; dense layers have a width of their own.

    An empty list of layers with experts is a dense model (Llama Guard 4).
    """
    if keys.values.get("moe_layers") == []:
        keys.passed_over("moe_layers", "interleave_moe_layer_step", "intermediate_size")
        keys.passed_over(*spellings.EXPERTS, *spellings.PER_TOKEN)
        keys.ledger.derive("n_experts", 0, "no layer is listed as one with experts")
        return [(read_dense(keys, frame, names=("intermediate_size_mlp",)),)] * frame.n_layers
    routed = read_experts(keys, width=("intermediate_size",), shared=lambda _, width: width)
    places = by_interleaving(keys, frame)
    if all(places):
        keys.passed_over("intermediate_size_mlp")
        return [(routed,)] * frame.n_layers
    width = keys.whole("intermediate_size", ("intermediate_size_mlp",), limits.WIDTH)
    plain = (DenseFeedForward(width),)
    sparse = (routed,)
    return [sparse if place else plain for place in places]


def dbrx_blocks(keys: Keys, frame: Frame) -> Sequence[tuple[FeedForward, ...]]:
    """DBRX: experts inside `ffn_config`."""
    inside = keys.inside("ffn_config")
    if inside is None:
        raise keys.refused("ffn_config", "is missing.")
    routed = read_experts(inside, width=("ffn_hidden_size",), counts=("moe_num_experts",), per_token=("moe_top_k",))
    inside.passed_over(*inside.values)
    return [(routed,)] * frame.n_layers


def grok_blocks(keys: Keys, frame: Frame) -> Sequence[tuple[FeedForward, ...]]:
    """Grok: experts, and in Grok-2 a dense block beside them."""
    beside = keys.flag("dense_beside_experts", ("residual_moe",), default=False)
    width = ("moe_intermediate_size",) if keys.has("moe_intermediate_size") else ("intermediate_size",)
    blocks: tuple[FeedForward, ...] = (read_experts(keys, width=width),)
    if beside:
        blocks = (*blocks, read_dense(keys, frame, names=("intermediate_size",)))
    keys.passed_over("intermediate_size")
    return [blocks] * frame.n_layers


def dense_with_window(own_head: bool, assumed: int = 0, why: str = "") -> Mtp:
    """Predicting layers with the attention of the windowed layers and one dense block (MiMo-V2, Step-3.5)."""

    def read(keys: Keys, frame: Frame, each: Sequence[LayerGroup]) -> MultiTokenPrediction | None:
        count = read_count(keys, assumed=assumed, why=why)
        if not count:
            return None
        windowed = next((g for g in each if isinstance(g.mixer, GroupedAttention) and g.mixer.window), each[-1])
        block = read_dense(keys, frame)
        head = frame.vocab_size * frame.hidden_size if own_head else 0
        layer = replace(windowed, count=count, feed_forwards=(block,))
        return MultiTokenPrediction((layer,), count * (joint_params(frame.hidden_size) + head))

    return read


def step_shared(keys: Keys, width: int) -> int | None:
    """One shared expert with a width of its own."""
    keys.passed_over(*spellings.SHARED_EXPERTS)
    return keys.maybe_whole("shared_size", ("share_expert_dim",), limits.WIDTH, least=0) or None


STEP_ROUTER_BIAS = Switch(("use_moe_router_bias",), default=True)
GROK = Recipe(attention(bias=False), grok_blocks, norms=4, tied=True)

FAMILIES = (
    Family("Llama 4", ("llama4_text",), Recipe(LLAMA4_ATTENTION, llama4_blocks, passes=("use_qk_norm",))),
    Family("DBRX", ("dbrx",), Recipe(dbrx_attention, dbrx_blocks)),
    Family("Grok", ("grok-1", "grok1"), GROK),
    Family("Grok 2", ("grok-2",), replace(GROK, tied=False)),
    Family(
        "MiMo-V2",
        ("mimo_v2_flash",),
        Recipe(
            mimo_v2_attention,
            experts(shared=count_shared, placed=after_dense, correction_bias=True),
            mtp=dense_with_window(False, 3, "the published files carry three, which no key names"),
        ),
    ),
    Family(
        "Step 3.5 and 3.7",
        ("step3p5", "step3p7"),
        Recipe(
            step35_attention,
            experts(shared=step_shared, placed=by_enumeration, correction_bias=STEP_ROUTER_BIAS),
            mtp=dense_with_window(True),
        ),
    ),
    Family(
        "Step 3",
        ("step3_text",),
        Recipe(step3_attention, experts(shared=step_shared, placed=by_enumeration)),
    ),
    Family(
        "MiniMax-M3",
        ("minimax_m3", "minimax_m3_text", "minimax_m3_vl_text"),
        Recipe(
            minimax_m3_attention,
            experts(
                width=("moe_intermediate_size", "intermediate_size"),
                dense_width=("dense_intermediate_size",),
                shared=shared_width("shared_intermediate_size"),
                placed=after_dense,
                correction_bias=Switch(("use_routing_bias",), default=True),
            ),
            mtp=advertised,
            passes=(*spellings.SHARED_EXPERTS, "intermediate_size"),
        ),
    ),
)
