"""Keys that say something of a model's structure, those that are no concern, and the lists of words for both."""

import re
import tomllib
from pathlib import Path

from app.checkpoint.keys import Keys, quoted

_TEXTS = tomllib.loads(Path(__file__).with_name("words.toml").read_text(encoding="utf-8"))


def words(name: str) -> frozenset[str]:
    """The words of one list."""
    return frozenset(_TEXTS[name].split())


STRUCTURAL = (
    "num_local_experts",
    "num_experts",
    "n_routed_experts",
    "moe_num_experts",
    "num_experts_per_tok",
    "n_shared_experts",
    "num_shared_experts",
    "moe_intermediate_size",
    "kv_lora_rank",
    "q_lora_rank",
    "o_lora_rank",
    "layers_block_type",
    "hybrid_override_pattern",
    "block_configs",
    "linear_attn_config",
    "linear_num_value_heads",
    "mamba_d_state",
    "mamba_n_heads",
    "mamba_num_heads",
    "ssm_state_size",
    "mamba_d_ssm",
    "lru_width",
    "decay_low_rank_dim",
    "proj_low_rank_dim",
    "conv_L_cache",
    "full_attn_idxs",
    "num_kv_shared_layers",
    "attention_chunk_size",
    "index_topk",
    "index_head_dim",
    "sparse_attention_config",
    "compress_ratios",
    "layer_types",
    "attn_type_list",
    "hybrid_layer_pattern",
    "cross_attention_layers",
    "blocksparse_block_size",
    "hc_mult",
    "altup_num_inputs",
    "laurel_rank",
    "hidden_size_per_layer_input",
    "attention_k_eq_v",
    "use_cla",
    "use_mla",
    "enable_dsa",
    "enable_moe_block",
    "zero_expert_num",
    "moe_latent_size",
    "routed_expert_hidden_size",
    "share_q_dim",
    "attention_other_setting",
    "block_ff_dim",
    "qk_layernorm",
    "use_qk_norm",
    "attention_bias",
    "mlp_bias",
    "use_bias",
    "bias",
    "qkv_bias",
    "use_qkv_bias",
    "lm_head_bias",
    "add_cross_attention",
    "multi_gate",
    "num_nextn_predict_layers",
    "mtp_num_hidden_layers",
    "num_mtp_modules",
    "mtp_use_dedicated_embeddings",
    "per_layer_config",
    "q_head_dim",
    "swa_head_dim",
    "global_head_dim",
    "v_head_dim",
    "use_residual",
    "parallel_attn_mlp_res",
)
STRUCTURAL_STARTS = ("bskcn_",)
"""How further such keys start: Solar Pro numbers its block skip connections."""
MTP_KEYS = ("num_nextn_predict_layers", "mtp_num_hidden_layers", "num_mtp_modules")


def refuse_unread_structures(keys: Keys) -> None:
    """Raise for the first structural key that is switched on and that nothing has read.

    Raises:
        ConfigError: the key announces a part that this family is not computed with.
    """
    for key in (*STRUCTURAL, *(key for key in keys.values if key.startswith(STRUCTURAL_STARTS))):
        value = keys.values.get(key)
        if not value or keys.path(key) in keys.ledger.used:
            continue
        if key in MTP_KEYS:
            keys.passed_over(key)
            keys.ledger.notice(f"{key} speaks of multi-token prediction, which is not counted for this family.")
            continue
        raise keys.refused(key, "announces a structure that this family is not computed with.")


EXACT = words("noise")
PATTERN = re.compile(
    r".*(dropout|_pdrop|_token_id|_token_ids|_token_index|_token|_loss_coef|jitter)$|^(summary_|hc_sinkhorn|hc_eps|time_step_)"
)
MOST_NAMED = 200


def unread_keys(keys: Keys) -> list[str]:
    """Full paths of the keys of a block that nothing has looked at and that might have meant something."""
    found = []
    for key, value in keys.values.items():
        if value is None or key in EXACT or PATTERN.match(key) or (not value and key in STRUCTURAL):
            continue
        if keys.path(key) not in keys.ledger.used:
            found.append(quoted(keys.path(key)))
        if len(found) >= MOST_NAMED:
            break
    return found
