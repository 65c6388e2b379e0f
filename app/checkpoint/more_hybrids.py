"""Decoders whose layers convolve, or attend and carry a state at once: LFM2, Falcon-H1, RecurrentGemma."""

from collections.abc import Sequence

from app.calc.model.layers.dense import DenseFeedForward
from app.calc.model.layers.grouped_attention import GroupedAttention, QkNorm
from app.calc.model.layers.mamba import ParallelMamba2
from app.calc.model.layers.parts import FeedForward, Mixer
from app.calc.model.layers.rg_lru import RgLru
from app.calc.model.layers.short_convolution import ShortConvolution
from app.checkpoint import limits
from app.checkpoint.attention import read_heads
from app.checkpoint.dense_families import MLP_BIAS
from app.checkpoint.feed_forward import Blocks, dense, experts
from app.checkpoint.frame import Frame, Switch
from app.checkpoint.hybrid_families import alternating, plain_attention
from app.checkpoint.keys import Keys
from app.checkpoint.recipe import Family, Recipe
from app.checkpoint.recurrent import read_mamba2, read_state_dtype

CONVOLVES, ATTENDS = "conv", "full_attention"
LFM2_PASSES = (
    "block_dim",
    "block_mlp_init_scale",
    "block_norm_eps",
    "block_out_init_scale",
    "block_use_swiglu",
    "block_use_xavier_init",
    "conv_dim",
    "conv_dim_out",
    "conv_use_xavier_init",
)
FALCON_H1_PASSES = (
    "attention_in_multiplier",
    "attention_out_multiplier",
    "key_multiplier",
    "lm_head_multiplier",
    "mamba_chunk_size",
    "mamba_norm_before_gate",
    "mamba_use_mlp",
    "mlp_expansion_factor",
    "mlp_multipliers",
    "ssm_in_multiplier",
    "ssm_multipliers",
    "ssm_out_multiplier",
)
RECURRENT_GEMMA_PASSES = (
    "embeddings_scale_by_sqrt_dim",
    "final_w_init_variance_scale",
    "logits_soft_cap",
    "w_init_variance_scale",
)


def lfm2_mixers(keys: Keys, frame: Frame) -> Sequence[Mixer | None]:
    """LFM2: attention where the list of layers or of indices says so, short convolutions elsewhere.

    Raises:
        ConfigError: neither list is there, or they contradict each other.
    """
    words = keys.words("layer_types", "layer_types", (CONVOLVES, ATTENDS), frame.n_layers)
    indices = keys.wholes("attention_layers", "full_attn_idxs", limits.LAYERS)
    if words is None and indices is None:
        raise keys.refused("layer_types", "is missing, and so is full_attn_idxs.")
    if indices is not None and any(index >= frame.n_layers for index in indices):
        raise keys.refused("full_attn_idxs", f"names a layer that {frame.n_layers:,} layers do not have.")
    full = [i in set(indices or ()) for i in range(frame.n_layers)]
    if words is not None:
        listed = [word == ATTENDS for word in words]
        if indices is not None and listed != full:
            raise keys.refused("full_attn_idxs", "contradicts layer_types.")
        full = listed
    heads = read_heads(keys, frame.hidden_size)
    attention = GroupedAttention(heads.n_heads, heads.n_kv_heads, heads.head_dim, qk_norm=QkNorm.PER_HEAD)
    taps = keys.whole("convolution", ("conv_L_cache",), limits.HEADS, default=3)
    bias = keys.flag("conv_bias", ("conv_bias",), default=False)
    return alternating(full, attention, ShortConvolution(frame.hidden_size, taps, bias))


def lfm2_width(keys: Keys) -> int:
    """The width of LFM2's blocks: two thirds of the number given, times a factor, rounded up to a multiple.

    Worked number: 6,656 is 4,437 after the two thirds, and 4,608 as a multiple of 256.

    Raises:
        ConfigError: no width is given.
    """
    own = keys.maybe_whole("block_ff_dim", ("block_ff_dim",), limits.WIDTH)
    if own is not None:
        keys.passed_over("intermediate_size")
    given = own if own is not None else keys.whole("given_width", ("intermediate_size",), limits.WIDTH)
    factor = keys.number("block_ffn_dim_multiplier", "block_ffn_dim_multiplier", default=1.0)
    multiple = keys.whole("block_multiple_of", ("block_multiple_of",), limits.WIDTH, default=256)
    if not keys.flag("block_auto_adjust_ff_dim", ("block_auto_adjust_ff_dim",), default=True):
        return given
    width = 2 * given // 3
    if "block_ffn_dim_multiplier" in keys.values and not keys.has("block_ffn_dim_multiplier"):
        factor = None  # null is not the same as absent here: the class then leaves the two thirds as they are
    if factor is not None:
        width = max(1, -(-int(factor * width) // multiple)) * multiple
    keys.ledger.derive("intermediate_size", width, "two thirds, times the factor, rounded up to the multiple")
    return width


def lfm2_blocks(keys: Keys, frame: Frame) -> Sequence[tuple[FeedForward, ...]]:
    """One gated block of that width in each layer."""
    return [(DenseFeedForward(lfm2_width(keys)),)] * frame.n_layers


def after_two(keys: Keys, frame: Frame) -> Sequence[bool]:
    """LFM2 with experts: `num_dense_layers` dense ones, two where no key says so.

    Raises:
        ConfigError: more dense layers than layers.
    """
    count = keys.whole("dense_layers", ("num_dense_layers",), limits.LAYERS, default=2, least=0)
    if count > frame.n_layers:
        raise keys.refused("num_dense_layers", f"{count:,} dense layers are more than {frame.n_layers:,} layers.")
    return [i >= count for i in range(frame.n_layers)]


LFM2_EXPERTS: Blocks = experts(placed=after_two, correction_bias=Switch(("use_expert_bias",), default=True))


def falcon_h1_mixers(keys: Keys, frame: Frame) -> Sequence[Mixer | None]:
    """Falcon-H1: both kinds in every layer; the recurrence has a width of its own, and seldom a norm.

    Raises:
        ConfigError: heads that do not make up that width, or biases that are not computed.
    """
    if keys.flag("projectors_bias", ("projectors_bias",), default=False):
        raise keys.refused("projectors_bias", "biases of these projections are not computed.")
    keys.passed_over("attn_layer_indices")
    expand = keys.whole("expand", ("mamba_expand",), limits.HEADS, default=2)
    inner = keys.whole("inner", ("mamba_d_ssm",), limits.WIDTH, default=expand * frame.hidden_size)
    norm = keys.flag("mamba_norm", ("mamba_rms_norm",), default=False)
    mamba = read_mamba2(keys, frame.hidden_size, inner=inner, gated_norm=norm)
    if mamba.inner != inner:
        key = "mamba_d_ssm" if keys.has("mamba_d_ssm") else "mamba_n_heads"
        raise keys.refused(key, f"{mamba.heads:,} heads of {mamba.head_dim:,} are not {inner:,} channels.")
    return [ParallelMamba2(plain_attention(keys, frame), mamba)] * frame.n_layers


def recurrent_gemma_mixers(keys: Keys, frame: Frame) -> Sequence[Mixer | None]:
    """RecurrentGemma: a pattern of blocks repeated, attention within a window and RG-LRU.

    Raises:
        ConfigError: heads that do not divide the channels, or an unknown word in the pattern.
    """
    kinds = ("recurrent", "attention")
    key = "block_types" if keys.has("block_types") else "_block_types"
    pattern = keys.words("layer_types", key, kinds) or ("recurrent", "recurrent", "attention")
    keys.passed_over("block_types", "_block_types")
    heads = read_heads(keys, frame.hidden_size)
    window = keys.whole("window", ("attention_window_size", "sliding_window"), limits.POSITIONS, default=2048)
    bias = keys.flag("attention_bias", ("attention_bias",), default=False)
    attention = GroupedAttention(
        heads.n_heads, heads.n_kv_heads, heads.head_dim, window=window, qkv_bias=bias, output_bias=True
    )
    inner = keys.whole("inner", ("lru_width",), limits.WIDTH, default=frame.hidden_size)
    if inner % heads.n_heads:
        raise keys.refused("lru_width", f"{inner:,} channels do not divide among {heads.n_heads:,} blocks.")
    taps = keys.whole("convolution", ("conv1d_width",), limits.HEADS, default=4)
    unit = RgLru(inner, heads.n_heads, taps, read_state_dtype(keys))
    full = [pattern[i % len(pattern)] == "attention" for i in range(frame.n_layers)]
    return alternating(full, attention, unit)


def half_as_wide(keys: Keys, frame: Frame) -> Sequence[tuple[FeedForward, ...]]:
    """RecurrentGemma's blocks: the width given is that of gate and input together; all three matrices are biased."""
    both = keys.whole("gate_and_input", ("intermediate_size",), limits.WIDTH, least=2)
    keys.ledger.derive("intermediate_size", both // 2, "half of what gate and input have together")
    return [(DenseFeedForward(both // 2, bias=True),)] * frame.n_layers


FAMILIES = (
    Family("LFM2", ("lfm2",), Recipe(lfm2_mixers, lfm2_blocks, tied=True, passes=LFM2_PASSES)),
    Family("LFM2 with experts", ("lfm2_moe",), Recipe(lfm2_mixers, LFM2_EXPERTS, tied=True, passes=LFM2_PASSES)),
    Family("Falcon-H1", ("falcon_h1",), Recipe(falcon_h1_mixers, dense(bias=MLP_BIAS), passes=FALCON_H1_PASSES)),
    Family(
        "RecurrentGemma",
        ("recurrent_gemma",),
        Recipe(recurrent_gemma_mixers, half_as_wide, tied=True, passes=RECURRENT_GEMMA_PASSES),
    ),
)
