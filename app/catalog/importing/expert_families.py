"""Decoders with grouped attention and experts, sizes under the usual keys."""

from collections.abc import Sequence

from app.calc.layers.grouped_attention import QkNorm
from app.calc.layers.parts import Mixer
from app.catalog.importing.dense_families import QWEN2_ATTENTION, QWEN3_ATTENTION, USE_BIAS, attention
from app.catalog.importing.family import Family
from app.catalog.importing.feed_forward import count_shared, experts, shared_width
from app.catalog.importing.frame import Frame, Switch
from app.catalog.importing.grouped import FULL_WIDTH, PER_HEAD, Norm, grouped
from app.catalog.importing.hunyuan import hunyuan_attention, hunyuan_blocks
from app.catalog.importing.keys import Keys
from app.catalog.importing.mtp import advertised, early_glm, first_layer, predicting
from app.catalog.importing.placement import after_dense, by_sparse_step, from_start_index
from app.catalog.importing.reach import by_letters, even_layers, everywhere, upper_layers
from app.catalog.importing.recipe import Recipe

PLAIN_WIDTH = ("intermediate_size",)
QWEN_SHARED = shared_width("shared_expert_intermediate_size")
GLM_ATTENTION = grouped(qkv_bias=Switch(("attention_bias",)), qk_norm=Norm(QkNorm.PER_HEAD, Switch(("use_qk_norm",))))
DEEPSEEK_BLOCKS = experts(shared=count_shared, placed=after_dense, correction_bias=True)
MINIMAX_M2_NORM = Norm(QkNorm.FULL_WIDTH, Switch(("use_qk_norm",), default=True))


def minimax_m2_attention(keys: Keys, frame: Frame) -> Sequence[Mixer | None]:
    """Full attention in every layer; the list of its kinds is left from MiniMax-01."""
    kinds = keys.wholes("layer_types", "attn_type_list", 1, frame.n_layers)
    if kinds is not None and not all(kinds):
        raise keys.refused("attn_type_list", "has layers without full attention, which this family is not known for.")
    keys.word("qk_norm_kind", ("qk_norm_type",), ("per_layer",))
    return attention(bias=False, qk_norm=MINIMAX_M2_NORM)(keys, frame)


FAMILIES = (
    Family("Mixtral", ("mixtral",), Recipe(attention(bias=False, windows=everywhere), experts(width=PLAIN_WIDTH))),
    Family(
        "Phi-3.5-MoE",
        ("phimoe",),
        Recipe(
            attention(windows=everywhere),
            experts(width=PLAIN_WIDTH),
            norm_bias=True,
            head_bias=Switch(("lm_head_bias",)),
        ),
    ),
    Family(
        "Qwen2 with experts",
        ("qwen2_moe",),
        Recipe(QWEN2_ATTENTION, experts(shared=QWEN_SHARED, shared_gate=True, placed=by_sparse_step)),
    ),
    Family(
        "Qwen3 with experts",
        ("qwen3_moe", "qwen3_vl_moe_text", "qwen3_omni_moe_text", "mellum"),
        Recipe(QWEN3_ATTENTION, experts(placed=by_sparse_step)),
    ),
    Family("OLMoE", ("olmoe", "flex_olmo"), Recipe(attention(qk_norm=FULL_WIDTH), experts(width=PLAIN_WIDTH))),
    Family(
        "Granite with experts",
        ("granitemoe", "granitemoeshared"),
        Recipe(attention(), experts(width=PLAIN_WIDTH, shared=shared_width("shared_intermediate_size"))),
    ),
    Family(
        "gpt-oss",
        ("gpt_oss",),
        Recipe(
            grouped(
                qkv_bias=Switch(("attention_bias",), default=True),
                output_bias=Switch(("attention_bias",), default=True),
                sinks=True,
                windows=even_layers,
            ),
            experts(width=PLAIN_WIDTH, router_bias=True, bias=True),
        ),
    ),
    Family(
        "DeepSeek-MoE",
        ("deepseek",),
        Recipe(attention(), experts(shared=count_shared, placed=after_dense)),
    ),
    Family("dots.llm1", ("dots1",), Recipe(attention(qk_norm=PER_HEAD, windows=upper_layers), DEEPSEEK_BLOCKS)),
    Family(
        "GLM-4.5 and 4.6",
        ("glm4_moe", "glm4v_moe_text"),
        Recipe(GLM_ATTENTION, DEEPSEEK_BLOCKS, mtp=predicting(duplicates=early_glm)),
    ),
    Family(
        "ERNIE 4.5 with experts",
        ("ernie4_5_moe",),
        Recipe(
            attention(USE_BIAS),
            experts(shared=count_shared, placed=from_start_index, correction_bias=True),
            tied=True,
            mtp=predicting(pick=first_layer, norms=2),
        ),
    ),
    Family("Hunyuan with experts", ("hunyuan_v1_moe", "hunyuan"), Recipe(hunyuan_attention, hunyuan_blocks)),
    Family(
        "MiniMax-M2",
        ("minimax_m2",),
        Recipe(
            minimax_m2_attention,
            experts(
                width=PLAIN_WIDTH,
                shared=shared_width("shared_intermediate_size"),
                correction_bias=Switch(("use_routing_bias",), default=True),
            ),
            mtp=advertised,
        ),
    ),
    Family(
        "Ling",
        ("bailing_moe",),
        Recipe(
            grouped(qkv_bias=Switch(("use_qkv_bias",)), output_bias=USE_BIAS),
            experts(shared=count_shared, placed=after_dense),
        ),
    ),
    Family("Solar Open", ("solar_open",), Recipe(attention(), DEEPSEEK_BLOCKS)),
    Family(
        "EXAONE with experts",
        ("exaone_moe",),
        Recipe(attention(bias=False, qk_norm=PER_HEAD, windows=by_letters), DEEPSEEK_BLOCKS),
    ),
    Family("Hy3", ("hy_v3",), Recipe(attention(qk_norm=PER_HEAD), DEEPSEEK_BLOCKS)),
)
