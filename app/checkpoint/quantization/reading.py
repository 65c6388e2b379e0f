"""Where a file keeps its quantization settings, in which dialect, and what of them nothing has looked at."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from app.calc.dtypes import Dtype, WeightFormat, WeightLayout
from app.calc.model.layers.parts import WeightGroup
from app.checkpoint import spellings
from app.checkpoint.keys import ConfigError, FieldReading, Keys, Ledger, Origin, quoted
from app.checkpoint.nesting import Located
from app.checkpoint.quantization import layouts
from app.checkpoint.quantization.dialects import DIALECTS, read_mlx
from app.checkpoint.quantization.grouped_dialects import read_compressed_tensors, read_mixed_fp8, read_modelopt
from app.checkpoint.quantization.patterns import Effort
from app.checkpoint.quantization.settings import IGNORE_KEYS
from app.checkpoint.quantization.shipping import Dialect, Shipped, ship
from app.checkpoint.recipe import Body
from app.checkpoint.structural import unread_keys

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


BESIDE = "hf_quant_config"
METHODS = (*DIALECTS, "compressed-tensors", "modelopt", "modelopt_fp4", "modelopt_mixed")
WIDE = {
    "bfloat16": WeightFormat.BF16,
    "float16": WeightFormat.FP16,
    "float32": WeightFormat.FP32,
    "torch.bfloat16": WeightFormat.BF16,
    "torch.float16": WeightFormat.FP16,
    "torch.float32": WeightFormat.FP32,
}


def read_quantization(located: Located, beside: Mapping[str, Any] | None, body: Body) -> Shipped:
    """The plan of the files; the plain type of the weights where no settings are given.

    Raises:
        ConfigError: a method or format that is not known, by its name.
    """
    ledger = located.text.ledger
    wide = _wide(located)
    inside, beside_it = _blocks(located), _block_beside(beside, ledger)
    effort = Effort()
    if not inside and not beside_it:
        return ship(body, wide, Dialect(), ledger, effort)
    if wide.element.bits == 32:  # what is not quantized is 16-bit in practice, whatever the file says of its training
        wide = WeightFormat.BF16.layout
    unread: list[str] = []

    def read(block: Keys) -> Dialect:
        dialect = _dialect(block, body.frame.hidden_size)
        unread.extend(unread_settings(block, dialect))
        return dialect

    first, *others = inside or beside_it
    dialect = read(first)
    for other in beside_it if inside else ():
        dialect = _agree(dialect, read(other), other)
    again = [(other, read(other)) for other in others if other.values != first.values]
    cache = next((own.kv_cache for own in (dialect, *(own for _, own in again)) if own.kv_cache), None)
    shipped = ship(body, wide, _expert_type(located.text, dialect, cache), ledger, effort)
    for other, own in again:
        if ship(body, wide, _expert_type(located.text, own, own.kv_cache or cache), Ledger(), effort) != shipped:
            raise ConfigError(other.prefix, f"contradicts {first.prefix}.")
    return replace(shipped, unread=tuple(dict.fromkeys(unread)))


def _wide(located: Located) -> WeightLayout:
    for keys in (located.text, located.whole):
        word = keys.word("dtype", spellings.DTYPE, tuple(WIDE)) if _has_dtype(keys) else None
        if word is not None:
            located.whole.passed_over(*spellings.DTYPE)
            return WIDE[word].layout
    located.text.ledger.assume("dtype", "bfloat16", "no key says how the weights are stored")
    return WeightFormat.BF16.layout


def _has_dtype(keys: Keys) -> bool:
    return any(keys.has(name) and keys.values[name] != "auto" for name in spellings.DTYPE)


def _blocks(located: Located) -> list[Keys]:
    """Settings inside the file; those of the language model first. MLX writes the same block twice."""
    found = []
    for keys in dict.fromkeys((located.text.prefix, located.whole.prefix)):
        holder = located.text if keys == located.text.prefix else located.whole
        for key in ("quantization_config", "quantization", "compression_config"):
            block = holder.inside(key)
            if block is not None and block.values:
                found.append(block)
    return found


def _block_beside(beside: Mapping[str, Any] | None, ledger: Ledger) -> list[Keys]:
    if beside is None:
        return []
    if not isinstance(beside, Mapping):
        raise ConfigError(BESIDE, "must be an object.")
    whole = Keys(beside, BESIDE, ledger)
    inside = whole.inside("quantization") or whole
    return [inside] if inside.has("quant_algo") else []


def _dialect(block: Keys, hidden_size: int) -> Dialect:
    """The settings in whatever dialect they are.

    Raises:
        ConfigError: a method that is not known.
    """
    method = block.word("quant_method", ("quant_method",))
    if method is None:
        if block.has("quant_algo"):
            return read_modelopt(block, hidden_size)
        if "qformat_weight" in block.values:  # Mistral's params.json
            block.word("weight_format", ("qformat_weight",), ("fp8_e4m3",))
            return Dialect(layouts.PER_TENSOR_FP8)
        if "bits" in block.values or "mode" in block.values:
            return read_mlx(block, hidden_size)
        if "config_groups" in block.values:
            return read_compressed_tensors(block, hidden_size)
        raise block.refused("quant_method", "is missing.")
    if method == "fp8" and block.has("moe_quant_algo"):
        return read_mixed_fp8(block, hidden_size, DIALECTS["fp8"](_without_ignored(block), hidden_size))
    if method in DIALECTS:
        return DIALECTS[method](block, hidden_size)
    if method == "compressed-tensors":
        return read_compressed_tensors(block, hidden_size)
    if method.startswith("modelopt"):
        return read_modelopt(block, hidden_size)
    raise block.refused("quant_method", f"{quoted(method)} is not known; known are {', '.join(METHODS)}.")


def _without_ignored(block: Keys) -> Keys:
    return replace(block, values={key: value for key, value in block.values.items() if key != "ignore"})


def _agree(first: Dialect, second: Dialect, block: Keys) -> Dialect:
    """The first, with the cache's type of the second if it has none itself.

    Raises:
        ConfigError: they contradict each other.
    """
    mixed = None in (first.layout, second.layout) or first.by_group
    if not mixed and first.layout != second.layout:
        raise block.refused("quant_algo", "contradicts the settings in config.json.")
    return replace(first, kv_cache=first.kv_cache or second.kv_cache)


def _expert_type(text: Keys, dialect: Dialect, kv_cache: Dtype | None) -> Dialect:
    """DeepSeek V4 gives the experts' own type outside of the settings. The cache's type is filled in."""
    dialect = replace(dialect, kv_cache=kv_cache)
    word = text.word("expert_dtype", ("expert_dtype",), ("fp4", "fp8"))
    if word != "fp4" or WeightGroup.ROUTED_EXPERTS in dialect.by_group:
        return dialect
    note = "over the quantization settings"
    text.ledger.write(FieldReading("expert_layout", "MXFP4", Origin.DERIVED, text.path("expert_dtype"), note))
    return replace(dialect, by_group={**dialect.by_group, WeightGroup.ROUTED_EXPERTS: layouts.MXFP4})
