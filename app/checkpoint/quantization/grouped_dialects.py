"""Compressed-tensors and ModelOpt: formats given to groups of modules."""

from collections.abc import Mapping
from types import MappingProxyType

from app.calc.dtypes import Dtype, WeightLayout
from app.calc.model.layers.parts import WeightGroup
from app.checkpoint import limits
from app.checkpoint.keys import Keys, quoted
from app.checkpoint.quantization import layouts
from app.checkpoint.quantization.dialects import WITH_HEAD
from app.checkpoint.quantization.naming import Rule
from app.checkpoint.quantization.settings import (
    LONGEST_NAME,
    read_cache_type,
    read_ignored,
    read_names,
    refuse_too_many,
)
from app.checkpoint.quantization.shipping import Dialect

FORMATS = (
    "pack-quantized",
    "float-quantized",
    "int-quantized",
    "naive-quantized",
    "nvfp4-pack-quantized",
    "mxfp4-pack-quantized",
    "mixed-precision",
    "dense",
)
CLASSES = ("Linear", "MoE", "FusedMoE", "RoutedExperts")
"""Targets that mean every matrix of a kind instead of naming some."""


def read_compressed_tensors(keys: Keys, hidden_size: int) -> Dialect:
    """The scheme of all linear layers, others for what a group names, and what is ignored.

    Raises:
        ConfigError: a format or scheme that is not computed.
    """
    file_format = keys.word("format", ("format",), FORMATS)
    _refuse_sparsity(keys)
    ignored = read_ignored(keys, ("ignore",))
    cache = read_cache_type(keys, "kv_cache_scheme")
    groups = keys.inside("config_groups")
    if groups is None:
        if file_format == "dense":
            return Dialect(None, ignored=ignored, kv_cache=cache)
        raise keys.refused("config_groups", "is missing.")
    if len(groups.values) > limits.SETTINGS:
        raise keys.refused("config_groups", f"has more than {limits.SETTINGS} groups.")
    everywhere, rules = None, []
    for name in groups.values:
        group = groups.inside(name)
        if group is None:
            continue
        layout = read_scheme(group, hidden_size, file_format)
        targets = read_names(group, "targets") or CLASSES[:1]
        group.passed_over(*group.values)
        for target in targets:
            if target in CLASSES:
                everywhere = layout
            else:
                rules.append(Rule(target, layout, group.path("targets"), must_name=True))
    refuse_too_many(keys, "config_groups", rules)
    return Dialect(everywhere, groups=WITH_HEAD, rules=tuple(rules), ignored=ignored, kv_cache=cache)


def _refuse_sparsity(keys: Keys) -> None:
    inside = keys.inside("sparsity_config")
    if inside is None or not inside.values:
        return
    kind = inside.values.get("format")
    if kind not in (None, "dense"):
        raise inside.refused("format", "sparse weights are not computed.")


def read_scheme(group: Keys, hidden_size: int, file_format: str | None) -> WeightLayout | None:
    """The layout of one group's weights; None where they are not quantized."""
    own_format = group.word("format", ("format",), FORMATS) or file_format or ""
    weights = group.inside("weights")
    if weights is None:
        return None
    weights.passed_over(*weights.values)
    bits = weights.whole("weight_bits", ("num_bits",), 64)
    kind = weights.word("element", ("type",), ("int", "float")) or "int"
    strategies = ("tensor", "channel", "group", "block", "token", "tensor_group")
    strategy = weights.word("strategy", ("strategy",), strategies)
    elements = {(4, "int"): Dtype.INT4, (8, "int"): Dtype.INT8, (8, "float"): Dtype.FP8, (4, "float"): Dtype.FP4}
    element = elements.get((bits, kind))
    if element is None:
        raise weights.refused("num_bits", f"{bits}-bit {kind} elements are not computed.")
    if own_format.startswith("nvfp4") or strategy == "tensor_group":
        return layouts.NVFP4
    if own_format.startswith("mxfp4"):
        return layouts.MXFP4
    if strategy == "block":
        block = weights.wholes("weight_block", "block_structure", limits.WIDTH, least=1) or (128, 128)
        if len(block) != 2 or element is not Dtype.FP8:
            raise weights.refused("block_structure", "is not computed for this type.")
        return layouts.blocks_fp8(*block)
    symmetric = weights.flag("symmetric", ("symmetric",), default=True)
    zero = 0 if symmetric else bits
    has_group = weights.has("group_size") and weights.values["group_size"] != -1
    if has_group and strategy in (None, "group"):
        group_size = weights.whole("quantization_group", ("group_size",), limits.WIDTH)
        # modelopt writes its NVFP4 in this way, without a strategy.
        if element is Dtype.FP4:
            return layouts.NVFP4 if group_size == 16 else layouts.grouped(element, group_size, scale_bits=8)
        return layouts.grouped(element, group_size, zero_bits=zero)
    if strategy in (None, "tensor"):
        return WeightLayout(element)
    return layouts.grouped(element, hidden_size, zero_bits=zero)


ALGORITHMS: Mapping[str, WeightLayout | None] = MappingProxyType(
    {
        "FP8": layouts.PER_TENSOR_FP8,
        "FP8_PB_WO": layouts.BLOCK_FP8,
        "NVFP4": layouts.NVFP4,
        "NVFP4_AWQ": layouts.NVFP4,
        "W4A16_NVFP4": layouts.NVFP4,
        "W4A8_NVFP4_FP8": layouts.NVFP4,
        "W4A8_MXFP4_FP8": layouts.MXFP4,
        "MXFP4": layouts.MXFP4,
        "MXFP8": layouts.MXFP8,
        "MIXED_PRECISION": None,
    }
)
BY_ROW = {"FP8_PER_CHANNEL_PER_TOKEN": Dtype.FP8, "INT8_SQ": Dtype.INT8, "W8A16": Dtype.INT8}
BY_GROUP = ("W4A16_AWQ", "W4A8_AWQ", "INT4_AWQ")
KNOWN = (*ALGORITHMS, *BY_ROW, *BY_GROUP)


def read_modelopt(keys: Keys, hidden_size: int) -> Dialect:
    """The algorithm's layout everywhere, or what `quantized_layers` says layer by layer.

    Raises:
        ConfigError: an algorithm that is not known.
    """
    algorithm = keys.word("quant_algo", ("quant_algo",), KNOWN)
    if algorithm is None:
        raise keys.refused("quant_algo", "is missing.")
    ignored = read_ignored(keys)
    cache = read_cache_type(keys, "kv_cache_scheme") or read_cache_type(keys, "kv_cache_quant_algo")
    keys.passed_over("config_groups")  # the same once more, in another dialect
    if algorithm != "MIXED_PRECISION":
        keys.passed_over("quantized_layers")
        if not ignored:
            keys.ledger.notice("No list says what is not quantized: embedding, head and router are taken to be 16-bit.")
        return Dialect(algorithm_layout(keys, algorithm, hidden_size), ignored=ignored, kv_cache=cache)
    layers = keys.inside("quantized_layers")
    if layers is None:
        raise keys.refused("quantized_layers", "is missing.")
    keys.passed_over("group_size")
    refuse_too_many(keys, "quantized_layers", layers.values)
    seen: dict[tuple[object, object], WeightLayout | None] = {}
    rules = tuple(_rule(layers, name, hidden_size, seen) for name in layers.values)
    return Dialect(None, rules=rules, ignored=ignored, kv_cache=cache)


def algorithm_layout(keys: Keys, algorithm: str, hidden_size: int) -> WeightLayout | None:
    """The layout that an algorithm's name stands for."""
    if algorithm in BY_ROW:
        keys.passed_over("group_size")
        return layouts.per_row(BY_ROW[algorithm], hidden_size, 32)
    if algorithm in BY_GROUP:
        group = keys.whole("quantization_group", ("group_size",), 1_000_000, default=128)
        return layouts.grouped(Dtype.INT4, group)
    layout = ALGORITHMS[algorithm]
    size = keys.maybe_whole("quantization_group", ("group_size",), 1_000_000, least=0)
    if size and layout is not None and layout.block_elements not in (1, size) and layout is not layouts.BLOCK_FP8:
        raise keys.refused("group_size", f"is {size:,}, but {algorithm} has blocks of {layout.block_elements:,}.")
    return layout


def _rule(layers: Keys, name: object, hidden_size: int, seen: dict[tuple[object, object], WeightLayout | None]) -> Rule:
    """The rule of one entry; thousands of them say the same, so what was `seen` is not read again."""
    if not isinstance(name, str) or not 1 <= len(name) <= LONGEST_NAME:
        raise layers.refused(quoted(name), "is no name of a layer.")
    entry = layers.values[name]
    if not isinstance(entry, Mapping):
        raise layers.refused(quoted(name), "must be an object.")
    algorithm, group = entry.get("quant_algo"), entry.get("group_size")
    if not isinstance(algorithm, str) or algorithm not in KNOWN or algorithm == "MIXED_PRECISION":
        raise layers.refused(f"{quoted(name)}.quant_algo", "is no algorithm that is known here.")
    kind = (algorithm, group if isinstance(group, int) else None)
    if kind not in seen:
        if len(seen) >= limits.SETTINGS:
            raise layers.refused(quoted(name), f"is of more than {limits.SETTINGS} different formats.")
        seen[kind] = algorithm_layout(Keys(entry, layers.path(quoted(name)), layers.ledger), algorithm, hidden_size)
    return Rule(name, seen[kind], layers.prefix)


def read_mixed_fp8(keys: Keys, hidden_size: int, base: Dialect) -> Dialect:
    """Settings of method fp8 whose experts modelopt has quantized further (DeepSeek V4).

    What its list excludes is excluded from that alone, and stays in FP8.
    """
    algorithm = keys.word("moe_quant_algo", ("moe_quant_algo",), KNOWN)
    keys.passed_over("quant_algo", "quantized_layers", "config_groups", "ignore")
    if algorithm is None:
        raise keys.refused("moe_quant_algo", "is missing.")
    layout = algorithm_layout(keys, algorithm, hidden_size)
    if layout is None:
        raise keys.refused("moe_quant_algo", "must name one algorithm.")
    cache = read_cache_type(keys, "kv_cache_scheme") or read_cache_type(keys, "kv_cache_quant_algo")
    return Dialect(base.layout, base.groups, {WeightGroup.ROUTED_EXPERTS: layout}, kv_cache=cache)
