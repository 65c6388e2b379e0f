"""Keys of quantization settings that no dialect looked at: told, and refused where they would change sizes."""

from dataclasses import replace

from app.catalog.importing.keys import Keys
from app.catalog.importing.noise import unread_keys
from app.catalog.importing.quantization.settings import IGNORE_KEYS
from app.catalog.importing.quantization.shipping import Dialect

BITS = ("bits", "w_bit", "weight_bits", "num_bits")
SIZES = (
    *IGNORE_KEYS,
    "modules_to_convert",
    "modules_in_block_to_quantize",
    "dynamic",
    "extra_config",
    "layer_config",
    "layer_quant_config",
    "layer_type_quant_config",
    "kv_cache_quant_config",
    "kv_cache_quant_algo",
    "kv_cache_scheme",
    "quantized_layers",
    "config_groups",
    "quant_algo",
    "moe_quant_algo",
    "sparsity_config",
    "transform_config",
    "lm_head",
    "quant_lm_head",
    "group_size",
    "q_group_size",
    "weight_block_size",
    "block_structure",
    "super_bits",
    "super_group_size",
    "lora_rank",
)
"""What one dialect reads and another does not know."""
_WORDS = """
act_bits act_data_type act_dynamic act_group_aware act_group_size act_per_tensor act_sym activation_scale_ub
activation_scheme algo_config amp autoround_version backend batch_size cache_block_outputs checkpoint_format
custom_mode damp_auto_increment damp_percent dataset dequantize desc_act disable_exllama do_fuse enable_alg_ext
enable_minmax_tuning enable_norm_bias_tuning enable_quanted_input exllama_config export fail_safe fuse_max_seq_len
global_compression_ratio gradient_accumulate_steps is_marlin_format iters kv_cache_group kv_cache_post_rope
low_gpu_mem_usage lr max_input_length meta minmax_lr model_file_base_name model_name_or_path model_seqlen
module_name_preceding_first_block modules_to_fuse mse not_use_best_mse nsamples pack_dtype pack_method packing_format
pad_token_id producer quant_method quant_mode quantization_status rotation scale_dtype scale_fmt seqlen
softmax_quant_spec static_groups store_dtype sym tokenizer true_sequential use_cuda_fp16 use_exllama version
weight_merge_groups weight_per_tensor
"""
HARMLESS = frozenset(_WORDS.split())
"""How it was calibrated, packed and run: nothing of that is in the size of a file."""


def unread_settings(block: Keys, dialect: Dialect) -> list[str]:
    """Full paths of the keys that nothing looked at and that might have meant something.

    Raises:
        ConfigError: one of them would change the size of the files.
    """
    block.passed_over(*(key for key in block.values if key in HARMLESS))
    for key in (*BITS, *SIZES):
        value = block.values.get(key)
        if not value or block.path(key) in block.ledger.used:
            block.passed_over(key)
            continue
        if key in BITS and dialect.layout is not None and value == dialect.layout.element.bits:
            block.passed_over(key)
            continue
        raise block.refused(key, "is not known in settings of this method, and would change what is stored.")
    used = block.ledger.used
    return unread_keys(replace(block, values={k: v for k, v in block.values.items() if block.path(k) not in used}))
