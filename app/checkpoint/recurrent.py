"""Layers with a state: their sizes, and the RWKV families."""

import math
from collections.abc import Sequence
from dataclasses import replace

from app.calc.dtypes import Dtype
from app.calc.model.layers.dense import ChannelMix
from app.calc.model.layers.mamba import Mamba, Mamba2
from app.calc.model.layers.parts import FeedForward, Mixer
from app.calc.model.layers.recurrent import GatedDeltaNet, KimiDeltaAttention, LightningAttention
from app.calc.model.layers.rwkv import Rwkv6, Rwkv7
from app.checkpoint import limits, spellings
from app.checkpoint.attention import read_head_dim
from app.checkpoint.feed_forward import Blocks
from app.checkpoint.frame import Frame, Switch
from app.checkpoint.keys import Keys
from app.checkpoint.recipe import Family, Recipe

STATE_DTYPES = {"float32": Dtype.FP32, "bfloat16": Dtype.BF16, "float16": Dtype.FP16}


def read_state_dtype(keys: Keys, default: Dtype = Dtype.FP32) -> Dtype:
    """The type of the recurrent state; `default` where no key says."""
    word = keys.word("state_dtype", ("mamba_ssm_dtype", "mamba_ssm_cache_dtype"), tuple(STATE_DTYPES))
    if word is not None:
        return STATE_DTYPES[word]
    keys.ledger.assume("state_dtype", str(default), "no key says; engines choose it")
    return default


def read_gated_delta_net(keys: Keys) -> GatedDeltaNet:
    """Sizes of the Qwen3-Next keys.

    Raises:
        ConfigError: value heads that key heads do not divide.
    """
    key_heads = keys.whole("linear_key_heads", ("linear_num_key_heads",), limits.HEADS)
    value_heads = keys.whole("linear_value_heads", ("linear_num_value_heads",), limits.HEADS)
    if value_heads % key_heads:
        raise keys.refused("linear_num_value_heads", f"{value_heads:,} are not divided by {key_heads:,} key heads.")
    return GatedDeltaNet(
        key_heads,
        value_heads,
        keys.whole("linear_key_dim", ("linear_key_head_dim",), limits.HEAD_WIDTH),
        keys.whole("linear_value_dim", ("linear_value_head_dim",), limits.HEAD_WIDTH),
        keys.whole("convolution", ("linear_conv_kernel_dim",), limits.HEADS, default=4),
        read_state_dtype(keys),
    )


def read_kimi_delta(keys: Keys) -> KimiDeltaAttention:
    """Sizes of the block `linear_attn_config`; the decay's inner width is the head width."""
    heads = keys.whole("linear_heads", ("num_heads", "linear_num_heads"), limits.HEADS)
    dim = keys.whole("linear_head_dim", ("head_dim", "linear_head_dim"), limits.HEAD_WIDTH)
    taps = keys.whole("convolution", ("short_conv_kernel_size", "linear_conv_kernel_dim"), limits.HEADS, default=4)
    full_rank = keys.flag("full_rank_gate", ("use_full_rank_gate",), default=False)
    keys.passed_over("gate_lower_bound")
    return KimiDeltaAttention(heads, dim, dim, taps, full_rank)


def read_lightning(keys: Keys, hidden_size: int) -> LightningAttention:
    """As many heads, as wide, as the full layers have."""
    heads = keys.whole("n_heads", spellings.HEADS, limits.HEADS)
    return LightningAttention(heads, read_head_dim(keys, hidden_size, heads))


def read_mamba(keys: Keys, hidden_size: int, *, inner_norms: bool) -> Mamba:
    """Mamba 1; the step's inner width is hidden ÷ 16, rounded up, unless a number is given."""
    for key in ("mamba_proj_bias", "use_bias"):
        if keys.flag(key, (key,), default=False):
            raise keys.refused(key, "biases of these projections are not computed.")
    for key in ("mamba_conv_bias", "use_conv_bias"):
        if not keys.flag(key, (key,), default=True):
            raise keys.refused(key, "a convolution without a bias is not computed.")
    names = ("mamba_dt_rank", "time_step_rank")
    if any(keys.values.get(name) == "auto" for name in names):
        keys.passed_over(*names)
        rank = math.ceil(hidden_size / 16)
        keys.ledger.derive("dt_rank", rank, "hidden size ÷ 16, rounded up")
    else:
        rank = keys.whole("dt_rank", names, limits.WIDTH, default=math.ceil(hidden_size / 16))
    expand = keys.whole("expand", ("mamba_expand", "expand"), limits.HEADS, default=2)
    inner = expand * hidden_size
    if keys.has("intermediate_size") and "mamba_expand" not in keys.values:
        inner = keys.whole("inner", ("intermediate_size",), limits.WIDTH)
    return Mamba(
        inner,
        keys.whole("state_size", ("mamba_d_state", "state_size"), limits.WIDTH, default=16),
        rank,
        keys.whole("convolution", ("mamba_d_conv", "conv_kernel"), limits.HEADS, default=4),
        inner_norms,
    )


def read_mamba2(
    keys: Keys,
    hidden_size: int,
    state_dtype: Dtype = Dtype.FP32,
    *,
    inner: int | None = None,
    gated_norm: bool = True,
) -> Mamba2:
    """Mamba 2 under the names of Nemotron-H, Granite 4 and Bamba; `inner` are its channels where a key gives them.

    Raises:
        ConfigError: groups that do not divide the heads, or biases that are not computed.
    """
    for key in ("mamba_proj_bias", "use_bias"):
        if keys.flag(key, (key,), default=False):
            raise keys.refused(key, "biases of these projections are not computed.")
    for key in ("mamba_conv_bias", "use_conv_bias"):
        if not keys.flag(key, (key,), default=True):
            raise keys.refused(key, "a convolution without a bias is not computed.")
    heads = keys.whole("mamba_heads", ("mamba_num_heads", "mamba_n_heads"), limits.HEADS)
    expand = keys.whole("expand", ("mamba_expand", "expand"), limits.HEADS, default=2)
    names = ("mamba_head_dim", "mamba_d_head")
    if any(keys.values.get(name) == "auto" for name in names):
        keys.passed_over(*names)
        dim = max(1, (expand * hidden_size if inner is None else inner) // heads)
        rule = "expansion × hidden size ÷ heads" if inner is None else "channels ÷ heads"
        keys.ledger.derive("mamba_head_dim", dim, rule)
    else:
        dim = keys.whole("mamba_head_dim", names, limits.HEAD_WIDTH)
    groups = keys.whole("mamba_groups", ("n_groups", "mamba_n_groups"), limits.HEADS, default=1)
    if heads % groups:
        raise keys.refused("n_groups", f"{groups:,} groups do not divide {heads:,} heads.")
    return Mamba2(
        heads,
        dim,
        keys.whole("state_size", ("ssm_state_size", "mamba_d_state"), limits.WIDTH),
        groups,
        keys.whole("convolution", ("conv_kernel", "mamba_d_conv"), limits.HEADS, default=4),
        read_state_dtype(keys, state_dtype),
        gated_norm,
    )


PASSES = (
    "attention_hidden_size",
    "attn_mode",
    "fuse_cross_entropy",
    "fuse_linear_cross_entropy",
    "fuse_norm",
    "head_size_divisor",
    "model_version",
    "rescale_every",
    "use_l2warp",
)
WIDE = 4096
"""The hidden size from which RWKV-6 has thin matrices twice as wide, where no key says how wide they are."""


def check_plain(keys: Keys, frame: Frame) -> None:
    """Raise for what these readers do not compute.

    Raises:
        ConfigError: attention in some layers, no norm after the embedding, or keys and values of another width.
    """
    if keys.has("attn"):
        raise keys.refused("attn", "attention in some of these layers is not computed.")
    if not keys.flag("norm_first", ("norm_first",), default=True):
        raise keys.refused("norm_first", "false is not computed: the embedding would have no norm.")
    for key, only in (("value_dim", frame.hidden_size), ("attention_hidden_size", frame.hidden_size)):
        given = keys.values.get(key)
        keys.passed_over(key)
        if any(width not in (None, only) for width in (given if isinstance(given, list) else [given])):
            raise keys.refused(key, f"is not {only:,} in every layer; only that is computed.")


def head_width(keys: Keys, frame: Frame) -> int:
    """The width of a head: its own key, or 64.

    Raises:
        ConfigError: heads of it do not make up the hidden size.
    """
    names = ("head_dim", "head_size")
    width = keys.whole("head_dim", names, limits.HEAD_WIDTH, default=64)
    if frame.hidden_size % width:
        key = next((name for name in names if keys.has(name)), names[0])
        raise keys.refused(key, f"{width:,} does not divide {frame.hidden_size:,}.")
    keys.passed_over("num_heads", "num_attention_heads")
    keys.ledger.derive("n_heads", frame.hidden_size // width, "hidden size ÷ head width, whatever the file says")
    return width


def rwkv7_mixers(keys: Keys, frame: Frame) -> Sequence[Mixer | None]:
    """Heads as wide as the model; the first layer takes no values over."""
    check_plain(keys, frame)
    width = head_width(keys, frame)
    decay, rate, gate, value = (
        keys.whole(f"{name}_rank", (f"{key}_low_rank_dim",), limits.WIDTH)
        for name, key in (("decay", "decay"), ("rate", "a"), ("gate", "gate"), ("value", "v"))
    )
    heads = frame.hidden_size // width
    first = Rwkv7(heads, width, frame.hidden_size, decay, rate, gate, state_dtype=read_state_dtype(keys))
    return [first, *[replace(first, value_rank=value)] * (frame.n_layers - 1)]


def rwkv6_mixers(keys: Keys, frame: Frame) -> Sequence[Mixer | None]:
    """The same mixer in every layer, under the keys of either class that has it.

    The original class says nothing of its thin matrices: 32 and 64, and twice that at a hidden size of 4,096.

    Raises:
        ConfigError: keys or values that are not as wide as the model.
    """
    check_plain(keys, frame)
    for key, default in (("expand_k", 0.5 if keys.has("proj_low_rank_dim") else 1.0), ("expand_v", 1.0)):
        if keys.number(key, key, default=default) != 1.0:
            raise keys.refused(key, "is not 1; only keys and values as wide as the model are computed.")
    if keys.has("num_heads") and not keys.any_of(("head_dim", "head_size")):
        heads = keys.whole("n_heads", ("num_heads",), limits.HEADS)
        if frame.hidden_size % heads:
            raise keys.refused("num_heads", f"{frame.hidden_size:,} does not divide among {heads:,} heads.")
        width = frame.hidden_size // heads
        keys.ledger.derive("head_dim", width, "hidden size ÷ heads")
    else:
        width = head_width(keys, frame)
    twice = 2 if frame.hidden_size == WIDE else 1
    mix = keys.whole("mix_rank", ("proj_low_rank_dim",), limits.WIDTH, default=32 * twice)
    decay = keys.whole("decay_rank", ("gate_low_rank_dim",), limits.WIDTH, default=64 * twice)
    heads = frame.hidden_size // width
    return [Rwkv6(heads, width, frame.hidden_size, mix, decay, read_state_dtype(keys))] * frame.n_layers


def channel_mixing(ratio: float, *, receptance: bool) -> Blocks:
    """A reader of the block; where no width is given it is `hidden_ratio` (or `ratio`) times the hidden size."""

    def read(keys: Keys, frame: Frame) -> Sequence[tuple[FeedForward, ...]]:
        width = keys.maybe_whole("intermediate_size", ("intermediate_size",), limits.WIDTH)
        times = keys.number("hidden_ratio", "hidden_ratio", default=ratio, most=1_000) or ratio
        if width is None:
            width = 32 * max(1, -(-int(frame.hidden_size * times) // 32))
            keys.ledger.derive("intermediate_size", width, "hidden ratio × hidden size, rounded up to 32")
        return [(ChannelMix(width, receptance),)] * frame.n_layers

    return read


NORM_BIAS = Switch(("norm_bias",), default=True)
RWKV7 = Recipe(
    rwkv7_mixers, channel_mixing(4.0, receptance=False), norm_bias=NORM_BIAS, embedding_norms=1, passes=PASSES
)
RWKV6 = replace(RWKV7, mixers=rwkv6_mixers, blocks=channel_mixing(3.5, receptance=True))

FAMILIES = (Family("RWKV-6", ("rwkv6",), RWKV6), Family("RWKV-7", ("rwkv7",), RWKV7))
