"""The named matrices of the layers that carry a state."""

from app.calc.layers.gated_delta_net import GatedDeltaNet
from app.calc.layers.kimi_delta_attention import KimiDeltaAttention
from app.calc.layers.lightning_attention import LightningAttention
from app.calc.layers.mamba import Mamba
from app.calc.layers.mamba2 import Mamba2
from app.calc.layers.rg_lru import RgLru
from app.calc.layers.rwkv6 import Rwkv6
from app.calc.layers.rwkv7 import Rwkv7
from app.calc.layers.short_convolution import ShortConvolution
from app.catalog.importing.quantization.part_names import (
    CONVOLUTION_BOXES,
    FUSED_QKV,
    KEY,
    LINEAR_BOXES,
    OUTPUT,
    QUERY,
    RG_LRU_BOXES,
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
