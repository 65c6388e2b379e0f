"""What the list of models can be asked, and what its words mean.

The rows of the list of models: each figure as it is written, unknown ones and those beyond a limit marked.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from app.calc.model.architecture import MixerKind
from app.calc.model.parameters import NATIVE
from app.calc.quantity import GB, significant
from app.catalog.facts import ModelFacts
from app.web import listing, urls
from app.web.listing import Bound, Column

Models = Sequence[Column[ModelFacts]]
BILLION, KIB = 1e9, 1024
FIRST_YEAR, LAST_YEAR = 2000, 2100
KIND_LABELS: Mapping[str, str] = {"dense": "dense", "experts": "mixture of experts"}
ATTENTION_LABELS: Mapping[MixerKind, str] = {
    MixerKind.FULL: "full everywhere",
    MixerKind.WINDOW: "sliding windows",
    MixerKind.CHUNK: "chunks",
    MixerKind.LATENT: "latent (MLA)",
    MixerKind.SPARSE: "sparse selection",
    MixerKind.COMPRESSED: "compressed",
    MixerKind.RECURRENT: "recurrent, hybrid",
}
_TEXT, _NUMBER, _CHOICE = listing.Kind.TEXT, listing.Kind.NUMBER, listing.Kind.CHOICE
_LETTERS = ("A to Z", "Z to A")
_DATES = ("oldest first", "newest first")
_BOTH, _LEAST, _MOST = (Bound.MIN, Bound.MAX), (Bound.MIN,), (Bound.MAX,)


def model_columns(models: Collection[ModelFacts] = ()) -> Models:
    """The columns of the list, in the order of its table. The families to choose from are those of `models`."""
    families = tuple((name, name) for name in dict.fromkeys(facts.record.family for facts in models))
    kinds, attention = tuple(KIND_LABELS.items()), tuple((k.value, words) for k, words in ATTENTION_LABELS.items())
    return (
        _searched("id", "Id", lambda f: f.record.id),
        _searched("hub", "Repository", lambda f: f.record.hub_id),
        _searched("aliases", "Same shape", lambda f: " ".join(f.record.same_shape)),
        Column("name", "Name", _TEXT, lambda f: f.record.name, searched=True, orders=_LETTERS),
        Column(
            "family", "Family", _CHOICE, lambda f: f.record.family, choices=families, searched=True, orders=_LETTERS
        ),
        Column("released", "Released", _TEXT, released, orders=_DATES),
        _number("year", "Year", "", year, ends=(FIRST_YEAR, LAST_YEAR), bounds=_BOTH, sortable=False),
        Column("kind", "Kind", _CHOICE, kind, choices=kinds, orders=_LETTERS),
        _number("params", "Parameters", "10⁹", lambda f: f.counts.total / BILLION, bounds=_BOTH),
        _number("active", "Active", "10⁹", lambda f: f.counts.active / BILLION),
        Column("attention", "Attention", _CHOICE, lambda f: f.kind.value, choices=attention, orders=_LETTERS),
        _number("layers", "Layers", "", lambda f: f.architecture.n_layers),
        _number("context", "Context", "tokens", lambda f: f.architecture.max_position, bounds=_LEAST),
        _number("kv", "Cache a token", "KiB", lambda f: f.usual_cache.bytes_per_token / KIB, bounds=_MOST),
        _number("weights", "As shipped", "GB", lambda f: f.shipped.loaded_bytes / GB),
        Column("format", "Format", _TEXT, shipped_format, orders=_LETTERS),
    )


def kind(facts: ModelFacts) -> str:
    """Dense, or of experts."""
    return "experts" if facts.has_experts else "dense"


def released(facts: ModelFacts) -> str | None:
    """The day, month or year it came out, as far as it is known."""
    return facts.record.released.date if facts.record.released else None


def year(facts: ModelFacts) -> int | None:
    """The year of it."""
    date = released(facts)
    return int(date[:4]) if date else None


def shipped_format(facts: ModelFacts) -> str:
    """The format of the first checkpoint: its name, or the narrowest of a mixture."""
    plan = facts.record.native_plan
    return f"mixed, {plan.narrowest.element}" if plan.label == NATIVE else str(plan.label)


def _searched(name: str, label: str, value: Callable[[ModelFacts], str]) -> Column[ModelFacts]:
    return Column(name, label, _TEXT, value, searched=True, sortable=False)


def _number(
    name: str,
    label: str,
    unit: str,
    value: Callable[[ModelFacts], float | None],
    *,
    ends: tuple[float, float] = (0, 1e9),
    bounds: tuple[Bound, ...] = (),
    sortable: bool = True,
) -> Column[ModelFacts]:
    return Column(name, label, _NUMBER, value, unit, (), bounds, ends[0], ends[1], sortable=sortable)


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
