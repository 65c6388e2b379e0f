"""The matrices of a layer by the names that checkpoints give them, with their sizes and weight groups."""

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from itertools import product
from typing import Any

from app.calc.architecture import LayerGroup
from app.calc.layers.block_sparse_attention import BlockSparseAttention
from app.calc.layers.channel_mix import ChannelMix
from app.calc.layers.compressed_attention import CompressedAttention
from app.calc.layers.experts import Experts
from app.calc.layers.gated_delta_net import GatedDeltaNet
from app.calc.layers.grouped_attention import GroupedAttention, KvProjection, OutputGate
from app.calc.layers.indexer import Indexer
from app.calc.layers.kimi_delta_attention import KimiDeltaAttention
from app.calc.layers.latent_attention import LatentAttention
from app.calc.layers.lightning_attention import LightningAttention
from app.calc.layers.mamba import Mamba
from app.calc.layers.mamba2 import Mamba2
from app.calc.layers.parallel_mamba2 import ParallelMamba2
from app.calc.layers.parts import WeightGroup
from app.calc.layers.rg_lru import RgLru
from app.calc.layers.rwkv6 import Rwkv6
from app.calc.layers.rwkv7 import Rwkv7
from app.calc.layers.short_convolution import ShortConvolution
from app.calc.layers.sparse_latent_attention import SparseLatentAttention
from app.catalog.importing.quantization.part_names import (
    BESIDE_BOXES,
    BLOCK_BOXES,
    DOWN,
    EXPERT_BOXES,
    FUSED_QKV,
    GATE,
    KEY,
    OUTPUT,
    QUERY,
    UP,
    VALUE,
    Part,
    attention_part,
)
from app.catalog.importing.quantization.state_parts import (
    gated_delta_net_parts,
    kimi_delta_parts,
    lightning_parts,
    mamba2_parts,
    mamba_parts,
    rg_lru_parts,
    rwkv6_parts,
    rwkv7_parts,
    short_convolution_parts,
)


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
