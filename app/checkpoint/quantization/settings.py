"""Keys that several dialects of quantization settings have in common: lists of names, bits, groups, cache schemes."""

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from app.calc.dtypes import Dtype, WeightLayout
from app.checkpoint import limits
from app.checkpoint.keys import Keys, quoted
from app.checkpoint.quantization.layouts import integer
from app.checkpoint.quantization.naming import Rule

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
STACK = re.compile(r"(?:\w{1,40}\.){0,8}(?:layers|h|blocks)")


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
    if not isinstance(items, list):
        raise keys.refused(key, "must be a list of names.")
    refuse_too_many(keys, key, items)
    if any(not isinstance(item, str) or not 1 <= len(item) <= LONGEST_NAME for item in items):
        raise keys.refused(key, "has an entry that is no name.")
    return tuple(dict.fromkeys(items))


def refuse_too_many(keys: Keys, key: str, names: Collection[Any]) -> None:
    """Refuse more names than are looked at.

    Raises:
        ConfigError: too many, or too long together.
    """
    if len(names) > limits.NAMES:
        raise keys.refused(key, f"has {len(names):,} entries, more than {limits.NAMES:,}.")
    if sum(len(name) for name in names if isinstance(name, str)) > limits.LETTERS:
        raise keys.refused(key, f"has names of more than {limits.LETTERS:,} letters together.")


def read_each(
    keys: Keys, key: str, names: Collection[str], read: Callable[[Keys], WeightLayout | None]
) -> tuple[Rule, ...]:
    """A rule for each of the named blocks; thousands of them say the same, and that is read once.

    Raises:
        ConfigError: one is no block, or there are too many different ones.
    """
    refuse_too_many(keys, key, names)
    keys.passed_over(*names)
    seen: dict[str, WeightLayout | None] = {}
    rules = []
    for name in names:
        value = keys.values[name]
        if not 1 <= len(name) <= LONGEST_NAME or not isinstance(value, Mapping):
            raise keys.refused(quoted(name), "must be an object.")
        said = repr(value)
        if said not in seen:
            if len(seen) >= limits.SETTINGS:
                raise keys.refused(key, f"has more than {limits.SETTINGS} different formats.")
            seen[said] = read(Keys(value, keys.path(quoted(name)), keys.ledger))
        rules.append(Rule(name, seen[said], keys.prefix))
    return tuple(rules)


def refuse_parts_of_stacks(keys: Keys, key: str) -> None:
    """Settings for whole stacks of layers are as good as none; for some layers alone they are not read.

    Raises:
        ConfigError: other names.
    """
    keys.passed_over(key)
    value = keys.values.get(key)
    if value is None:
        return
    waiting: list[Any] = [value]
    found: list[str] = []
    while waiting and len(found) <= limits.LIST:
        item = waiting.pop()
        if isinstance(item, str):
            found += item.split(",")
        elif isinstance(item, list):
            waiting += item
        else:
            raise keys.refused(key, "must name stacks of layers.")
    if any(STACK.fullmatch(name.strip()) is None for name in found):
        raise keys.refused(key, "names something else than whole stacks of layers, which is not read.")


def read_ignored(keys: Keys, names: Sequence[str] = IGNORE_KEYS) -> tuple[Rule, ...]:
    """What stays wide."""
    paths = {key: keys.path(key) for key in names}
    return tuple(Rule(name, None, path) for key, path in paths.items() for name in read_names(keys, key))


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
