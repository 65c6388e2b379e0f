"""Latent attention: MLA of each layer, with DeepSeek's index of the best positions where a family has it."""

from collections.abc import Sequence

from app.calc.layers.indexer import Indexer
from app.calc.layers.latent_attention import LatentAttention
from app.calc.layers.parts import Mixer
from app.calc.layers.sparse_latent_attention import SparseLatentAttention
from app.catalog.importing import limits, spellings
from app.catalog.importing.frame import Frame
from app.catalog.importing.grouped import Mixers
from app.catalog.importing.keys import Keys


def read_latent(keys: Keys, *, gated: bool = False, value_dim: int | None = None) -> LatentAttention:
    """MLA as the keys give it. A `head_dim` and KV heads beside it are noise, and are passed over."""
    keys.passed_over(*spellings.HEAD_DIM, *spellings.KV_HEADS, "qk_head_dim", "use_mla", "attention_bias", "qkv_bias")
    nope = keys.whole("nope_dim", ("qk_nope_head_dim",), limits.HEAD_WIDTH)
    rope = keys.whole("rope_dim", ("qk_rope_head_dim",), limits.HEAD_WIDTH)
    if keys.values.get("attention_bias") is True:
        raise keys.refused("attention_bias", "biases of latent attention are not computed.")
    if keys.has("qk_head_dim") and keys.values["qk_head_dim"] != nope + rope:
        raise keys.refused("qk_head_dim", f"contradicts the widths {nope:,} and {rope:,} of its parts.")
    if "q_lora_rank" not in keys.values and not keys.any_known("q_lora_rank"):
        keys.ledger.assume("q_rank", None, "no key says that queries go through a low rank")
    return LatentAttention(
        n_heads=keys.whole("n_heads", spellings.HEADS, limits.HEADS),
        kv_rank=keys.whole("kv_rank", ("kv_lora_rank",), limits.WIDTH),
        nope_dim=nope,
        rope_dim=rope,
        v_dim=keys.whole("v_dim", ("v_head_dim",), limits.HEAD_WIDTH, default=value_dim),
        q_rank=keys.maybe_whole("q_rank", ("q_lora_rank",), limits.WIDTH),
        gated=gated,
    )


def latent(keys: Keys, frame: Frame) -> Sequence[Mixer | None]:
    """MLA in every layer."""
    return [read_latent(keys)] * frame.n_layers


def latent_from_hidden(keys: Keys, frame: Frame) -> Sequence[Mixer | None]:
    """MLA whose value width is hidden ÷ heads where no key gives it (MiniCPM 3)."""
    heads = keys.whole("n_heads", spellings.HEADS, limits.HEADS)
    width = frame.hidden_size // heads
    return [read_latent(keys, value_dim=max(1, width))] * frame.n_layers


SPARSE_WORDS = ("deepseek_sparse_attention", "indexed_attention")


def sparse_latent(keys: Keys, frame: Frame) -> Sequence[Mixer | None]:
    """MLA over the positions that an index chooses; some layers use the index of a neighbour (GLM-5.2)."""
    inner = read_latent(keys)
    top = keys.whole("index_top", ("index_topk",), limits.POSITIONS)
    indexer = Indexer(
        keys.whole("index_heads", ("index_n_heads",), limits.HEADS),
        keys.whole("index_dim", ("index_head_dim",), limits.HEAD_WIDTH),
    )
    own = SparseLatentAttention(inner, top, indexer)
    borrowed = SparseLatentAttention(inner, top, None)
    types = keys.words("indexer_types", "indexer_types", ("full", "shared"), frame.n_layers)
    keys.passed_over(
        "index_topk_freq",
        "index_topk_pattern",
        "index_skip_topk_offset",
        "index_share_for_mtp_iteration",
        "indexer_rope_interleave",
    )
    keys.words("layer_types", "layer_types", SPARSE_WORDS, frame.n_layers)
    if types is None:
        if keys.has("index_topk_freq") and keys.values["index_topk_freq"] != 1:
            raise keys.refused("index_topk_freq", "needs indexer_types beside it, one entry a layer.")
        return [own] * frame.n_layers
    if types[0] != "full":
        raise keys.refused("indexer_types", "starts with a layer that has no index before it to share.")
    return [own if kind == "full" else borrowed for kind in types]


def latent_or_grouped(otherwise: Mixers) -> Mixers:
    """MLA, or grouped attention where a small model of the family switches it off (DeepSeek-VL2 Tiny)."""

    def read(keys: Keys, frame: Frame) -> Sequence[Mixer | None]:
        if keys.any_known("kv_lora_rank") and keys.flag("use_mla", ("use_mla",), default=True):
            return latent(keys, frame)
        keys.passed_over("use_mla", "kv_lora_rank", "q_lora_rank", "v_head_dim")
        keys.passed_over("qk_nope_head_dim", "qk_rope_head_dim")
        return otherwise(keys, frame)

    return read
