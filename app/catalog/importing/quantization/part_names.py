"""The names that checkpoints give to the matrices of a layer.

Lists of what is quantized or not go by these names. A part may have many: families differ, and fused matrices are
named once for what is stored apart elsewhere.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import product

from app.calc.layers.parts import WeightGroup

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
