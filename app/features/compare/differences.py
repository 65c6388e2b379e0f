"""The fields of a scenario in words, as their inputs are called, and their values as a person reads them.

The fields in which scenarios differ, each once, in the order of the scenario.

Names for plans: the shortest phrases that tell them apart.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from app.calc.quantity import quantity, significant
from app.scenario.answer import Answer
from app.scenario.query import BY_PATH, FIELDS, Kind, QueryField, name_of, written

_LONGEST = 80
# These are called by the name that the catalog has for them.
_NAMED = ("model.id", "hardware.id", "engine.id")


def label_of(path: str) -> str:
    """The field at `path` in words; one that has none is called by its path, made readable."""
    if path in BY_PATH:
        return BY_PATH[path].label
    above = next((p for p in _above(path) if p in BY_PATH and BY_PATH[p].kind is Kind.JSON), None)
    if above is not None:
        return f"{label_of(above)}: {path.removeprefix(above + '.')}"
    parts = path.removesuffix(".id").split(".")
    words = [part.replace("_", " ") for part in (parts[1:] or parts)[-2:]]  # the section says little beside the field
    text = ", ".join(reversed(words))
    return text[:1].upper() + text[1:]


def value_words(path: str, value: Any, answer: Answer, *, binary: bool = False) -> str:
    """A value of the field at `path`, with its unit."""
    if path == "model.id":
        return answer.evaluation.deployment.architecture.name
    if path == "hardware.id":
        return answer.evaluation.deployment.accelerator.name
    if path == "engine.id":
        return answer.engine.name
    field = BY_PATH.get(path)
    if value is None:
        return (field.ui.empty if field and _may_be_empty(field) else "") or "not set"
    if isinstance(value, (dict, list)):
        return f"given, {len(value):,} {'entry' if len(value) == 1 else 'entries'}"
    words = dict(field.ui.choices).get(written(value)) if field else None
    if words is not None:
        return words
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, (int, float)):
        return _number(field, value, binary=binary)
    text = str(value)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


def _may_be_empty(field: QueryField) -> bool:
    """Whether null says what an empty input does; of a part that the scenario lacks, only its first field says it."""
    return field.empty_is_null or name_of(field.path.rpartition(".")[0]) == field.name


def _number(field: QueryField | None, value: float, *, binary: bool) -> str:
    if field and field.kind is Kind.BYTES:
        return quantity(value, "B", 4, binary=binary)
    number = f"{value:,}" if isinstance(value, int) else significant(value, 6)
    return field.with_unit(number) if field else number


def phrase_of(path: str, value: Any, answer: Answer) -> str:
    """The value as the name of a plan that differs in it: short, and clear without its label."""
    words = value_words(path, value, answer)
    if path in _NAMED:
        return words
    if path == "workload.concurrency" and value is None:
        return "as many users as fit"
    pattern = BY_PATH[path].ui.phrase if path in BY_PATH else ""
    if not pattern:
        return f"{label_of(path)}: {words}"
    text = pattern.format(words)
    return text.removesuffix("s") if value == 1 and text.endswith(("users", "GPUs")) else text


def _above(path: str) -> list[str]:
    parts = path.split(".")
    return [".".join(parts[:n]) for n in range(1, len(parts))]


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


MOST_PARTS = 3
MOST_FIELDS = 10
# What a person would name a plan by comes first; fields that only follow from these come last.
_FIRST = (
    "model.id",
    "hardware.id",
    "precision.weights",
    "precision.kv_cache",
    "parallelism.tensor",
    "parallelism.pipeline",
    "parallelism.data",
    "parallelism.expert",
    "hardware.count",
    "engine.id",
    "workload.prompt_tokens",
    "workload.output_tokens",
    "workload.concurrency",
)


def names(answers: Sequence[Answer], titles: Sequence[str | None], letters: Sequence[str]) -> list[str]:
    """A name for each answer, no two alike: its title, else what sets it apart, else "Plan A"."""
    if len(answers) == 1 and titles[0] is None:
        deployment = answers[0].evaluation.deployment
        return [f"{deployment.architecture.name} on {deployment.accelerator.name}"]
    phrases = _phrases(answers)
    found = [
        title or phrase or f"Plan {letter}" for title, phrase, letter in zip(titles, phrases, letters, strict=True)
    ]
    return [
        f"{name} ({letter})" if found.count(name) > 1 else name for name, letter in zip(found, letters, strict=True)
    ]


def _phrases(answers: Sequence[Answer]) -> list[str]:
    """The same few fields for all, so that the names can be read across; empty where nothing differs."""
    found = sorted(differences(answers), key=_rank)[:MOST_FIELDS]
    wanted = len({answer.scenario.model_dump_json() for answer in answers})
    best: tuple[int, list[str]] = (1, [""] * len(answers))
    for count in range(1, MOST_PARTS + 1):
        for chosen in combinations(found, count):
            told = [", ".join(_parts(chosen, index, answers)) for index in range(len(answers))]
            if len(set(told)) > best[0]:
                best = len(set(told)), told
            if best[0] == wanted:
                return best[1]
    return best[1]


def _rank(difference: Difference) -> int:
    return _FIRST.index(difference.path) if difference.path in _FIRST else len(_FIRST)


def _parts(chosen: Sequence[Difference], index: int, answers: Sequence[Answer]) -> list[str]:
    found = []
    for one in chosen:
        value = one.values[index]
        if isinstance(value, (dict, list)):
            found.append(f"{one.label}: {one.words(answers, binary=False)[index]}")
        else:
            found.append(phrase_of(one.path, value, answers[index]))
    return found
