"""Decoders of before 2024: learned positions or parallel blocks, biases everywhere, sizes under names of their own."""

from collections.abc import Sequence
from dataclasses import replace

from app.calc.model.layers.dense import DenseFeedForward
from app.calc.model.layers.grouped_attention import GroupedAttention
from app.calc.model.layers.parts import FeedForward, Mixer
from app.checkpoint import limits, spellings
from app.checkpoint.attention import check_divides, grouped, read_head_dim
from app.checkpoint.feed_forward import Blocks, dense, read_dense
from app.checkpoint.frame import Frame, Switch
from app.checkpoint.keys import Keys
from app.checkpoint.recipe import Family, Positions, Recipe

BIAS_UNLESS_SAID = Switch(("attention_bias",), default=True)
OPT_BIAS = Switch(("enable_bias",), default=True)


def learned(extra: int = 0) -> Positions:
    """A table of as many rows as the context has positions, and `extra` beside them."""

    def read(keys: Keys, frame: Frame) -> int:
        if frame.max_position is None:
            raise keys.refused(spellings.CONTEXT[0], "is missing, and the model has a table of positions.")
        keys.ledger.derive("learned_positions", frame.max_position + extra, "one row a position of the context")
        return frame.max_position + extra

    return read


def plain_block(*, bias: bool = True) -> Blocks:
    """Two matrices with 4 × hidden between them unless a key says how many."""
    return dense(gated=False, bias=bias, times_hidden=4)


def multi_query(keys: Keys, frame: Frame) -> Sequence[Mixer | None]:
    """One KV head for all (StarCoder), unless `multi_query` is switched off."""
    one = keys.flag("multi_query", ("multi_query",), default=True)
    return grouped(qkv_bias=True, output_bias=True, kv_heads=1 if one else None)(keys, frame)


def falcon_attention(keys: Keys, frame: Frame) -> Sequence[Mixer | None]:
    """Falcon: KV heads under `num_kv_heads` in the newer shape, else one for all or one for each."""
    bias = Switch(("bias",))
    heads = keys.whole("n_heads", spellings.HEADS, limits.HEADS)
    kv_heads = heads
    if keys.flag("new_decoder_architecture", ("new_decoder_architecture",), default=False):
        keys.passed_over("multi_query")
        kv_heads = keys.whole("n_kv_heads", ("num_kv_heads", "n_head_kv"), limits.HEADS, default=heads)
        check_divides(keys, heads, kv_heads, ("num_kv_heads", "n_head_kv"))
    elif keys.flag("multi_query", ("multi_query",), default=True):
        keys.passed_over("num_kv_heads", "n_head_kv")
        kv_heads = 1
    return grouped(qkv_bias=bias, output_bias=bias, kv_heads=kv_heads)(keys, frame)


def falcon_norms(keys: Keys) -> int:
    """Two norms in the newer shape and where attention and block follow each other, one where they are parallel."""
    new = keys.flag("new_decoder_architecture", ("new_decoder_architecture",), default=False)
    parallel = keys.flag("parallel_attention", ("parallel_attn",), default=True)
    keys.passed_over("alibi")
    given = keys.maybe_whole("parallel_norms", ("num_ln_in_parallel_attn",), 2)
    if not parallel:
        return 2
    return given or (2 if new else 1)


def mpt_attention(keys: Keys, frame: Frame) -> Sequence[Mixer | None]:
    """MPT: multi-head, or grouped by `attn_config.kv_n_heads`."""
    inside = keys.inside("attn_config")
    heads = keys.whole("n_heads", spellings.HEADS, limits.HEADS)
    kv_heads = heads
    if inside is not None:
        kinds = ("multihead_attention", "multiquery_attention", "grouped_query_attention")
        kind = inside.word("attention_type", ("attn_type",), kinds) or kinds[0]
        if inside.flag("qk_norm", ("qk_ln",), default=False):
            raise inside.refused("qk_ln", "this norm of queries and keys is not computed.")
        if kind == kinds[1]:
            kv_heads = 1
        elif kind == kinds[2]:
            kv_heads = inside.whole("n_kv_heads", ("kv_n_heads",), limits.HEADS)
            check_divides(inside, heads, kv_heads, ("kv_n_heads",))
    if not keys.flag("no_bias", ("no_bias",), default=True):
        raise keys.refused("no_bias", "biases of this family are not computed.")
    keys.passed_over("learned_pos_emb")
    dim = read_head_dim(keys, frame.hidden_size, heads)
    return [GroupedAttention(heads, kv_heads, dim)] * frame.n_layers


def mpt_block(keys: Keys, frame: Frame) -> Sequence[tuple[FeedForward, ...]]:
    """Two matrices, `expansion_ratio` × hidden between them."""
    ratio = keys.whole("expansion_ratio", ("expansion_ratio",), limits.HEADS, default=4)
    keys.ledger.derive("intermediate_size", ratio * frame.hidden_size, "expansion ratio × hidden size")
    return [(DenseFeedForward(ratio * frame.hidden_size, gated=False),)] * frame.n_layers


def qwen1_block(keys: Keys, frame: Frame) -> Sequence[tuple[FeedForward, ...]]:
    """The key of the first Qwen gives gate and up together."""
    if not keys.flag("no_bias", ("no_bias",), default=True):
        raise keys.refused("no_bias", "more biases than those of queries, keys and values are not computed.")
    both = read_dense(keys, frame)
    if both.intermediate_size % 2:
        raise keys.refused("intermediate_size", "must be even: it gives gate and up together.")
    keys.ledger.notice("This family gives the widths of gate and up together: each is half of intermediate_size.")
    return [(replace(both, intermediate_size=both.intermediate_size // 2),)] * frame.n_layers


def chatglm_attention(keys: Keys, frame: Frame) -> Sequence[Mixer | None]:
    """ChatGLM 2 to GLM-4: grouped where `multi_query_attention` says so."""
    for key in ("inner_hidden_size", "position_encoding_2d"):
        if keys.has(key):
            raise keys.refused(key, "the first ChatGLM is built otherwise, and is not computed.")
    kv_heads = None
    if not keys.flag("multi_query", ("multi_query_attention",), default=False):
        keys.passed_over("multi_query_group_num")
        kv_heads = keys.whole("n_heads", spellings.HEADS, limits.HEADS)
    linear_bias = keys.flag("linear_bias", ("add_bias_linear",), default=False)
    if linear_bias:
        raise keys.refused("add_bias_linear", "these biases are not computed.")
    return grouped(qkv_bias=Switch(("add_qkv_bias",)), kv_heads=kv_heads)(keys, frame)


def gpt_neo_attention(keys: Keys, frame: Frame) -> Sequence[Mixer | None]:
    """GPT-Neo: everything and a window in turn, as `attention_layers` lists them."""
    kinds = keys.words("layer_types", "attention_layers", ("global", "local"), frame.n_layers)
    if kinds is None:
        raise keys.refused("attention_layers", "is missing.")
    keys.passed_over("attention_types", *spellings.WINDOW)
    heads = keys.whole("n_heads", spellings.HEADS, limits.HEADS)
    dim = read_head_dim(keys, frame.hidden_size, heads)
    everything = GroupedAttention(heads, heads, dim, output_bias=True)
    window = keys.whole("window", ("window_size",), limits.POSITIONS, default=256)
    local = replace(everything, window=window)
    # GPT-Neo projects queries, keys and values without a bias and the output with one.
    return [everything if kind == "global" else local for kind in kinds]


def refuse_other_opt(keys: Keys) -> int:
    """Two norms, before attention and before the block; OPT-350M is built otherwise."""
    width = keys.maybe_whole("embedding_width", ("word_embed_proj_dim",), limits.HIDDEN)
    if width is not None and width != keys.values.get("hidden_size"):
        raise keys.refused("word_embed_proj_dim", "an embedding of another width is not computed.")
    for key in ("do_layer_norm_before", "layer_norm_elementwise_affine"):
        if not keys.flag(key, (key,), default=True):
            raise keys.refused(key, "norms in another place are not computed.")
    return 2


MULTI_HEAD = grouped(qkv_bias=True, output_bias=True)
GPT2 = Recipe(MULTI_HEAD, plain_block(), norm_bias=True, tied=True, positions=learned())
GPTJ = Recipe(grouped(), plain_block(), norms=1, norm_bias=True, head_bias=True)
PHI = Recipe(MULTI_HEAD, plain_block(), norms=1, norm_bias=True, head_bias=True)

FAMILIES = (
    Family("GPT-2", ("gpt2",), GPT2),
    Family("StarCoder", ("gpt_bigcode",), replace(GPT2, mixers=multi_query)),
    Family("GPT-Neo", ("gpt_neo",), replace(GPT2, mixers=gpt_neo_attention)),
    Family("GPT-J", ("gptj",), GPTJ),
    Family("CodeGen", ("codegen",), GPTJ),
    Family(
        "GPT-NeoX and Pythia",
        ("gpt_neox",),
        Recipe(
            grouped(qkv_bias=BIAS_UNLESS_SAID, output_bias=BIAS_UNLESS_SAID),
            plain_block(),
            norm_bias=True,
            passes=("use_parallel_residual",),
        ),
    ),
    Family(
        "OPT",
        ("opt",),
        Recipe(
            grouped(qkv_bias=OPT_BIAS, output_bias=OPT_BIAS),
            dense(gated=False, bias=OPT_BIAS),
            norms=refuse_other_opt,
            norm_bias=True,
            tied=True,
            positions=learned(2),
        ),
    ),
    Family("BLOOM", ("bloom",), Recipe(MULTI_HEAD, plain_block(), norm_bias=True, tied=True, embedding_norms=1)),
    Family(
        "Falcon",
        ("falcon", "RefinedWeb", "RefinedWebModel"),
        Recipe(
            falcon_attention,
            dense(gated=False, bias=Switch(("bias",)), times_hidden=4),
            norms=falcon_norms,
            norm_bias=True,
            tied=True,
        ),
    ),
    Family("MPT", ("mpt",), Recipe(mpt_attention, mpt_block, tied=True)),
    Family("Phi-1 and Phi-2", ("phi", "phi-msft"), PHI),
    Family(
        "Qwen 1",
        ("qwen",),
        Recipe(grouped(qkv_bias=True), qwen1_block),
    ),
    Family("ChatGLM", ("chatglm",), Recipe(chatglm_attention, dense())),
)
