"""Dense families, and Hunyuan's layers that dense and expert models share."""

from collections.abc import Sequence
from dataclasses import replace

from app.calc.model.architecture import SidePath
from app.calc.model.layers.grouped_attention import GroupedAttention, KvProjection, QkNorm
from app.calc.model.layers.parts import FeedForward, Mixer
from app.checkpoint import limits, spellings
from app.checkpoint.attention import (
    FULL_WIDTH,
    NO_NORM,
    PER_HEAD,
    Mixers,
    Norm,
    Rule,
    all_but_every,
    by_letters,
    even_layers,
    everywhere,
    grouped,
    nowhere,
    read_heads,
    upper_layers,
)
from app.checkpoint.feed_forward import count_shared, dense, read_experts
from app.checkpoint.frame import Choice, Frame, Switch
from app.checkpoint.keys import Keys
from app.checkpoint.recipe import Family, Recipe, predicting

LISTED = ("moe_topk", "num_shared_expert", "moe_intermediate_size", "num_experts", "intermediate_size")


def hunyuan_attention(keys: Keys, frame: Frame) -> Sequence[Mixer | None]:
    """Grouped attention; where layers share, the first of each round projects and keeps what the others read."""
    heads = read_heads(keys, frame.hidden_size)
    for key in ("use_mla", "attention_bias", "mlp_bias"):
        if keys.flag(key, (key,), default=False):
            raise keys.refused(key, "is not computed for this family.")
    norm = QkNorm.PER_HEAD if keys.flag("qk_norm", ("use_qk_norm",), default=True) else QkNorm.NONE
    owner = GroupedAttention(heads.n_heads, heads.n_kv_heads, heads.head_dim, qk_norm=norm)
    shares = keys.flag("shares_cache", ("use_cla",), default=False)
    keys.passed_over("cla_share_factor")
    if not shares:
        return [owner] * frame.n_layers
    factor = keys.whole("cache_share_factor", ("cla_share_factor",), limits.LAYERS, default=2)
    reader = replace(owner, kv_projection=KvProjection.NONE, shares_cache=True)
    return [owner if i % factor == 0 else reader for i in range(frame.n_layers)]


ONE_EXPERT = ("moe_intermediate_size", "moe_topk", "num_experts_per_tok", "num_shared_expert", "use_mixed_mlp_moe")
"""Keys beside a single expert, which its class does not act on."""


def dense_of_one(keys: Keys, frame: Frame) -> Sequence[tuple[FeedForward, ...]]:
    """Dense blocks, which the files of this family call one expert."""
    if type(keys.values.get("num_experts")) is int and keys.values["num_experts"] <= 1:
        keys.passed_over("num_experts", "moe_layer_num_skipped", *ONE_EXPERT)
    return dense(bias=Switch(("mlp_bias",)))(keys, frame)


def hunyuan_blocks(keys: Keys, frame: Frame) -> Sequence[tuple[FeedForward, ...]]:
    """Experts in every layer, with shared ones of the same width beside them; a single one is a dense block."""
    plain = _uniform(keys, frame.n_layers)
    if plain.values.get("num_experts") == 1:
        return dense_of_one(plain, frame)
    width = ("moe_intermediate_size",) if keys.has("moe_intermediate_size") else ("intermediate_size",)
    keys.passed_over("intermediate_size")
    if keys.whole("dense_layers", ("moe_layer_num_skipped",), limits.LAYERS, default=0, least=0):
        raise keys.refused("moe_layer_num_skipped", "dense layers of this family are not computed.")
    shared = count_shared if keys.flag("has_shared", ("use_mixed_mlp_moe",), default=True) else lambda *_: None
    if shared is not count_shared:
        keys.passed_over(*spellings.SHARED_EXPERTS)
    return [(read_experts(plain, width=width, shared=shared),)] * frame.n_layers


def _uniform(keys: Keys, n_layers: int) -> Keys:
    """The same keys with each list of one value a layer as that value.

    Raises:
        ConfigError: layers of different sizes, which the published models do not have.
    """
    values = dict(keys.values)
    for key in LISTED:
        listed = values.get(key)
        if not isinstance(listed, list):
            continue
        if len(listed) != n_layers:
            raise keys.refused(key, f"has {len(listed):,} entries for {n_layers:,} layers.")
        if any(type(entry) is not int or entry != listed[0] for entry in listed):
            raise keys.refused(key, "must have the same whole number for every layer.")
        values[key] = listed[0]
    return replace(keys, values=values)


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
