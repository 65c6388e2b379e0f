"""Grouped attention of each layer, with the biases, norms, gates and sinks that a family has."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from app.calc.layers.grouped_attention import GroupedAttention, OutputGate, QkNorm
from app.calc.layers.parts import Mixer
from app.catalog.importing import limits, spellings
from app.catalog.importing.frame import Choice, Frame, Switch, chosen
from app.catalog.importing.keys import Keys
from app.catalog.importing.reach import Reach, Rule, nowhere, read_reaches

Mixers = Callable[[Keys, Frame], Sequence[Mixer | None]]
"""Reads what lets tokens see each other, one entry a layer."""

ATTENTION_BIAS = Switch(("attention_bias", "qkv_bias"))


@dataclass(frozen=True, slots=True)
class Heads:
    """Sizes of the heads."""

    n_heads: int
    n_kv_heads: int
    head_dim: int


def read_heads(keys: Keys, hidden_size: int, *, head_dim: int | None = None, kv_heads: int | None = None) -> Heads:
    """Heads as the keys give them: every head its own keys and values, and hidden ÷ heads wide, unless they say more.

    Raises:
        ConfigError: KV heads that do not divide the heads, or a head width that is missing and does not come out whole.
    """
    heads = keys.whole("n_heads", spellings.HEADS, limits.HEADS)
    if kv_heads is None:
        kv_heads = keys.maybe_whole("n_kv_heads", spellings.KV_HEADS, limits.HEADS)
    if kv_heads is None:
        kv_heads = heads
        keys.ledger.derive("n_kv_heads", kv_heads, "no key says that heads share keys and values")
    check_divides(keys, heads, kv_heads, spellings.KV_HEADS)
    return Heads(heads, kv_heads, read_head_dim(keys, hidden_size, heads, head_dim))


def check_divides(keys: Keys, heads: int, kv_heads: int, names: Sequence[str]) -> None:
    """Raise if the KV heads cannot be shared out evenly."""
    if heads % kv_heads:
        key = next((name for name in names if keys.has(name)), names[0])
        raise keys.refused(key, f"{kv_heads:,} KV heads do not divide {heads:,} heads.")


def read_head_dim(keys: Keys, hidden_size: int, heads: int, default: int | None = None) -> int:
    """The head width: its own key, else the class's default, else hidden ÷ heads."""
    known = keys.maybe_whole("head_dim", spellings.HEAD_DIM, limits.HEAD_WIDTH, default=default)
    if known is not None:
        return known
    if hidden_size % heads:
        raise keys.refused("head_dim", f"is missing, and {hidden_size:,} does not divide among {heads:,} heads.")
    keys.ledger.derive("head_dim", hidden_size // heads, "hidden size ÷ heads")
    return hidden_size // heads


@dataclass(frozen=True, slots=True)
class Norm:
    """Which norm queries and keys get where `choice` says so."""

    kind: QkNorm
    choice: Choice = True

    def read(self, keys: Keys) -> QkNorm:
        """The norm, or none."""
        return self.kind if chosen(keys, self.choice) else QkNorm.NONE


NO_NORM = Norm(QkNorm.NONE)
PER_HEAD = Norm(QkNorm.PER_HEAD)
FULL_WIDTH = Norm(QkNorm.FULL_WIDTH)


def grouped(
    *,
    qkv_bias: Choice = False,
    output_bias: Choice = False,
    qk_norm: Norm = NO_NORM,
    gate: OutputGate = OutputGate.NONE,
    sinks: bool = False,
    windows: Rule = nowhere,
    chunked: bool = False,
    head_dim: int | None = None,
    kv_heads: int | None = None,
) -> Mixers:
    """A reader of grouped attention in every layer."""

    def read(keys: Keys, frame: Frame) -> Sequence[Mixer | None]:
        heads = read_heads(keys, frame.hidden_size, head_dim=head_dim, kv_heads=kv_heads)
        everywhere = GroupedAttention(
            heads.n_heads,
            heads.n_kv_heads,
            heads.head_dim,
            qkv_bias=chosen(keys, qkv_bias),
            output_bias=chosen(keys, output_bias),
            qk_norm=qk_norm.read(keys),
            output_gate=gate,
            sinks=sinks,
        )
        reaches = read_reaches(keys, frame, windows, chunked=chunked)
        return reaching(everywhere, reaches)

    return read


def reaching(attention: GroupedAttention, reaches: Sequence[Reach]) -> list[Mixer | None]:
    """The attention, confined in each layer to what that layer sees."""
    kinds = {reach: replace(attention, window=reach.window, chunk=reach.chunk) for reach in set(reaches)}
    return [kinds[reach] for reach in reaches]
