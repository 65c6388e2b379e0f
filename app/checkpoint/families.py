"""Every family by its id and model types, what is refused by name, and what is suggested for an unknown one."""

from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType

from app.checkpoint import (
    classic_families,
    dense_families,
    expert_families,
    gemma_paths,
    hybrid_families,
    more_hybrids,
    nemotron,
    own_families,
    recurrent,
    spellings,
)
from app.checkpoint.keys import ConfigError, Keys, Suggestion, quoted
from app.checkpoint.recipe import Family
from app.checkpoint.structural import words

FAMILIES: Mapping[str, Family] = MappingProxyType(
    {
        family.id: family
        for family in (
            *dense_families.FAMILIES,
            *classic_families.FAMILIES,
            *expert_families.FAMILIES,
            *own_families.FAMILIES,
            *expert_families.LATENT_FAMILIES,
            *hybrid_families.FAMILIES,
            *more_hybrids.FAMILIES,
            *recurrent.FAMILIES,
            *expert_families.COMPRESSED_FAMILIES,
            *nemotron.FAMILIES,
            *nemotron.NAS_FAMILIES,
            *gemma_paths.FAMILIES,
        )
    }
)
BY_MODEL_TYPE: Mapping[str, Family] = MappingProxyType(
    {model_type: family for family in FAMILIES.values() for model_type in family.model_types}
)

NO_DECODER = words("no_decoder")
"""Encoders, encoder-decoders and models of other media: refused by name, without a suggestion."""

NOT_COMPUTED: Mapping[str, str] = MappingProxyType(
    {
        "mllama_text_model": "cross-attention to the picture in some layers",
        "phi3small": "block-sparse attention with a pattern for each head",
        "zamba": "one attention block that several layers share",
        "zamba2": "attention blocks that several layers share",
        "rwkv": "time mixing instead of attention",
        "rwkv5": "time mixing instead of attention",
        "xlstm": "an extended LSTM",
        "mamba2": "Mamba 2 without attention",
        "olmo": "norms without weights",
        "persimmon": "norms of queries and keys with a bias",
        "bitnet": "ternary weights",
        "yuan": "a localised filter before attention",
        "molmo": "keys of its own",
        "PanguEmbedded": "biases that no public class is at hand for",
    }
)
"""Decoders that are known, with the part for which there is no calculation."""


MOST = 3
SIGNS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("deepseek_v4", ("compress_ratios", "o_lora_rank")),
    ("kimi_linear", ("linear_attn_config", "kv_lora_rank")),
    ("qwen3_next", ("linear_num_value_heads", "linear_num_key_heads", "num_experts")),
    ("qwen3_5_text", ("linear_num_value_heads", "linear_num_key_heads")),
    ("nemotron_h", ("hybrid_override_pattern", "ssm_state_size")),
    ("nemotron_h", ("layers_block_type", "ssm_state_size")),
    ("falcon_h1", ("mamba_d_ssm", "mamba_n_heads")),
    ("lfm2_moe", ("conv_L_cache", "num_experts")),
    ("lfm2", ("conv_L_cache",)),
    ("recurrent_gemma", ("lru_width",)),
    ("rwkv6", ("proj_low_rank_dim", "gate_low_rank_dim")),
    ("rwkv7", ("decay_low_rank_dim", "a_low_rank_dim", "v_low_rank_dim")),
    ("jamba", ("attn_layer_period", "mamba_d_state")),
    ("granitemoehybrid", ("mamba_d_state", "mamba_n_heads", "shared_intermediate_size")),
    ("bamba", ("mamba_d_state", "mamba_n_heads")),
    ("mimo_v2_flash", ("hybrid_layer_pattern", "swa_num_key_value_heads")),
    ("deepseek_v32", ("kv_lora_rank", "index_topk", "n_routed_experts")),
    ("deepseek_v3", ("kv_lora_rank", "n_routed_experts", "first_k_dense_replace", "topk_group")),
    ("deepseek_v2", ("kv_lora_rank", "n_routed_experts")),
    ("minicpm3", ("kv_lora_rank", "q_lora_rank")),
    ("glm4_moe", ("n_routed_experts", "first_k_dense_replace", "moe_intermediate_size")),
    ("deepseek", ("n_routed_experts", "first_k_dense_replace", "moe_intermediate_size")),
    ("qwen2_moe", ("num_experts", "shared_expert_intermediate_size")),
    ("qwen3_moe", ("num_experts", "moe_intermediate_size")),
    ("mixtral", ("num_local_experts",)),
    ("gpt2", ("n_embd", "n_head", "n_layer")),
    ("qwen3", ("max_window_layers", "head_dim")),
    ("qwen2", ("max_window_layers",)),
    ("llama", ("hidden_size", "num_attention_heads", "intermediate_size")),
)
NEEDED = (spellings.HIDDEN, spellings.HEADS, spellings.VOCABULARY)
DEPTHS = (*spellings.LAYERS, "layers_block_type", "hybrid_override_pattern")


def suggest(keys: Keys, architectures: object, can_read: Callable[[Family], None]) -> tuple[Suggestion, ...]:
    """Families that the configuration can be read as, the likeliest first; none where the keys are unfamiliar.

    `can_read` reads it as a family and raises `ConfigError` where that is not possible.
    """
    if not all(keys.any_of(names) for names in NEEDED) or not keys.any_of(DEPTHS):
        return ()
    found: dict[str, Suggestion] = {}
    for family_id, because in _candidates(keys, architectures):
        if len(found) == MOST:
            break
        if family_id in found:
            continue
        try:
            can_read(FAMILIES[family_id])
        except ConfigError:
            continue
        found[family_id] = Suggestion(family_id, because)
    return tuple(found.values())


def _candidates(keys: Keys, architectures: object) -> Iterator[tuple[str, str]]:
    named = _named_class(architectures)
    if named is not None:
        yield named
    for family_id, signs in SIGNS:
        if all(keys.has(sign) for sign in signs):
            yield family_id, f"its keys are those of this family: {', '.join(signs)}."


def _named_class(architectures: object) -> tuple[str, str] | None:
    """The family whose class the file names."""
    first = architectures[0] if isinstance(architectures, list) and architectures else None
    if not isinstance(first, str):
        return None
    bare = first.removesuffix("ForCausalLM").removesuffix("LMHeadModel").removesuffix("Model").lower()
    for model_type, family in BY_MODEL_TYPE.items():
        if model_type.replace("_", "").replace("-", "").lower() == bare:
            return family.id, f"its class is {quoted(first)}."
    return None
