"""Grouped attention of families that give its sizes in a way of their own: Llama 4, DBRX, MiMo-V2, Step, MiniMax-M3."""

from collections.abc import Sequence
from dataclasses import replace

from app.calc.layers.block_sparse_attention import BlockSparseAttention
from app.calc.layers.grouped_attention import GroupedAttention, OutputGate, QkNorm
from app.calc.layers.indexer import Indexer
from app.calc.layers.parts import Mixer
from app.catalog.importing import limits, spellings
from app.catalog.importing.frame import Frame
from app.catalog.importing.grouped import Heads, check_divides, grouped, read_head_dim, read_heads
from app.catalog.importing.keys import Keys
from app.catalog.importing.reach import FULL_LAYER, WINDOW_LAYER

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
