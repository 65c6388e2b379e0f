"""The fields in which scenarios differ, each once, in the order of the scenario."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from app.answer import Answer
from app.compare.field_words import label_of, value_words
from app.scenario_query import FIELDS, Kind

MOST_KEYS = 12
"""Keys of a document of one's own that are told one by one; where more differ, they are counted."""
_DOCUMENTS = frozenset(field.path for field in FIELDS if field.kind is Kind.JSON)
# Beside another model or card these say nothing that its name does not.
_SAID_BY_NAME = frozenset({"model.name", "hardware.custom.name"})


@dataclass(frozen=True, slots=True)
class Difference:
    """One field that differs: its path, its label, and a value for each plan, None where it is not set."""

    path: str
    label: str
    values: tuple[Any, ...]

    def words(self, answers: Sequence[Answer], *, binary: bool) -> tuple[str, ...]:
        """The values as a person reads them."""
        if any(isinstance(value, (dict, list)) for value in self.values):
            return _documents(self.values)
        pairs = zip(self.values, answers, strict=True)
        return tuple(value_words(self.path, value, answer, binary=binary) for value, answer in pairs)


def differences(answers: Sequence[Answer]) -> list[Difference]:
    """Every field in which the normalised scenarios of `answers` are not all alike, whatever fields there are."""
    documents = [answer.scenario.document() for answer in answers]
    found = [Difference(path, label_of(path), values) for path, values in _differing("", documents)]
    return [one for one in found if one.path not in _SAID_BY_NAME]


def _differing(path: str, values: Sequence[Any]) -> Iterator[tuple[str, tuple[Any, ...]]]:
    if all(_same(value, values[0]) for value in values):
        return
    if not any(isinstance(value, dict) for value in values) or _is_whole(path, values):
        yield path, tuple(values)
        return
    parts = [value if isinstance(value, dict) else {} for value in values]
    inside = [
        pair
        for key in dict.fromkeys(key for part in parts for key in part)
        for pair in _differing(f"{path}.{key}" if path else key, [part.get(key) for part in parts])
    ]
    if path in _DOCUMENTS and len(inside) > MOST_KEYS:
        yield path, tuple(values)
        return
    yield from inside or [(path, tuple(values))]  # an empty part beside none differs in no key


def _is_whole(path: str, values: Sequence[Any]) -> bool:
    """True for a document that not every plan has: it is told as one thing, not key by key."""
    return path in _DOCUMENTS and not all(isinstance(value, dict) for value in values)


def _same(one: Any, other: Any) -> bool:
    """Equal, and of a kind, at any depth: 1 is not true."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_same(value, other[key]) for key, value in one.items())
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_same, one, other))
    return bool(one == other) and isinstance(one, bool) == isinstance(other, bool)


def _documents(values: Sequence[Any]) -> tuple[str, ...]:
    """Documents, told apart by their order of appearance."""
    seen = list[Any]()
    found = []
    for value in values:
        if value is None:
            found.append("not set")
            continue
        if value not in seen:
            seen.append(value)
        size = len(value) if isinstance(value, (dict, list)) else 1
        found.append(f"version {seen.index(value) + 1}, {size:,} {'entry' if size == 1 else 'entries'}")
    return tuple(found)
