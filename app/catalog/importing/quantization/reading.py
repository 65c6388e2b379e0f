"""Where a file keeps its quantization settings, in which dialect they are, and what its unquantized weights are."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from app.calc.dtypes import Dtype, WeightFormat, WeightLayout
from app.calc.layers.parts import WeightGroup
from app.catalog.importing import spellings
from app.catalog.importing.errors import ConfigError, quoted
from app.catalog.importing.keys import Keys
from app.catalog.importing.nesting import Located
from app.catalog.importing.provenance import FieldReading, Ledger, Origin
from app.catalog.importing.quantization import layouts
from app.catalog.importing.quantization.patterns import Effort
from app.catalog.importing.quantization.compressed_tensors import read_compressed_tensors
from app.catalog.importing.quantization.dialects import DIALECTS, read_mlx
from app.catalog.importing.quantization.leftovers import unread_settings
from app.catalog.importing.quantization.modelopt import read_mixed_fp8, read_modelopt
from app.catalog.importing.quantization.shipping import Dialect, Shipped, ship
from app.catalog.importing.recipe import Body

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
    """The type of what is not quantized."""
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
    """The settings of a hf_quant_config.json."""
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
