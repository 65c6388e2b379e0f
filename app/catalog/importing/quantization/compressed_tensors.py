"""compressed-tensors: groups of modules with a scheme each, and a list of what is ignored."""

from app.calc.dtypes import Dtype, WeightLayout
from app.catalog.importing import limits
from app.catalog.importing.keys import Keys
from app.catalog.importing.quantization import layouts
from app.catalog.importing.quantization.dialects import WITH_HEAD
from app.catalog.importing.quantization.naming import Rule
from app.catalog.importing.quantization.settings import read_cache_type, read_ignored, read_names, refuse_too_many
from app.catalog.importing.quantization.shipping import Dialect

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
