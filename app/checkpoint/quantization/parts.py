"""The named matrices of each kind of layer."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from typing import Any

from app.calc.model.architecture import LayerGroup
from app.calc.model.layers.compressed_attention import CompressedAttention
from app.calc.model.layers.dense import ChannelMix
from app.calc.model.layers.experts import Experts
from app.calc.model.layers.grouped_attention import GroupedAttention, KvProjection, OutputGate
from app.calc.model.layers.latent_attention import LatentAttention, SparseLatentAttention
from app.calc.model.layers.mamba import Mamba, Mamba2, ParallelMamba2
from app.calc.model.layers.parts import WeightGroup
from app.calc.model.layers.recurrent import GatedDeltaNet, KimiDeltaAttention, LightningAttention
from app.calc.model.layers.rg_lru import RgLru
from app.calc.model.layers.rwkv import Rwkv6, Rwkv7
from app.calc.model.layers.short_convolution import ShortConvolution
from app.calc.model.layers.sparse_attention import BlockSparseAttention, Indexer

ATTENTION_BOXES = ("self_attn", "attn", "attention", "mixer", "self_attention", "temporal_block")
LINEAR_BOXES = ("linear_attn",)
STATE_BOXES = ("mixer", "mamba")
RG_LRU_BOXES = ("temporal_block",)
CONVOLUTION_BOXES = ("conv", "short_conv")
BLOCK_BOXES = ("mlp", "feed_forward", "ffn", "mlp_block")
EXPERT_BOXES = ("mlp", "block_sparse_moe", "ffn", "feed_forward", "moe")
BESIDE_BOXES = ("block_sparse_moe", "")
"""Boxes of experts that have a dense block beside them: Gemma 4 has its experts directly in the layer."""
FUSED_QKV = ("qkv_proj", "query_key_value", "c_attn", "Wqkv", "W_pack", "qkv", "wqkv")
QUERY, KEY, VALUE, OUTPUT = (
    ("q_proj", "wq", "query"),
    ("k_proj", "wk", "key"),
    ("v_proj", "wv", "value"),
    ("o_proj", "wo", "out_proj", "c_proj", "dense"),
)
GATE, UP, DOWN = (
    ("gate_proj", "w1", "gate_up_proj"),
    ("up_proj", "w3", "gate_up_proj", "fc1", "c_fc", "fc_in", "dense_h_to_4h"),
    ("down_proj", "w2", "fc2", "c_proj", "fc_out", "dense_4h_to_h"),
)


@dataclass(frozen=True, slots=True)
class Part:
    """`params` elements of one layer, named in the manner of `self_attn.q_proj`.

    `stays_wide`: files keep it in 16 bits unless they say otherwise, because it is small and delicate.
    """

    names: tuple[str, ...]
    group: WeightGroup
    params: int
    stays_wide: bool = False


def attention_part(
    names: Iterable[str], params: int, *, stays_wide: bool = False, boxes: Sequence[str] = ATTENTION_BOXES
) -> Part:
    """A matrix of a mixer, under all its names in all its boxes."""
    named = tuple(f"{box}.{name}" for box, name in product(boxes, names))
    return Part(named, WeightGroup.ATTENTION, params, stays_wide)


def gated_delta_net_parts(mixer: GatedDeltaNet, hidden: int) -> list[Part]:
    """In projections of the delta-net, and its output."""
    keys, values = mixer.key_heads * mixer.key_dim, mixer.value_heads * mixer.value_dim
    return [
        attention_part(("in_proj_qkv", "in_proj_qkvz"), hidden * (2 * keys + values), boxes=LINEAR_BOXES),
        attention_part(("in_proj_z", "in_proj_qkvz"), hidden * values, boxes=LINEAR_BOXES),
        attention_part(("in_proj_b", "in_proj_ba"), hidden * mixer.value_heads, boxes=LINEAR_BOXES),
        attention_part(("in_proj_a", "in_proj_ba"), hidden * mixer.value_heads, boxes=LINEAR_BOXES),
        attention_part(OUTPUT, values * hidden, boxes=LINEAR_BOXES),
    ]


def kimi_delta_parts(mixer: KimiDeltaAttention, hidden: int) -> list[Part]:
    """Queries, keys, values, low-rank decay and gate, and the output."""
    width, rank = mixer.heads * mixer.head_dim, mixer.low_rank
    gate = (
        [attention_part(("g_proj",), hidden * width)]
        if mixer.full_rank_gate
        else [attention_part(("g_a_proj",), hidden * rank), attention_part(("g_b_proj",), rank * width)]
    )
    return [
        *(attention_part(names, hidden * width) for names in (QUERY, KEY, VALUE)),
        attention_part(("f_a_proj",), hidden * rank),
        attention_part(("f_b_proj",), rank * width),
        *gate,
        attention_part(("b_proj",), hidden * mixer.heads),
        attention_part(OUTPUT, width * hidden),
    ]


def lightning_parts(mixer: LightningAttention, hidden: int) -> list[Part]:
    """One fused projection in, a gate, and the output."""
    width = mixer.heads * mixer.head_dim
    return [
        attention_part(FUSED_QKV, 3 * hidden * width),
        attention_part(("output_gate",), hidden * width),
        attention_part(OUTPUT, width * hidden),
    ]


def mamba_parts(mixer: Mamba, hidden: int) -> list[Part]:
    """In, between and out."""
    return [
        attention_part(("in_proj",), 2 * hidden * mixer.inner, boxes=STATE_BOXES),
        attention_part(("x_proj",), mixer.inner * (mixer.dt_rank + 2 * mixer.state_size), boxes=STATE_BOXES),
        attention_part(("dt_proj",), mixer.dt_rank * mixer.inner, boxes=STATE_BOXES),
        attention_part(OUTPUT, mixer.inner * hidden, boxes=STATE_BOXES),
    ]


def mamba2_parts(mixer: Mamba2, hidden: int) -> list[Part]:
    """In and out."""
    convolved = mixer.inner + 2 * mixer.groups * mixer.state_size
    return [
        attention_part(("in_proj",), hidden * (mixer.inner + convolved + mixer.heads), boxes=STATE_BOXES),
        attention_part(OUTPUT, mixer.inner * hidden, boxes=STATE_BOXES),
    ]


def rg_lru_parts(mixer: RgLru, hidden: int) -> list[Part]:
    """Two in and one out; the gates are no matrices that a quantization names."""
    return [
        *(attention_part((name,), hidden * mixer.inner, boxes=RG_LRU_BOXES) for name in ("linear_x", "linear_y")),
        attention_part(("linear_out",), mixer.inner * hidden, boxes=RG_LRU_BOXES),
    ]


def rwkv6_parts(mixer: Rwkv6, hidden: int) -> list[Part]:
    """Receptance, keys, values and gate, what makes the mixtures and the decay, and the output."""
    width, mixed = mixer.heads * mixer.head_dim, 5 * mixer.mix_rank
    large = (("r_proj", "receptance"), ("k_proj", "key"), ("v_proj", "value"), ("g_proj", "gate"))
    return [
        *(attention_part(names, hidden * width) for names in large),
        *(attention_part((name,), hidden * mixed, stays_wide=True) for name in ("x_proj.0", "x_proj.2")),
        attention_part(("w_proj.linear.lora.0",), hidden * mixer.decay_rank, stays_wide=True),
        attention_part(("w_proj.linear.lora.2",), mixer.decay_rank * width, stays_wide=True),
        attention_part((*OUTPUT, "output"), width * hidden),
    ]


def rwkv7_parts(mixer: Rwkv7, hidden: int) -> list[Part]:
    """Receptance, keys and values, the thin pairs, and the output."""
    width = mixer.heads * mixer.head_dim
    ranks = {"w": mixer.decay_rank, "a": mixer.rate_rank, "g": mixer.gate_rank, "v": mixer.value_rank or 0}
    thin = [
        attention_part((f"{letter}_lora.lora.{place}", f"{letter}_lora"), rows * rank)
        for letter, rank in ranks.items()
        for place, rows in ((0, hidden), (2, width))
    ]
    return [
        *(attention_part((name,), hidden * width) for name in ("r_proj", "k_proj", "v_proj")),
        *thin,
        attention_part(OUTPUT, width * hidden),
    ]


def short_convolution_parts(mixer: ShortConvolution, hidden: int) -> list[Part]:
    """In and out."""
    return [
        attention_part(("in_proj",), 3 * hidden * mixer.inner, boxes=CONVOLUTION_BOXES),
        attention_part(OUTPUT, mixer.inner * hidden, boxes=CONVOLUTION_BOXES),
    ]


@lru_cache(maxsize=1024)
def parts_of(layer: LayerGroup, hidden_size: int) -> tuple[Part, ...]:
    """Every matrix of one layer of the group but those of side paths."""
    found: list[Part] = []
    if layer.mixer is not None:
        found += _MIXERS[type(layer.mixer)](layer.mixer, hidden_size)
    beside = len(layer.feed_forwards) > 1
    for block in layer.feed_forwards:
        if isinstance(block, Experts):
            found += _experts(block, hidden_size, BESIDE_BOXES if beside else EXPERT_BOXES)
        elif isinstance(block, ChannelMix):
            found += _channel_mix(block, hidden_size)
        else:
            found += _dense(block, hidden_size)
    return tuple(part for part in found if part.params)


def _grouped(mixer: GroupedAttention, hidden: int) -> list[Part]:
    query = hidden * mixer.query_width
    parts = []
    if mixer.query_rank is not None:
        parts.append(attention_part(("q_a_proj", *QUERY), hidden * mixer.query_rank))
        query = mixer.query_rank * mixer.query_width
    if mixer.output_gate is OutputGate.PER_ELEMENT:
        query += hidden * mixer.query_width
    if mixer.output_gate is OutputGate.PER_HEAD:
        parts.append(attention_part(("g_proj",), hidden * mixer.n_heads))
    parts.append(attention_part((*QUERY, *FUSED_QKV), query))
    if mixer.kv_projection is not KvProjection.NONE:
        parts.append(attention_part((*KEY, *FUSED_QKV), hidden * mixer.key_width))
    if mixer.kv_projection is KvProjection.BOTH:
        parts.append(attention_part((*VALUE, *FUSED_QKV), hidden * mixer.value_width))
    return [*parts, attention_part(OUTPUT, mixer.output_width * hidden)]


def _latent(mixer: LatentAttention, hidden: int) -> list[Part]:
    per_head = mixer.nope_dim + mixer.rope_dim
    if mixer.q_rank is None:
        parts = [attention_part(QUERY, hidden * mixer.n_heads * per_head)]
    else:
        parts = [
            attention_part(("q_a_proj", "wq_a", "fused_qkv_a_proj"), hidden * mixer.q_rank),
            attention_part(("q_b_proj", "wq_b"), mixer.q_rank * mixer.n_heads * per_head),
        ]
    if mixer.gated:
        parts.append(attention_part(("g_proj",), hidden * mixer.n_heads * mixer.v_dim))
    return [
        *parts,
        attention_part(("kv_a_proj_with_mqa", "wkv_a", "fused_qkv_a_proj"), hidden * mixer.row_width),
        attention_part(("kv_b_proj", "wkv_b"), mixer.kv_rank * mixer.n_heads * (mixer.nope_dim + mixer.v_dim)),
        attention_part(OUTPUT, mixer.n_heads * mixer.v_dim * hidden),
    ]


def _indexer(indexer: Indexer, hidden: int, query_input: int) -> list[Part]:
    parts = [
        attention_part(("indexer.wq_b", "indexer.q_proj", "index_q_proj"), query_input * indexer.heads * indexer.dim),
        attention_part(("indexer.wk", "indexer.k_proj", "index_k_proj"), hidden * indexer.dim),
    ]
    if indexer.weighs_heads:
        names = ("indexer.weights_proj", "indexers_proj")
        parts.append(attention_part(names, hidden * indexer.heads, stays_wide=True))
    return parts


def _sparse_latent(mixer: SparseLatentAttention, hidden: int) -> list[Part]:
    parts = _latent(mixer.latent, hidden)
    return parts + _indexer(mixer.indexer, hidden, mixer.latent.q_rank or hidden) if mixer.indexer else parts


def _block_sparse(mixer: BlockSparseAttention, hidden: int) -> list[Part]:
    return _grouped(mixer.attention, hidden) + _indexer(mixer.indexer, hidden, hidden)


def _parallel_mamba2(mixer: ParallelMamba2, hidden: int) -> list[Part]:
    return _grouped(mixer.attention, hidden) + mamba2_parts(mixer.mamba, hidden)


def _compressed(mixer: CompressedAttention, hidden: int) -> list[Part]:
    width = mixer.n_heads * mixer.head_dim
    parts = [
        attention_part(("wq_a", "q_a_proj"), hidden * mixer.q_rank),
        attention_part(("wq_b", "q_b_proj"), mixer.q_rank * width),
        attention_part(("wkv", "kv_proj"), hidden * mixer.head_dim),
        attention_part(("wo_a", "o_a_proj"), width * mixer.o_rank),
        attention_part(("wo_b", "o_b_proj"), mixer.o_groups * mixer.o_rank * hidden),
    ]
    if mixer.compression is not None:
        wide = 2 * hidden * mixer.overlap * mixer.head_dim
        parts.append(attention_part(("compressor.wkv", "compressor.wgate", "compressor"), wide, stays_wide=True))
    if mixer.top is not None:
        inner = 2 * hidden * mixer.overlap * mixer.index_dim
        parts += [
            attention_part(("indexer.wq_b", "indexer.q_b_proj"), mixer.q_rank * mixer.index_heads * mixer.index_dim),
            attention_part(("indexer.weights_proj",), hidden * mixer.index_heads, stays_wide=True),
            attention_part(("indexer.compressor",), inner, stays_wide=True),
        ]
    return parts


def _block(
    names: Iterable[str], group: WeightGroup, params: int, boxes: Sequence[str], *, stays_wide: bool = False
) -> Part:
    named = tuple(f"{box}.{name}".lstrip(".") for box, name in product(boxes, names))
    return Part(named, group, params, stays_wide)


def _dense(block: Any, hidden: int) -> list[Part]:
    group, size = WeightGroup.FEED_FORWARD, hidden * block.intermediate_size
    boxes = BLOCK_BOXES if block.gated else (*BLOCK_BOXES, "mixer")
    return [_block(names, group, size, boxes) for names in _matrices(gated=block.gated)]


def _channel_mix(block: ChannelMix, hidden: int) -> list[Part]:
    group, size = WeightGroup.FEED_FORWARD, hidden * block.intermediate_size
    parts = [_block((name,), group, size, BLOCK_BOXES) for name in ("key", "value")]
    return [*parts, _block(("receptance",), group, hidden * hidden if block.receptance else 0, BLOCK_BOXES)]


def _matrices(*, gated: bool) -> tuple[tuple[str, ...], ...]:
    return (GATE, UP, DOWN) if gated else (UP, DOWN)


def _experts(block: Experts, hidden: int, boxes: Sequence[str]) -> list[Part]:
    boxes = boxes if block.gated else (*boxes, "mixer")
    width, routed = block.latent_size or hidden, WeightGroup.ROUTED_EXPERTS
    size = block.n_experts * width * block.intermediate_size
    parts = []
    for names in _matrices(gated=block.gated):
        both = [f"experts.{inner}{name}" for inner, name in product(("0.", ""), names)]
        parts.append(_block(both, routed, size, boxes))
    choices = block.n_experts + (block.identity_experts or 0)
    names = ("gate", "router", "gate.wg", "router.classifier", "router.proj")
    parts.append(_block(names, WeightGroup.ROUTER, hidden * choices, boxes, stays_wide=True))
    shared = WeightGroup.SHARED_EXPERTS
    if block.latent_size is not None:
        names = ("fc1_latent_proj", "fc2_latent_proj", "latent_proj")
        parts.append(_block(names, shared, 2 * hidden * block.latent_size, boxes, stays_wide=True))
    for names in _matrices(gated=block.gated):
        both = [f"{box}.{name}" for box, name in product(("shared_experts", "shared_expert", "shared_mlp"), names)]
        parts.append(_block(both, shared, hidden * (block.shared_size or 0), boxes))
    return parts


_MIXERS: dict[type, Callable[[Any, int], list[Part]]] = {
    GroupedAttention: _grouped,
    LatentAttention: _latent,
    SparseLatentAttention: _sparse_latent,
    BlockSparseAttention: _block_sparse,
    CompressedAttention: _compressed,
    GatedDeltaNet: gated_delta_net_parts,
    KimiDeltaAttention: kimi_delta_parts,
    LightningAttention: lightning_parts,
    Mamba: mamba_parts,
    Mamba2: mamba2_parts,
    ParallelMamba2: _parallel_mamba2,
    RgLru: rg_lru_parts,
    Rwkv6: rwkv6_parts,
    Rwkv7: rwkv7_parts,
    ShortConvolution: short_convolution_parts,
}
