"""The rows of the list of models: each figure as it is written, unknown ones and those beyond a limit marked."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from app.calc.notation import significant
from app.model_facts import ModelFacts
from app.web import listing, urls
from app.web.listing import Column
from app.web.model_columns import ATTENTION_LABELS, BILLION, KIND_LABELS, kind

_DIGITS = 4


@dataclass(frozen=True, slots=True)
class ModelCell:
    """One figure of a row. `text` is None where it is unknown; `title` says it at length."""

    text: str | None
    numeric: bool
    beyond_limit: bool = False
    title: str = ""


@dataclass(frozen=True, slots=True)
class ModelRow:
    """One row of the list: its name leads to its page, the cells stand under the list's columns."""

    name: str
    href: str
    about: str
    cells: Sequence[ModelCell]


def shown(columns: Iterable[Column[ModelFacts]]) -> list[Column[ModelFacts]]:
    """The columns of the table, after the name."""
    return [column for column in columns if column.sortable and column.name != "name"]


def model_rows(models: Iterable[ModelFacts], columns: Sequence[Column[ModelFacts]]) -> list[ModelRow]:
    """The rows of the table, in the order of `models`, with a cell under each of `columns`."""
    return [
        ModelRow(
            name=facts.record.name,
            href=urls.model(facts.record.id),
            about=f"{facts.record.family} · {size_words(facts)}",
            cells=[_cell(facts, column) for column in columns],
        )
        for facts in models
    ]


def size_words(facts: ModelFacts) -> str:
    """Parameters, and how many of them are active where that is fewer: "671B, 37.6B active"."""
    counts = facts.counts
    size = f"{billions(counts.total)}B"
    return f"{size}, {billions(counts.active)}B active" if facts.has_experts else size


def billions(params: float) -> str:
    """Parameters in billions to three digits, and to the last whole billion from a hundred on."""
    value = params / BILLION
    return f"{value:,.0f}" if value >= 100 else significant(value, 3)


def _cell(facts: ModelFacts, column: Column[ModelFacts]) -> ModelCell:
    value = column.value(facts)
    if column.name == "kind":
        return ModelCell(KIND_LABELS[kind(facts)], numeric=False)
    if column.name == "attention":
        return ModelCell(ATTENTION_LABELS[facts.kind], numeric=False, title=facts.architecture.attention_kind)
    numeric = column.kind is listing.Kind.NUMBER
    if value is None or isinstance(value, str):
        return ModelCell(value, numeric)
    if column.name in ("layers", "context"):
        return ModelCell(f"{value:,.0f}", numeric)
    beyond = column.name == "kv" and facts.usual_cache.beyond_limit
    return ModelCell(significant(value, _DIGITS if value < 1000 else _DIGITS + 1), numeric, beyond)
