"""Keys that several dialects of quantization settings have in common: lists of names, bits, groups, cache schemes."""

from collections.abc import Sequence

from app.calc.dtypes import Dtype, WeightLayout
from app.catalog.importing import limits
from app.catalog.importing.errors import quoted
from app.catalog.importing.keys import Keys
from app.catalog.importing.quantization.layouts import integer
from app.catalog.importing.quantization.naming import Rule

IGNORE_KEYS = (
    "modules_to_not_convert",
    "ignore",
    "ignored_layers",
    "exclude",
    "exclude_modules",
    "llm_int8_skip_modules",
)
CACHE_WORDS = {"FP8": Dtype.FP8, "fp8": Dtype.FP8, "INT8": Dtype.INT8, "NVFP4": Dtype.FP4}
LONGEST_NAME = 1_000


def read_names(keys: Keys, key: str) -> tuple[str, ...]:
    """A list of names of modules; empty where the key is absent.

    Raises:
        ConfigError: no list of texts, or longer than is sensible.
    """
    keys.passed_over(key)
    items = keys.values.get(key)
    if items is None:
        return ()
    if isinstance(items, str):
        items = [items]
    if not isinstance(items, list) or len(items) > limits.NAMES:
        raise keys.refused(key, "must be a list of names.")
    if any(not isinstance(item, str) or not 1 <= len(item) <= LONGEST_NAME for item in items):
        raise keys.refused(key, "has an entry that is no name.")
    return tuple(dict.fromkeys(items))


def read_ignored(keys: Keys, names: Sequence[str] = IGNORE_KEYS) -> tuple[Rule, ...]:
    """What stays wide."""
    return tuple(Rule(name, None, keys.path(key)) for key in names for name in read_names(keys, key))


def read_integer(keys: Keys, names: Sequence[str], default: int | None = None) -> Dtype:
    """An integer type by its bits.

    Raises:
        ConfigError: a width that is not computed.
    """
    bits = keys.whole("weight_bits", names, 64, default=default)
    element = integer(bits)
    if element is None:
        key = next((name for name in names if keys.has(name)), names[0])
        raise keys.refused(key, f"elements of {bits} bits are not computed, only those of 4 and 8.")
    return element


def read_group(keys: Keys, names: Sequence[str], default: int, row: int) -> int:
    """Elements that share a scale; -1 stands for a whole row, which is taken to be as wide as the model."""
    key = next((name for name in names if keys.has(name)), None)
    if key is not None and keys.values[key] == -1:
        keys.passed_over(key)
        return row
    return keys.whole("quantization_group", names, limits.WIDTH, default=default)


def read_cache_type(keys: Keys, key: str) -> Dtype | None:
    """The type that a cache scheme prescribes, given as a word or as bits and type; None where none is.

    Raises:
        ConfigError: a scheme that is not understood.
    """
    keys.passed_over(key)
    scheme = keys.values.get(key)
    if scheme is None:
        return None
    if isinstance(scheme, str):
        if scheme not in CACHE_WORDS:
            raise keys.refused(key, f"is {quoted(scheme)}, which is not computed.")
        return CACHE_WORDS[scheme]
    inside = keys.inside(key)
    assert inside is not None  # noqa: S101  # for the type checker: it is not null
    bits = inside.whole("kv_cache_bits", ("num_bits",), 64)
    kind = inside.word("kv_cache_type", ("type",), ("float", "int")) or "float"
    types = {(8, "float"): Dtype.FP8, (8, "int"): Dtype.INT8, (4, "float"): Dtype.FP4}
    if (bits, kind) not in types:
        raise inside.refused("num_bits", f"a cache of {bits}-bit {kind} elements is not computed.")
    inside.passed_over(*inside.values)
    return types[bits, kind]


def same_for(patterns: Sequence[str], layout: WeightLayout | None, key: str) -> tuple[Rule, ...]:
    """Rules that give all patterns one layout."""
    return tuple(Rule(pattern, layout, key) for pattern in patterns)
