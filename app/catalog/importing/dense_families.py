"""Decoders in the manner of Llama: grouped attention and one dense block a layer, sizes under the usual keys."""

from app.calc.architecture import SidePath
from app.calc.layers.grouped_attention import QkNorm
from app.catalog.importing.family import Family
from app.catalog.importing.feed_forward import dense
from app.catalog.importing.frame import Choice, Switch
from app.catalog.importing.grouped import FULL_WIDTH, NO_NORM, PER_HEAD, Mixers, Norm, grouped
from app.catalog.importing.hunyuan import dense_of_one
from app.catalog.importing.keys import Keys
from app.catalog.importing.mtp import predicting
from app.catalog.importing.reach import Rule, all_but_every, by_letters, even_layers, everywhere, nowhere, upper_layers
from app.catalog.importing.recipe import Recipe

PATTERN = ("sliding_window_pattern", "_sliding_window_pattern")
ATTENTION_BIAS = Switch(("attention_bias",))
MLP_BIAS = Switch(("mlp_bias",))
BIAS = Switch(("bias",))
USE_BIAS = Switch(("use_bias",))
QKV_BIAS = Switch(("use_qkv_bias",))


def attention(
    bias: Choice = ATTENTION_BIAS, *, qk_norm: Norm = NO_NORM, windows: Rule = nowhere, head_dim: int | None = None
) -> Mixers:
    """Attention whose projections all have a bias, or none."""
    return grouped(qkv_bias=bias, output_bias=bias, qk_norm=qk_norm, windows=windows, head_dim=head_dim)


def fewer_norms_if_parallel(keys: Keys) -> int:
    """One norm where attention and block read the same input side by side, else two."""
    return 1 if keys.flag("parallel_residual", ("use_parallel_residual",), default=False) else 2


LLAMA = Recipe(attention(), dense(bias=MLP_BIAS))
MISTRAL = Recipe(attention(bias=False, windows=everywhere), dense())
QWEN2_ATTENTION = grouped(qkv_bias=Switch(("attention_bias", "qkv_bias"), default=True), windows=upper_layers)
QWEN3_NORM = Norm(QkNorm.PER_HEAD, Switch(("use_qk_norm",), default=True))
QWEN3_ATTENTION = attention(qk_norm=QWEN3_NORM, windows=upper_layers)
GEMMA3 = attention(qk_norm=PER_HEAD, windows=all_but_every(6, *PATTERN), head_dim=256)
SEED_OSS = grouped(qkv_bias=Switch(("attention_bias",), default=True), output_bias=Switch(("attention_out_bias",)))
STABLELM = grouped(qkv_bias=QKV_BIAS, qk_norm=Norm(QkNorm.FULL_WIDTH, Switch(("qk_layernorm",))))
COHERE_NORM = Norm(QkNorm.FULL_WIDTH, Switch(("use_qk_norm",)))
XIELU = SidePath("xIELU slopes", 0, vectors=2)

FAMILIES = (
    Family("Llama", ("llama", "yi", "Yi", "xverse", "code_llama", "iquestcoder"), LLAMA),
    Family("Mistral", ("mistral", "ministral3"), MISTRAL),
    Family("Ministral", ("ministral",), MISTRAL),
    Family(
        "Qwen2",
        ("qwen2", "qwen2_vl", "qwen2_5_vl", "qwen2_vl_text", "qwen2_5_vl_text"),
        Recipe(QWEN2_ATTENTION, dense()),
    ),
    Family("MiMo", ("mimo",), Recipe(QWEN2_ATTENTION, dense(), mtp=predicting())),
    Family("Qwen3", ("qwen3", "qwen3_vl_text"), Recipe(QWEN3_ATTENTION, dense())),
    Family("Gemma", ("gemma",), Recipe(attention(head_dim=256), dense(), tied=True)),
    Family("VaultGemma", ("vaultgemma",), Recipe(attention(windows=even_layers, head_dim=256), dense(), tied=True)),
    Family("Gemma 2", ("gemma2",), Recipe(attention(windows=even_layers, head_dim=256), dense(), norms=4, tied=True)),
    Family("Gemma 3", ("gemma3_text",), Recipe(GEMMA3, dense(), norms=4, tied=True)),
    Family("Phi-3 and Phi-4", ("phi3",), MISTRAL),
    Family("Granite", ("granite",), LLAMA),
    Family("OLMo 2", ("olmo2",), Recipe(attention(qk_norm=FULL_WIDTH), dense())),
    Family("OLMo 3", ("olmo3",), Recipe(attention(qk_norm=FULL_WIDTH, windows=all_but_every(4)), dense())),
    Family("SmolLM3", ("smollm3",), Recipe(attention(windows=upper_layers), dense(bias=MLP_BIAS), tied=True)),
    Family("Seed-OSS", ("seed_oss",), Recipe(SEED_OSS, dense(bias=MLP_BIAS))),
    Family("InternLM", ("internlm",), Recipe(attention(Switch(("bias",), default=True)), dense())),
    Family("InternLM2", ("internlm2",), Recipe(attention(BIAS), dense())),
    Family(
        "InternLM3",
        ("internlm3",),
        Recipe(grouped(qkv_bias=Switch(("qkv_bias",)), output_bias=BIAS), dense(bias=BIAS)),
    ),
    Family("Baichuan", ("baichuan",), Recipe(attention(bias=False), dense())),
    Family("Orion", ("orion",), Recipe(attention(ATTENTION_BIAS), dense(), norm_bias=True)),
    Family("EXAONE 3", ("exaone",), Recipe(attention(bias=False), dense())),
    Family("EXAONE 4", ("exaone4",), Recipe(attention(bias=False, qk_norm=PER_HEAD, windows=by_letters), dense())),
    Family("GLM-4", ("glm",), Recipe(grouped(qkv_bias=Switch(("attention_bias",), default=True)), dense())),
    Family(
        "GLM-4 0414",
        ("glm4", "glm4v_text"),
        Recipe(grouped(qkv_bias=Switch(("attention_bias",), default=True)), dense(), norms=4),
    ),
    Family("Command", ("cohere",), Recipe(attention(qk_norm=COHERE_NORM), dense(), norms=1, tied=True)),
    Family(
        "Command R7B and A",
        ("cohere2",),
        Recipe(attention(windows=all_but_every(4, *PATTERN)), dense(), norms=1, tied=True),
    ),
    Family(
        "StarCoder2",
        ("starcoder2",),
        Recipe(
            attention(Switch(("use_bias",), default=True), windows=everywhere),
            dense(gated=False, bias=Switch(("use_bias",), default=True)),
            norm_bias=True,
            tied=True,
            passes=("mlp_type", "norm_type"),
        ),
    ),
    Family("StableLM", ("stablelm",), Recipe(STABLELM, dense(), norms=fewer_norms_if_parallel, norm_bias=True)),
    Family("Nemotron", ("nemotron",), Recipe(attention(), dense(gated=False, bias=MLP_BIAS), norm_bias=True)),
    Family(
        "Jais 2",
        ("jais2",),
        Recipe(
            attention(Switch(("attention_bias",), default=True)),
            dense(gated=False, bias=Switch(("mlp_bias",), default=True)),
            norm_bias=True,
        ),
    ),
    Family("Arcee", ("arcee",), Recipe(attention(), dense(gated=False, bias=MLP_BIAS))),
    Family(
        "Apertus",
        ("apertus",),
        Recipe(attention(qk_norm=PER_HEAD), dense(gated=False, bias=MLP_BIAS), layer_paths=(XIELU,)),
    ),
    Family("MiniCPM", ("minicpm",), Recipe(attention(), dense(), tied=True)),
    Family("Hunyuan, dense", ("hunyuan_v1_dense",), Recipe(attention(qk_norm=QWEN3_NORM), dense_of_one)),
    Family("ERNIE 4.5, dense", ("ernie4_5",), Recipe(attention(USE_BIAS), dense(bias=USE_BIAS), tied=True)),
    Family("Helium", ("helium",), Recipe(attention(), dense(bias=MLP_BIAS))),
)
