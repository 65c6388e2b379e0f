"""The fields of a scenario in words, as their inputs are called, and their values as a person reads them."""

from typing import Any

from app.answer import Answer
from app.calc.notation import quantity, significant
from app.scenario_query import BY_PATH, Kind, QueryField, name_of, written

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
