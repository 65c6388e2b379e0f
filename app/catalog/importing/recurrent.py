"""Layers that carry a state instead of a cache, read under the names that each family gives their sizes."""

import math

from app.calc.dtypes import Dtype
from app.calc.layers.gated_delta_net import GatedDeltaNet
from app.calc.layers.kimi_delta_attention import KimiDeltaAttention
from app.calc.layers.lightning_attention import LightningAttention
from app.calc.layers.mamba import Mamba
from app.calc.layers.mamba2 import Mamba2
from app.catalog.importing import limits, spellings
from app.catalog.importing.grouped import read_head_dim
from app.catalog.importing.keys import Keys

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
