"""The simple dialects: one format for all layers, and a list of what stays wide."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from app.calc.dtypes import Dtype, WeightLayout
from app.calc.layers.parts import WeightGroup
from app.calc.weight_plan import LAYER_MATRICES
from app.catalog.importing import limits
from app.catalog.importing.errors import quoted
from app.catalog.importing.keys import Keys
from app.catalog.importing.quantization import layouts
from app.catalog.importing.quantization.naming import Rule
from app.catalog.importing.quantization.settings import read_group, read_ignored, read_integer
from app.catalog.importing.quantization.shipping import Dialect

Read = Callable[[Keys, int], Dialect]
"""Reads a dialect's block, given the model's width."""
WITH_HEAD = (*LAYER_MATRICES, WeightGroup.HEAD)
QUARK_TYPES = {
    "fp8_e4m3": Dtype.FP8,
    "fp4": Dtype.FP4,
    "int4": Dtype.INT4,
    "uint4": Dtype.INT4,
    "int8": Dtype.INT8,
}
EVERYTHING = (*WITH_HEAD, WeightGroup.EMBEDDING, WeightGroup.ROUTER)


def read_fp8(keys: Keys, hidden_size: int) -> Dialect:
    """FP8 with a scale for each block, or for each matrix where there is no block size."""
    keys.word("fp8_format", ("fmt",), ("e4m3", "float8_e4m3fn"))
    keys.passed_over(
        "activation_scheme", "scale_fmt", "weight_per_tensor", "act_per_tensor", "dequantize", "store_dtype"
    )
    block = keys.wholes("weight_block", "weight_block_size", limits.WIDTH, least=1)
    if block is not None and len(block) != 2:
        raise keys.refused("weight_block_size", "must have two numbers.")
    layout = layouts.blocks_fp8(*block) if block else layouts.PER_TENSOR_FP8
    return Dialect(layout, ignored=read_ignored(keys))


def read_fbgemm(keys: Keys, hidden_size: int) -> Dialect:
    """FP8 with a 32-bit scale for each row."""
    keys.passed_over("activation_scale_ub")
    return Dialect(layouts.per_row(Dtype.FP8, hidden_size, 32), ignored=read_ignored(keys))


def read_mxfp4(keys: Keys, hidden_size: int) -> Dialect:
    """MXFP4 in the experts alone, whatever the list of the others leaves out."""
    keys.passed_over("dequantize")
    return Dialect(layouts.MXFP4, groups=(WeightGroup.ROUTED_EXPERTS,), ignored=read_ignored(keys))


def read_gptq(keys: Keys, hidden_size: int) -> Dialect:
    """GPTQ: integers with a 16-bit scale and a zero point of as many bits as an element, for each group."""
    element = read_integer(keys, ("bits", "w_bit"))
    group = read_group(keys, ("group_size", "q_group_size"), 128, hidden_size)
    keys.passed_over("desc_act", "sym", "damp_percent", "static_groups", "true_sequential", "checkpoint_format", "meta")
    keys.passed_over("model_name_or_path", "model_file_base_name", "pack_dtype", "format", "lm_head")
    _refuse_overrides(keys, "dynamic")
    with_head = keys.flag("head_quantized", ("lm_head",), default=False)
    layout = layouts.grouped(element, group, zero_bits=element.bits)
    return Dialect(layout, groups=WITH_HEAD if with_head else LAYER_MATRICES, ignored=read_ignored(keys))


def read_awq(keys: Keys, hidden_size: int) -> Dialect:
    """AWQ: integers with a 16-bit scale for each group, and a zero point unless it is switched off."""
    element = read_integer(keys, ("bits", "w_bit"), 4)
    group = read_group(keys, ("group_size", "q_group_size"), 128, hidden_size)
    zero = keys.flag("zero_point", ("zero_point",), default=True)
    keys.passed_over("version", "backend", "do_fuse", "exllama_config", "fuse_max_seq_len")
    layout = layouts.grouped(element, group, zero_bits=element.bits if zero else 0)
    return Dialect(layout, ignored=read_ignored(keys))


def read_bitsandbytes(keys: Keys, hidden_size: int) -> Dialect:
    """bitsandbytes: NF4 or FP4 in blocks of 64, or 8-bit integers with a 32-bit scale a row."""
    keys.passed_over(*(key for key in keys.values if key.startswith(("bnb_4bit", "llm_int8", "_load_in"))))
    four = keys.flag("load_in_4bit", ("load_in_4bit",), default=False)
    eight = keys.flag("load_in_8bit", ("load_in_8bit",), default=False)
    if four == eight:
        raise keys.refused("load_in_4bit", "and load_in_8bit: one of them must be true.")
    if eight:
        return Dialect(layouts.per_row(Dtype.INT8, hidden_size, 32), ignored=read_ignored(keys))
    keys.word("element", ("bnb_4bit_quant_type",), ("nf4", "fp4"))
    double = keys.flag("double_quantization", ("bnb_4bit_use_double_quant",), default=False)
    return Dialect(layouts.normal_float(double=double), ignored=read_ignored(keys))


def read_auto_round(keys: Keys, hidden_size: int) -> Dialect:
    """AutoRound: as GPTQ or AWQ pack it, with modules that `extra_config` gives other bits."""
    kind = keys.word("element", ("data_type",), ("int", "mx_fp", "nv_fp", "mx_fp4", "nv_fp4")) or "int"
    keys.passed_over(
        "sym", "packing_format", "autoround_version", "iters", "block_name_to_quantize", "to_quant_block_names"
    )
    if kind != "int":
        if keys.whole("weight_bits", ("bits",), 64) != 4:
            raise keys.refused("bits", "only 4 bits are computed for this type.")
        keys.passed_over("group_size")
        layout = layouts.MXFP4 if kind.startswith("mx") else layouts.NVFP4
    else:
        element = read_integer(keys, ("bits",))
        layout = layouts.grouped(element, read_group(keys, ("group_size",), 128, hidden_size), zero_bits=element.bits)
    extra = keys.inside("extra_config")
    rules = [] if extra is None else [_auto_round_rule(extra, name, hidden_size) for name in extra.values]
    return Dialect(layout, rules=tuple(rules), ignored=read_ignored(keys))


def _auto_round_rule(extra: Keys, name: str, hidden_size: int) -> Rule:
    inside = extra.inside(name)
    if inside is None:
        raise extra.refused(quoted(name), "must be an object.")
    inside.passed_over(*inside.values)
    if inside.values.get("bits") in (16, 32):
        return Rule(name, None, inside.prefix)
    element = read_integer(inside, ("bits",))
    group = read_group(inside, ("group_size",), 128, hidden_size)
    return Rule(name, layouts.grouped(element, group, zero_bits=element.bits), inside.prefix)


def read_mlx(keys: Keys, hidden_size: int) -> Dialect:
    """MLX: every matrix, embedding and head too, with a 16-bit scale and bias a group; other bits module by module."""
    layout = _mlx_layout(keys, hidden_size)
    rules = []
    for name, value in keys.values.items():
        if name in ("bits", "group_size", "mode", "quant_method") or value is True:
            continue
        if value is False:
            keys.passed_over(name)
            rules.append(Rule(name, None, keys.prefix))
            continue
        inside = keys.inside(name)
        if inside is None:
            continue
        rules.append(Rule(name, _mlx_layout(inside, hidden_size), inside.prefix))
    return Dialect(layout, groups=EVERYTHING, rules=tuple(rules))


def _mlx_layout(keys: Keys, hidden_size: int) -> WeightLayout:
    modes = ("affine", "mxfp4", "nvfp4", "mxfp8")
    mode = keys.word("mode", ("mode",), modes) or "affine"
    if mode == "mxfp4":
        keys.passed_over("bits", "group_size")
        return layouts.MXFP4
    if mode == "nvfp4":
        keys.passed_over("bits", "group_size")
        return layouts.NVFP4
    if mode == "mxfp8":
        keys.passed_over("bits", "group_size")
        return layouts.MXFP8
    element = read_integer(keys, ("bits",))
    group = read_group(keys, ("group_size",), 64, hidden_size)
    return layouts.grouped(element, group, zero_bits=layouts.SCALE_BITS)


def read_quark(keys: Keys, hidden_size: int) -> Dialect:
    """Quark: a global scheme, schemes for layers by name, and a list of what stays wide."""
    whole = keys.inside("global_quant_config")
    if whole is None:
        raise keys.refused("global_quant_config", "is missing.")
    layout = _quark_layout(whole, hidden_size)
    named = keys.inside("layer_quant_config")
    rules = []
    for name in named.values if named is not None else ():
        inside = named.inside(name) if named is not None else None
        if inside is not None:
            rules.append(Rule(name, _quark_layout(inside, hidden_size), inside.prefix))
    _refuse_overrides(keys, "layer_type_quant_config")
    keys.passed_over(*(key for key in keys.values if key not in ("exclude",)))
    return Dialect(layout, rules=tuple(rules), ignored=read_ignored(keys))


def _quark_layout(keys: Keys, hidden_size: int) -> WeightLayout | None:
    keys.passed_over(*keys.values)
    if keys.values.get("weight") is None:
        return None
    weight = keys.inside("weight")
    assert weight is not None  # noqa: S101  # for the type checker: it is not null
    element = weight.word("element", ("dtype",), tuple(QUARK_TYPES)) or "fp8_e4m3"
    scheme = weight.word("scheme", ("qscheme",), ("per_tensor", "per_channel", "per_group")) or "per_tensor"
    dtype = QUARK_TYPES[element]
    weight.passed_over(*weight.values)
    if scheme == "per_tensor":
        return WeightLayout(dtype)
    if scheme == "per_channel":
        return layouts.per_row(dtype, hidden_size, 32)
    group = weight.whole("quantization_group", ("group_size",), limits.WIDTH)
    scale = 8 if weight.values.get("scale_format") == "e8m0" or element == "fp4" else layouts.SCALE_BITS
    return layouts.grouped(dtype, group, scale_bits=scale, zero_bits=4 if element == "uint4" else 0)


def _refuse_overrides(keys: Keys, key: str) -> None:
    """Bits module by module in a way that is not read."""
    value: Any = keys.values.get(key)
    keys.passed_over(key)
    if value:
        raise keys.refused(key, "other bits for single modules are not computed in this dialect.")


DIALECTS: Mapping[str, Read] = MappingProxyType(
    {
        "fp8": read_fp8,
        "fbgemm_fp8": read_fbgemm,
        "mxfp4": read_mxfp4,
        "gptq": read_gptq,
        "awq": read_awq,
        "bitsandbytes": read_bitsandbytes,
        "auto-round": read_auto_round,
        "intel/auto-round": read_auto_round,
        "quark": read_quark,
    }
)
