"""The blocks after attention in each layer: one dense block, experts, or both."""

from collections.abc import Callable, Sequence

from app.calc.model.layers.dense import DenseFeedForward
from app.calc.model.layers.experts import Experts
from app.calc.model.layers.parts import FeedForward
from app.checkpoint import limits, spellings
from app.checkpoint.frame import Choice, Frame, Placement, chosen, every_layer
from app.checkpoint.keys import Keys

Blocks = Callable[[Keys, Frame], Sequence[tuple[FeedForward, ...]]]
"""Reads the blocks of each layer."""
Shared = Callable[[Keys, int], int | None]
"""Reads the width of all shared experts together, given that of a routed one."""


def read_dense(
    keys: Keys,
    frame: Frame,
    *,
    names: Sequence[str] = spellings.WIDTH,
    gated: bool = True,
    bias: Choice = False,
    times_hidden: int | None = None,
) -> DenseFeedForward:
    """A dense block; `times_hidden` gives its width where the key may be null or absent."""
    width = keys.maybe_whole("intermediate_size", names, limits.WIDTH)
    if width is None and times_hidden is not None:
        width = times_hidden * frame.hidden_size
        keys.ledger.derive("intermediate_size", width, f"{times_hidden} × hidden size")
    if width is None:
        raise keys.refused(names[0], "is missing.")
    return DenseFeedForward(width, gated=gated, bias=chosen(keys, bias))


def dense(*, gated: bool = True, bias: Choice = False, times_hidden: int | None = None) -> Blocks:
    """A reader of the same dense block in every layer."""

    def read(keys: Keys, frame: Frame) -> Sequence[tuple[FeedForward, ...]]:
        block = read_dense(keys, frame, gated=gated, bias=bias, times_hidden=times_hidden)
        return [(block,)] * frame.n_layers

    return read


def nothing_shared(keys: Keys, width: int) -> int | None:
    """No shared experts; a zero under their keys says so too."""
    for name in spellings.SHARED_EXPERTS:
        if keys.values.get(name) == 0:
            keys.passed_over(name)
    return None


def count_shared(keys: Keys, width: int) -> int | None:
    """`n_shared_experts` of the width of a routed one, which checkpoints hold as one block."""
    count = keys.maybe_whole("shared_experts", spellings.SHARED_EXPERTS, limits.EXPERTS, least=0)
    if not count:
        return None
    keys.ledger.derive("shared_size", count * width, "shared experts × expert width")
    return count * width


def shared_width(*names: str, default: int | None = None) -> Shared:
    """A width of its own; zero is none."""

    def read(keys: Keys, width: int) -> int | None:
        return keys.maybe_whole("shared_size", names, limits.WIDTH, default=default, least=0) or None

    return read


def read_experts(
    keys: Keys,
    *,
    width: Sequence[str] = spellings.EXPERT_WIDTH,
    counts: Sequence[str] = spellings.EXPERTS,
    per_token: Sequence[str] = spellings.PER_TOKEN,
    shared: Shared = nothing_shared,
    shared_gate: bool = False,
    gated: bool = True,
    correction_bias: Choice = False,
    router_bias: Choice = False,
    bias: bool = False,
    identity: int | None = None,
    latent: int | None = None,
) -> Experts:
    """The experts of one layer.

    Raises:
        ConfigError: a size is missing, or more are chosen than there are.
    """
    n_experts = keys.whole("n_experts", counts, limits.EXPERTS)
    chosen_count = keys.whole("experts_per_token", per_token, limits.EXPERTS)
    if chosen_count > n_experts + (identity or 0):
        key = next((name for name in per_token if keys.has(name)), per_token[0])
        raise keys.refused(key, f"{chosen_count:,} chosen experts are more than {n_experts:,} experts.")
    expert_width = keys.whole("expert_intermediate_size", width, limits.WIDTH)
    return Experts(
        n_experts,
        chosen_count,
        expert_width,
        gated=gated,
        shared_size=shared(keys, expert_width),
        shared_gate=shared_gate,
        identity_experts=identity,
        latent_size=latent,
        correction_bias=chosen(keys, correction_bias),
        router_bias=chosen(keys, router_bias),
        bias=bias,
    )


def experts(
    *,
    width: Sequence[str] = spellings.EXPERT_WIDTH,
    dense_width: Sequence[str] = spellings.WIDTH,
    shared: Shared = nothing_shared,
    shared_gate: bool = False,
    placed: Placement = every_layer,
    correction_bias: Choice = False,
    router_bias: Choice = False,
    bias: bool = False,
) -> Blocks:
    """A reader of experts where `placed` says so, and of a dense block in the other layers."""

    def read(keys: Keys, frame: Frame) -> Sequence[tuple[FeedForward, ...]]:
        routed = read_experts(
            keys,
            width=width,
            shared=shared,
            shared_gate=shared_gate,
            correction_bias=correction_bias,
            router_bias=router_bias,
            bias=bias,
        )
        places = placed(keys, frame)
        if all(places):
            keys.passed_over(*(name for name in dense_width if name not in width))
            return [(routed,)] * frame.n_layers
        plain = read_dense(keys, frame, names=dense_width)
        return [(routed,) if sparse else (plain,) for sparse in places]

    return read
