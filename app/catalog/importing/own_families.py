"""Decoders with experts whose sizes stand under keys of their own."""

from collections.abc import Sequence
from dataclasses import replace

from app.calc.architecture import LayerGroup, MultiTokenPrediction
from app.calc.layers.dense import DenseFeedForward
from app.calc.layers.grouped_attention import GroupedAttention
from app.calc.layers.parts import FeedForward
from app.catalog.importing import limits, spellings
from app.catalog.importing.dense_families import attention
from app.catalog.importing.family import Family
from app.catalog.importing.feed_forward import count_shared, experts, read_dense, read_experts, shared_width
from app.catalog.importing.frame import Frame, Switch
from app.catalog.importing.keys import Keys
from app.catalog.importing.mtp import advertised, joint_params, read_count
from app.catalog.importing.own_attention import (
    LLAMA4_ATTENTION,
    dbrx_attention,
    mimo_v2_attention,
    minimax_m3_attention,
    step3_attention,
    step35_attention,
)
from app.catalog.importing.placement import after_dense, by_enumeration, by_interleaving
from app.catalog.importing.recipe import Mtp, Recipe


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
