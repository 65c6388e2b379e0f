"""The keys of a configuration: read with checks, with where each value is from, or refused."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from app.checkpoint import limits

MOST_QUOTED = 60


def quoted(text: object) -> str:
    """`text` fit for a message: printable, and no longer than a line can bear."""
    shown = "".join(c if c.isprintable() else "?" for c in str(text)[: MOST_QUOTED + 1])
    return shown if len(shown) <= MOST_QUOTED else f"{shown[:MOST_QUOTED]}…"


class ConfigError(ValueError):
    """A configuration that is not read: `key` is the full path of what is missing, wrong or unknown."""

    def __init__(self, key: str, message: str) -> None:
        self.key, self.message = key, message
        super().__init__(f"{key}: {message}")


@dataclass(frozen=True, slots=True)
class Suggestion:
    """A family as which an unknown model could be read, and what speaks for it."""

    read_as: str
    because: str


class UnknownFamilyError(ConfigError):
    """A model type that is not known here; `suggestions` are what its keys look like, the likeliest first."""

    def __init__(self, key: str, message: str, suggestions: Iterable[Suggestion] = ()) -> None:
        self.suggestions = tuple(suggestions)
        super().__init__(key, message)


class Origin(StrEnum):
    """How a field got its value; an assumed one is a mark that the user must see."""

    READ = "read"
    DERIVED = "derived"
    DEFAULT = "default"
    ASSUMED = "assumed"


Value = int | float | bool | str | None


@dataclass(frozen=True, slots=True)
class FieldReading:
    """One field of the architecture or of the weight plan. `key` is its full path as the file has it."""

    name: str
    value: Value
    origin: Origin
    key: str | None = None
    note: str = ""


@dataclass(slots=True)
class Ledger:
    """What has been read so far: fields in order, paths that something looked at, and sentences for the user."""

    fields: dict[str, FieldReading] = field(default_factory=dict)
    used: set[str] = field(default_factory=set)
    notices: list[str] = field(default_factory=list)

    def write(self, reading: FieldReading) -> None:
        """Keep a field; the first reading of a name stays."""
        self.fields.setdefault(reading.name, reading)

    def derive(self, name: str, value: Value, note: str) -> None:
        """Keep a field that was computed from others."""
        self.write(FieldReading(name, value, Origin.DERIVED, note=note))

    def assume(self, name: str, value: Value, note: str) -> None:
        """Keep a field that no key and no documented default gives."""
        self.write(FieldReading(name, value, Origin.ASSUMED, note=note))

    def notice(self, sentence: str) -> None:
        if sentence not in self.notices:
            self.notices.append(sentence)


SHOWN_ONE_BY_ONE = 4
"""Items of a list that are written out; of a longer one it is told how often each comes."""


@dataclass(frozen=True, slots=True)
class Keys:
    """`values` of the block at `prefix`.

    `class_defaults` are what the model's class takes for keys that a nested block leaves out: a key that is there and
    null is not left out, and says that there is no such size. `elsewhere` are the full paths of values that were taken
    over from the block around.
    """

    values: Mapping[str, Any]
    prefix: str
    ledger: Ledger
    class_defaults: Mapping[str, Any] = field(default_factory=dict)
    elsewhere: Mapping[str, str] = field(default_factory=dict)

    def path(self, key: str) -> str:
        return self.elsewhere.get(key) or (f"{self.prefix}.{key}" if self.prefix else key)

    def has(self, key: str) -> bool:
        return self.values.get(key) is not None

    def any_of(self, names: Sequence[str]) -> bool:
        return any(self.has(name) for name in names)

    def is_null(self, names: Sequence[str]) -> bool:
        """Whether one of the names is there and null, and none of them has a value."""
        return not self.any_of(names) and any(name in self.values for name in names)

    def class_default(self, names: Sequence[str]) -> Any:
        """What the class takes where none of the names is there; None where one is, or where it takes nothing."""
        if any(name in self.values for name in names):
            return None
        return next((self.class_defaults[name] for name in names if name in self.class_defaults), None)

    def any_known(self, *names: str) -> bool:
        """Whether one of the names has a value, of the block or of the class."""
        return self.any_of(names) or self.class_default(names) is not None

    def passed_over(self, *names: str) -> None:
        """Keys that the model's class does not act on, or that say nothing about sizes."""
        self.ledger.used.update(self.path(name) for name in names if name in self.values)

    def refused(self, key: str, message: str) -> ConfigError:
        return ConfigError(self.path(key), message)

    def whole(
        self,
        name: str,
        names: Sequence[str],
        most: int,
        *,
        default: int | None = None,
        least: int = 1,
        note: str = "",
    ) -> int:
        """A whole number; `default` is the class's own where the key is absent.

        Raises:
            ConfigError: missing, of another type, out of range, or given twice with different values.
        """
        value = self.maybe_whole(name, names, most, default=default, least=least, note=note)
        if value is None:
            raise self.refused(names[0], "is missing.")
        return value

    def maybe_whole(
        self,
        name: str,
        names: Sequence[str],
        most: int,
        *,
        default: int | None = None,
        least: int = 1,
        note: str = "",
    ) -> int | None:
        """The same, or None where neither a key nor a default gives it."""
        key = self._found(names)
        if key is not None:
            value = self._as_whole(key, self.values[key], least, most)
            for other in names:
                if other != key and self.has(other) and self.values[other] != value:
                    raise self.refused(other, f"contradicts {key}, which says {value:,}.")
            self.ledger.write(FieldReading(name, value, Origin.READ, self.path(key), note))
            return value
        if default is None:
            default = self.class_default(names)
        if default is not None:
            self.ledger.write(FieldReading(name, default, Origin.DEFAULT, note=note))
        return default

    def _found(self, names: Sequence[str]) -> str | None:
        self.passed_over(*names)
        return next((name for name in names if self.has(name)), None)

    def _as_whole(self, key: str, value: Any, least: int, most: int) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            raise self.refused(key, f"must be a whole number from {least:,} to {most:,}.")
        return value

    def number(self, name: str, key: str, *, default: float | None = None, most: float = 1e6) -> float | None:
        """A finite number that is not negative."""
        if self._found((key,)) is None:
            return default
        value = self.values[key]
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value <= most:
            raise self.refused(key, f"must be a number from 0 to {most:,.0f}.")
        if not math.isfinite(value):
            raise self.refused(key, "must be finite.")
        self.ledger.write(FieldReading(name, value, Origin.READ, self.path(key)))
        return float(value)

    def flag(self, name: str, names: Sequence[str], *, default: bool, note: str = "") -> bool:
        """True or false; `default` is the class's own where the key is absent."""
        key = self._found(names)
        if key is None:
            known = self.class_default(names)
            known = default if known is None else bool(known)
            self.ledger.write(FieldReading(name, known, Origin.DEFAULT, note=note))
            return known
        value = self.values[key]
        if not isinstance(value, bool):
            raise self.refused(key, "must be true or false.")
        self.ledger.write(FieldReading(name, value, Origin.READ, self.path(key), note))
        return value

    def word(self, name: str, names: Sequence[str], allowed: Sequence[str] | None = None) -> str | None:
        """A short text, one of `allowed` if that is given; None where it is absent."""
        key = self._found(names)
        if key is None:
            return None
        value = self.values[key]
        if not isinstance(value, str) or not value or len(value) > limits.LIST:
            raise self.refused(key, "must be a short text.")
        if allowed is not None and value not in allowed:
            raise self.refused(key, f"is {quoted(value)}, which is not computed; known are {', '.join(allowed)}.")
        self.ledger.write(FieldReading(name, quoted(value), Origin.READ, self.path(key)))
        return value

    def words(self, name: str, key: str, allowed: Sequence[str], length: int | None = None) -> tuple[str, ...] | None:
        """A list of words, each of them `allowed`; one entry a layer where `length` says how many layers there are."""
        items = self._items(key, length)
        if items is None:
            return None
        for item in items:
            if not isinstance(item, str) or item not in allowed:
                shown = quoted(item) if isinstance(item, str) else "no text"
                raise self.refused(key, f"has an entry that is {shown}; known are {', '.join(allowed)}.")
        self._write_list(name, key, items)
        return tuple(items)

    def wholes(
        self, name: str, key: str, most: int, length: int | None = None, least: int = 0
    ) -> tuple[int, ...] | None:
        """A list of whole numbers; one entry a layer where `length` says how many layers there are."""
        items = self._items(key, length)
        if items is None:
            return None
        for item in items:
            if isinstance(item, bool) or not isinstance(item, int) or not least <= item <= most:
                raise self.refused(key, f"has an entry that is no whole number from {least:,} to {most:,}.")
        self._write_list(name, key, items)
        return tuple(items)

    def _items(self, key: str, length: int | None) -> list[Any] | None:
        if self._found((key,)) is None:
            return None
        items = self.values[key]
        if not isinstance(items, list):
            raise self.refused(key, "must be a list.")
        if length is not None and len(items) != length:
            raise self.refused(key, f"has {len(items):,} entries for {length:,} layers.")
        if len(items) > limits.LIST:
            raise self.refused(key, f"has {len(items):,} entries, more than {limits.LIST:,}.")
        return items

    def _write_list(self, name: str, key: str, items: Sequence[Value]) -> None:
        kinds = list(dict.fromkeys(items))
        if len(items) <= SHOWN_ONE_BY_ONE:
            shown = ", ".join(str(item) for item in items)
        else:
            often = [f"{items.count(kind)} × {kind}" for kind in kinds[:6]]
            shown = ", ".join(often) + (" …" if len(kinds) > len(often) else "")
        self.ledger.write(FieldReading(name, shown, Origin.READ, self.path(key)))

    def inside(self, key: str) -> "Keys | None":
        """The block at a key; None where it is absent.

        Raises:
            ConfigError: what stands there is no block.
        """
        if self._found((key,)) is None:
            return None
        value = self.values[key]
        if not isinstance(value, Mapping):
            raise self.refused(key, "must be an object.")
        return Keys(value, self.path(key), self.ledger)
