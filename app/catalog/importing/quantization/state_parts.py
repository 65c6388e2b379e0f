"""The named matrices of the layers that carry a state."""

from app.calc.layers.gated_delta_net import GatedDeltaNet
from app.calc.layers.kimi_delta_attention import KimiDeltaAttention
from app.calc.layers.lightning_attention import LightningAttention
from app.calc.layers.mamba import Mamba
from app.calc.layers.mamba2 import Mamba2
from app.catalog.importing.quantization.part_names import (
    FUSED_QKV,
    KEY,
    LINEAR_BOXES,
    OUTPUT,
    QUERY,
    STATE_BOXES,
    VALUE,
    Part,
    attention_part,
)


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
