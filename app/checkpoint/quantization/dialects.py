"""The simple dialects: one format for all layers, and a list of what stays wide."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from app.calc.dtypes import Dtype, WeightLayout
from app.calc.model.layers.parts import WeightGroup
from app.calc.model.parameters import LAYER_MATRICES
from app.checkpoint import limits
from app.checkpoint.keys import Keys, quoted
from app.checkpoint.quantization import layouts
from app.checkpoint.quantization.naming import EXPRESSION, Rule
from app.checkpoint.quantization.settings import (
    read_each,
    read_group,
    read_ignored,
    read_integer,
    read_names,
    refuse_parts_of_stacks,
    refuse_too_many,
)
from app.checkpoint.quantization.shipping import Dialect

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
CACHE_PROJECTIONS = ("k_proj", "v_proj", "kv_proj", "qkv_proj", "qkv")
EVERYTHING = (*WITH_HEAD, WeightGroup.EMBEDDING, WeightGroup.ROUTER)


def read_fp8(keys: Keys, hidden_size: int) -> Dialect:
    """FP8 with a scale for each block, or for each matrix where there is no block size."""
    keys.word("fp8_format", ("fmt",), ("e4m3", "float8_e4m3fn"))
    block = keys.wholes("weight_block", "weight_block_size", limits.WIDTH, least=1)
    if block is not None and len(block) != 2:
        raise keys.refused("weight_block_size", "must have two numbers.")
    layout = layouts.blocks_fp8(*block) if block else layouts.PER_TENSOR_FP8
    return Dialect(layout, ignored=read_ignored(keys))


def read_fbgemm(keys: Keys, hidden_size: int) -> Dialect:
    """FP8 with a 32-bit scale for each row."""
    return Dialect(layouts.per_row(Dtype.FP8, hidden_size, 32), ignored=read_ignored(keys))


def read_mxfp4(keys: Keys, hidden_size: int) -> Dialect:
    """MXFP4 in the experts alone, whatever the list of the others leaves out."""
    return Dialect(layouts.MXFP4, groups=(WeightGroup.ROUTED_EXPERTS,), ignored=read_ignored(keys))


def read_gptq(keys: Keys, hidden_size: int) -> Dialect:
    """GPTQ: integers with a 16-bit scale and a zero point of as many bits as an element, for each group."""
    element = read_integer(keys, ("bits", "w_bit"))
    group = read_group(keys, ("group_size", "q_group_size"), 128, hidden_size)
    keys.passed_over("format")
    refuse_parts_of_stacks(keys, "block_name_to_quantize")
    with_head = keys.flag("head_quantized", ("lm_head",), default=False)
    layout = layouts.grouped(element, group, zero_bits=element.bits)
    groups = WITH_HEAD if with_head else LAYER_MATRICES
    ignored = (*read_ignored(keys), *_read_dynamic(keys))
    names = _read_modules(keys, "modules_in_block_to_quantize")
    if not names:
        return Dialect(layout, groups=groups, ignored=ignored)
    if with_head:
        names = (*names, "lm_head")
    path = keys.path("modules_in_block_to_quantize")
    return Dialect(None, groups=groups, rules=tuple(Rule(name, layout, path, True) for name in names), ignored=ignored)


def _read_modules(keys: Keys, key: str) -> tuple[str, ...]:
    """The modules that alone are quantized: names, or lists of those that were quantized together."""
    items = keys.values.get(key)
    if not isinstance(items, list):
        return read_names(keys, key)
    flat = [name for item in items[: limits.LIST] for name in (item if isinstance(item, list) else [item])]
    return read_names(replace(keys, values={**keys.values, key: flat}), key)


def _read_dynamic(keys: Keys) -> tuple[Rule, ...]:
    """GPTQModel's expressions with a sign: "-:" leaves modules out, the others give them settings of their own.

    Raises:
        ConfigError: settings of their own.
    """
    inside = keys.inside("dynamic")
    rules = []
    for pattern, value in inside.values.items() if inside is not None else ():
        if pattern.startswith("-:"):
            rules.append(Rule(f"{EXPRESSION}{pattern[2:]}", None, keys.path("dynamic")))
        elif value:
            raise keys.refused("dynamic", f"gives {quoted(pattern)} settings of its own, which is not computed.")
    return tuple(rules)


def read_awq(keys: Keys, hidden_size: int) -> Dialect:
    """AWQ: integers with a 16-bit scale for each group, and a zero point unless it is switched off."""
    element = read_integer(keys, ("bits", "w_bit"), 4)
    group = read_group(keys, ("group_size", "q_group_size"), 128, hidden_size)
    zero = keys.flag("zero_point", ("zero_point",), default=True)
    keys.passed_over("format")
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
    for key in ("block_name_to_quantize", "to_quant_block_names"):
        refuse_parts_of_stacks(keys, key)
    groups = WITH_HEAD if keys.flag("head_quantized", ("quant_lm_head",), default=False) else LAYER_MATRICES
    if kind != "int":
        if keys.whole("weight_bits", ("bits",), 64) != 4:
            raise keys.refused("bits", "only 4 bits are computed for this type.")
        keys.passed_over("group_size")
        layout = layouts.MXFP4 if kind.startswith("mx") else layouts.NVFP4
    else:
        element = read_integer(keys, ("bits",))
        layout = layouts.grouped(element, read_group(keys, ("group_size",), 128, hidden_size), zero_bits=element.bits)
    extra = keys.inside("extra_config")

    def read(inside: Keys) -> WeightLayout | None:
        inside.passed_over(*inside.values)
        if inside.values.get("bits") in (16, 32):
            return None
        element = read_integer(inside, ("bits",))
        return layouts.grouped(element, read_group(inside, ("group_size",), 128, hidden_size), zero_bits=element.bits)

    rules = () if extra is None else read_each(extra, "extra_config", extra.values, read)
    return Dialect(layout, groups=groups, rules=rules, ignored=read_ignored(keys))


def read_mlx(keys: Keys, hidden_size: int) -> Dialect:
    """MLX: every matrix, embedding and head too, with a 16-bit scale and bias a group; other bits module by module."""
    layout = _mlx_layout(keys, hidden_size)
    modules = {name: value for name, value in keys.values.items() if _is_module(name, value)}
    blocks = [name for name, value in modules.items() if isinstance(value, Mapping)]
    wide = [name for name, value in modules.items() if value is False]
    refuse_too_many(keys, "bits", modules)
    for name, value in keys.values.items():
        if "." in name and value is not None and name not in modules:
            raise keys.refused(quoted(name), "must be an object.")
    keys.passed_over(*wide, *(name for name, value in modules.items() if value is True))
    rules = read_each(keys, "bits", blocks, lambda inside: _mlx_layout(inside, hidden_size))
    return Dialect(
        layout,
        groups=EVERYTHING,
        rules=rules,
        ignored=tuple(Rule(name, None, keys.prefix) for name in wide),
    )


def _is_module(name: str, value: Any) -> bool:
    settings = isinstance(value, Mapping) and (
        "." in name or any(key in value for key in ("bits", "group_size", "mode"))
    )
    return settings or isinstance(value, bool)


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
    rules: tuple[Rule, ...] = ()
    if named is not None:
        rules = read_each(named, "layer_quant_config", named.values, lambda inside: _quark_layout(inside, hidden_size))
    _refuse_overrides(keys, "layer_type_quant_config")
    cache = _quark_cache(keys, "kv_cache_quant_config") or _quark_cache(keys, "layer_quant_config")
    return Dialect(layout, rules=rules, ignored=read_ignored(keys), kv_cache=cache)


def _quark_cache(keys: Keys, key: str) -> Dtype | None:
    """The type that the outputs of the key and value projections are written to the cache in.

    Raises:
        ConfigError: one that is no cache's type, or several.
    """
    named, found = keys.inside(key), dict[Dtype, None]()
    for name, value in named.values.items() if named is not None else ():
        if not isinstance(value, Mapping):
            raise keys.refused(key, f"{quoted(name)} must be an object.")
        output = value.get("output_tensors")
        if not name.rstrip("*").endswith(CACHE_PROJECTIONS) or not isinstance(output, Mapping):
            continue
        dtype = output.get("dtype")
        if not isinstance(dtype, str) or dtype not in QUARK_TYPES:
            raise keys.refused(key, f"{quoted(name)} gives the cache a type that is not computed.")
        found[QUARK_TYPES[dtype]] = None
    if len(found) > 1:
        raise keys.refused(key, "gives keys and values different types, which is not computed.")
    return next(iter(found), None)


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
