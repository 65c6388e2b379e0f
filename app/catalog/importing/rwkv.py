"""RWKV-6 and 7: time mixing in every layer, channel mixing after it, and a norm after the embedding."""

from collections.abc import Sequence
from dataclasses import replace

from app.calc.layers.channel_mix import ChannelMix
from app.calc.layers.parts import FeedForward, Mixer
from app.calc.layers.rwkv6 import Rwkv6
from app.calc.layers.rwkv7 import Rwkv7
from app.catalog.importing import limits
from app.catalog.importing.family import Family
from app.catalog.importing.feed_forward import Blocks
from app.catalog.importing.frame import Frame, Switch
from app.catalog.importing.keys import Keys
from app.catalog.importing.recipe import Recipe
from app.catalog.importing.recurrent import read_state_dtype

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
