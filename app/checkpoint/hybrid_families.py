"""Decoders in which most layers carry a state and some attend: Qwen3-Next, Kimi Linear, MiniMax-01, Mamba hybrids."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from app.calc.model.architecture import LayerGroup, SidePath
from app.calc.model.layers.experts import Experts
from app.calc.model.layers.grouped_attention import GroupedAttention, OutputGate, QkNorm
from app.calc.model.layers.parts import FeedForward, Mixer
from app.checkpoint import limits
from app.checkpoint.attention import read_heads, read_latent
from app.checkpoint.feed_forward import Blocks, count_shared, dense, experts, read_dense, read_experts, shared_width
from app.checkpoint.frame import Frame, after_dense, by_period, by_sparse_step
from app.checkpoint.keys import Keys
from app.checkpoint.recipe import Body, Family, Recipe, predicting
from app.checkpoint.recurrent import read_gated_delta_net, read_kimi_delta, read_lightning, read_mamba, read_mamba2

RECURRENT_WORDS = ("linear_attention", "mamba", "mamba2", "lightning_attention")
FULL_WORDS = ("full_attention", "attention")


def listed_full(keys: Keys, frame: Frame, name: str = "layer_types") -> list[bool] | None:
    """For each layer of a list of words whether it attends."""
    words = keys.words("layer_types", name, (*RECURRENT_WORDS, *FULL_WORDS), frame.n_layers)
    return None if words is None else [word in FULL_WORDS for word in words]


def alternating(full: Sequence[bool], attention: Mixer, state: Mixer) -> list[Mixer | None]:
    """One of the two in each layer."""
    return [attention if attends else state for attends in full]


def plain_attention(keys: Keys, frame: Frame) -> GroupedAttention:
    """Grouped attention without anything else, biased where the key says so."""
    heads = read_heads(keys, frame.hidden_size)
    bias = keys.flag("attention_bias", ("attention_bias",), default=False)
    return GroupedAttention(heads.n_heads, heads.n_kv_heads, heads.head_dim, qkv_bias=bias, output_bias=bias)


def qwen_hybrid(keys: Keys, frame: Frame) -> Sequence[Mixer | None]:
    """Qwen3-Next and 3.5: gated delta-nets, and gated attention in every fourth layer."""
    heads = read_heads(keys, frame.hidden_size, head_dim=256)
    gated = keys.flag("output_gate", ("attn_output_gate",), default=True)
    bias = keys.flag("attention_bias", ("attention_bias",), default=False)
    attention = GroupedAttention(
        heads.n_heads,
        heads.n_kv_heads,
        heads.head_dim,
        qkv_bias=bias,
        output_bias=bias,
        qk_norm=QkNorm.PER_HEAD,
        output_gate=OutputGate.PER_ELEMENT if gated else OutputGate.NONE,
    )
    keys.passed_over("use_sliding_window", "sliding_window", "max_window_layers")
    every = keys.whole("full_attention_interval", ("full_attention_interval",), limits.LAYERS, default=4)
    full = listed_full(keys, frame) or [(i + 1) % every == 0 for i in range(frame.n_layers)]
    return alternating(full, attention, read_gated_delta_net(keys))


def kimi_hybrid(keys: Keys, frame: Frame) -> Sequence[Mixer | None]:
    """Kimi Linear and K3: delta attention, and MLA in the layers listed, which are counted from 1."""
    gated = keys.flag("output_gate", ("mla_use_output_gate",), default=False)
    keys.passed_over("mla_use_nope")
    attention = read_latent(keys, gated=gated)
    if keys.has("attn_res_block_size"):
        keys.passed_over("attn_res_block_size")
        keys.ledger.notice("The weights of attention residuals (attn_res_block_size) are few, and not counted.")
    inside = keys.inside("linear_attn_config")
    if inside is None:
        full = listed_full(keys, frame)
        if full is None:
            raise keys.refused("linear_attn_config", "is missing.")
        return alternating(full, attention, read_kimi_delta(keys))
    attending = inside.wholes("full_attention_layers", "full_attn_layers", limits.LAYERS, least=1)
    states = inside.wholes("delta_layers", "kda_layers", limits.LAYERS, least=1)
    if attending is None or states is None:
        raise inside.refused("kda_layers" if attending else "full_attn_layers", "is missing.")
    if sorted((*attending, *states)) != list(range(1, frame.n_layers + 1)):
        raise inside.refused("kda_layers", f"and full_attn_layers do not name each of {frame.n_layers:,} layers once.")
    full = [i + 1 in set(attending) for i in range(frame.n_layers)]
    return alternating(full, attention, read_kimi_delta(inside))


def kimi_blocks(keys: Keys, frame: Frame) -> Sequence[tuple[FeedForward, ...]]:
    """DeepSeek's placement; the experts of K3 work at a width of their own."""
    latent = keys.maybe_whole("expert_hidden_size", ("routed_expert_hidden_size",), limits.HIDDEN)
    routed = (read_experts(keys, shared=count_shared, correction_bias=True, latent=latent),)
    places = after_dense(keys, frame)
    plain = routed if all(places) else (read_dense(keys, frame),)
    return [routed if place else plain for place in places]


def kimi(keys: Keys) -> Body:
    """Kimi Linear and K3; the norm of the experts' latent space stands beside them."""
    body = Recipe(kimi_hybrid, kimi_blocks, mtp=predicting())(keys)
    if not keys.flag("latent_norm", ("latent_moe_use_norm",), default=False):
        return body
    return replace(body, layers=tuple(_with_latent_norm(group) for group in body.layers))


def _with_latent_norm(group: LayerGroup) -> LayerGroup:
    block = group.feed_forwards[0]
    if not isinstance(block, Experts) or block.latent_size is None:
        return group
    return replace(group, side_paths=(SidePath("norm of the latent experts", 0, vectors=block.latent_size),))


def minimax_hybrid(keys: Keys, frame: Frame) -> Sequence[Mixer | None]:
    """MiniMax-01 and M1: lightning attention where the list has 0, full attention where it has 1."""
    attention = plain_attention(keys, frame)
    full = listed_full(keys, frame)
    if full is None:
        listed = keys.wholes("layer_types", "attn_type_list", 1, frame.n_layers)
        if listed is None:
            raise keys.refused("attn_type_list", "is missing.")
        full = [bool(entry) for entry in listed]
    keys.passed_over("attn_type_list", "postnorm", "block_size")
    keys.passed_over(*(key for key in keys.values if key.startswith(("layernorm_", "linear_attn_", "full_attn_"))))
    return alternating(full, attention, read_lightning(keys, frame.hidden_size))


def jamba_hybrid(keys: Keys, frame: Frame) -> Sequence[Mixer | None]:
    """Jamba: attention in one layer of each period."""
    period = keys.whole("attention_period", ("attn_layer_period",), limits.LAYERS, default=8)
    offset = keys.whole("attention_offset", ("attn_layer_offset",), limits.LAYERS, default=4, least=0)
    listed = listed_full(keys, frame, "layers_block_type")
    full = listed or [i % period == offset for i in range(frame.n_layers)]
    keys.passed_over("sliding_window", "use_mamba_kernels")
    return alternating(full, plain_attention(keys, frame), read_mamba(keys, frame.hidden_size, inner_norms=True))


def jamba_blocks(keys: Keys, frame: Frame) -> Sequence[tuple[FeedForward, ...]]:
    """Experts in one layer of each period; a model with one expert has dense blocks only."""
    if keys.values.get("num_experts") == 1:
        keys.passed_over("num_experts", "num_experts_per_tok", "expert_layer_period", "expert_layer_offset")
        return dense()(keys, frame)
    return experts(width=("intermediate_size",), placed=by_period)(keys, frame)


def mamba2_hybrid(keys: Keys, frame: Frame) -> Sequence[Mixer | None]:
    """Granite 4 and Bamba: Mamba 2, and attention in a few layers."""
    full = listed_full(keys, frame) or listed_full(keys, frame, "layers_block_type")
    if full is None:
        indices = keys.wholes("attention_layers", "attn_layer_indices", limits.LAYERS)
        if indices is None:
            raise keys.refused("layer_types", "is missing.")
        if any(index >= frame.n_layers for index in indices):
            raise keys.refused("attn_layer_indices", f"names a layer that {frame.n_layers:,} layers do not have.")
        full = [i in set(indices) for i in range(frame.n_layers)]
    keys.passed_over("mamba_chunk_size", "position_embedding_type", "attn_rotary_emb")
    attention = plain_attention(keys, frame)
    if all(full):
        keys.passed_over(*(key for key in keys.values if key.startswith("mamba_")))
        return [attention] * frame.n_layers
    return alternating(full, attention, read_mamba2(keys, frame.hidden_size))


def granite_blocks(keys: Keys, frame: Frame) -> Sequence[tuple[FeedForward, ...]]:
    """Granite 4: experts with a shared one, or that one alone where there are none."""
    if keys.values.get("num_local_experts") in (0, None):
        keys.passed_over("num_local_experts", "num_experts_per_tok", "intermediate_size")
        return [(read_dense(keys, frame, names=("shared_intermediate_size",)),)] * frame.n_layers
    return experts(width=("intermediate_size",), shared=shared_width("shared_intermediate_size"))(keys, frame)


def pure(read: Callable[[Keys, Frame], Mixer]) -> Callable[[Keys, Frame], Sequence[Mixer | None]]:
    """The same recurrent layer everywhere."""
    return lambda keys, frame: [read(keys, frame)] * frame.n_layers


def no_blocks(_: Keys, frame: Frame) -> Sequence[tuple[FeedForward, ...]]:
    """Layers without a feed-forward block."""
    return [()] * frame.n_layers


QWEN_EXPERTS: Blocks = experts(
    shared=shared_width("shared_expert_intermediate_size"), shared_gate=True, placed=by_sparse_step
)
QWEN_NEXT = Recipe(
    qwen_hybrid,
    QWEN_EXPERTS,
    mtp=predicting(assumed=1, why="the published files carry one, which no key names"),
)
QWEN35_MTP = predicting()
MAMBA = Recipe(
    pure(lambda keys, frame: read_mamba(keys, frame.hidden_size, inner_norms=False)), no_blocks, norms=1, tied=True
)

FAMILIES = (
    Family("Qwen3-Next", ("qwen3_next",), QWEN_NEXT),
    Family(
        "Qwen3.5",
        ("qwen3_5_text",),
        Recipe(qwen_hybrid, dense(), mtp=QWEN35_MTP, passes=("mlp_only_layers",)),
    ),
    Family(
        "Qwen3.5 with experts",
        ("qwen3_5_moe_text",),
        replace(QWEN_NEXT, mtp=QWEN35_MTP, passes=("intermediate_size",)),
    ),
    Family("Kimi Linear and K3", ("kimi_linear",), kimi),
    Family(
        "MiniMax-01 and M1",
        ("minimax_m1", "minimax_text_01", "minimax"),
        Recipe(minimax_hybrid, experts(width=("intermediate_size",), shared=shared_width("shared_intermediate_size"))),
    ),
    Family("Jamba", ("jamba",), Recipe(jamba_hybrid, jamba_blocks)),
    Family("Bamba", ("bamba",), Recipe(mamba2_hybrid, dense())),
    Family("Granite 4", ("granitemoehybrid",), Recipe(mamba2_hybrid, granite_blocks)),
    Family("Mamba", ("mamba", "falcon_mamba"), MAMBA),
)
