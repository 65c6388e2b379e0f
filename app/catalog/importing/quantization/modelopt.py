"""modelopt: an algorithm for all layers or one for each, in config.json or in the hf_quant_config.json beside it."""

from collections.abc import Mapping
from types import MappingProxyType

from app.calc.dtypes import Dtype, WeightLayout
from app.calc.layers.parts import WeightGroup
from app.catalog.importing import limits
from app.catalog.importing.errors import quoted
from app.catalog.importing.keys import Keys
from app.catalog.importing.quantization import layouts
from app.catalog.importing.quantization.naming import Rule
from app.catalog.importing.quantization.settings import LONGEST_NAME, read_cache_type, read_ignored, refuse_too_many
from app.catalog.importing.quantization.shipping import Dialect

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
