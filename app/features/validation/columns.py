"""What the list of compared measurements can be asked, and the figures of one that are sorted by."""

from collections.abc import Callable, Iterable, Sequence

from app.features.validation.compared import METRICS, Compared, Inside, family_words, regime_words
from app.features.validation.errors import SLICES
from app.web import listing
from app.web.listing import Column

ROWS_A_PAGE = 50
SEARCHED = "model, accelerator, engine, source or note"
_TEXT, _NUMBER, _CHOICE, _VIEW = listing.Kind.TEXT, listing.Kind.NUMBER, listing.Kind.CHOICE, listing.Kind.VIEW
_LETTERS = ("A to Z", "Z to A")
_INSIDE = ((Inside.YES, "inside"), (Inside.NO, "outside"), (Inside.UNCLAIMED, "none claimed"))
_SCORED = (("yes", "counted"), ("no", "speculation not stated"))
Choices = tuple[tuple[str, str], ...]


def validation_columns(rows: Sequence[Compared] = ()) -> Sequence[Column[Compared]]:
    """The columns of the list, in the order of its table. What there is to choose from follows from `rows`."""
    by = tuple((name, f"by {words}") for name, (words, _) in SLICES.items())
    return (
        Column("id", "Id", _TEXT, lambda r: r.measurement.id, searched=True, sortable=False),
        Column("note", "Note", _TEXT, lambda r: r.measurement.note, searched=True, sortable=False),
        Column("name", "Measurement", _TEXT, lambda r: r.model, searched=True, orders=_LETTERS),
        _choice("metric", "Metric", lambda r: r.measurement.metric.value, _metrics(rows), sortable=True),
        _number("measured", "Measured", lambda r: r.measured),
        _number("held_out", "Cross-validated", lambda r: r.held_out),
        _number("factor", "Off by", lambda r: r.factor, orders=("nearest first", "worst first")),
        _number("speed", "Speed", lambda r: r.speed, orders=("too slow first", "too fast first")),
        Column("interval", "Interval", _CHOICE, lambda r: r.inside.value, choices=_INSIDE, orders=_LETTERS),
        _number("in_sample", "In-sample", lambda r: r.in_sample),
        Column("source", "Source", _TEXT, lambda r: r.measurement.source, searched=True, orders=_LETTERS),
        _choice("engine", "Engine", lambda r: r.measurement.engine, _named(rows, lambda r: r.engine, "engine")),
        _choice(
            "accelerator",
            "Accelerator",
            lambda r: r.measurement.accelerator,
            _named(rows, lambda r: r.accelerator, "accelerator"),
        ),
        _choice("model", "Model", lambda r: r.measurement.model, _named(rows, lambda r: r.model, "model")),
        _choice("family", "Accelerator family", lambda r: r.family, _worded(rows, lambda r: r.family, family_words)),
        _choice("regime", "Quantity and load", lambda r: r.regime, _worded(rows, lambda r: r.regime, regime_words)),
        _choice(
            "weights", "Weights", lambda r: r.measurement.weights, _worded(rows, lambda r: r.measurement.weights, str)
        ),
        _choice("scored", "In the errors", lambda r: "yes" if r.is_scored else "no", _SCORED),
        Column("by", "Errors", _VIEW, lambda _: None, choices=by, sortable=False),
    )


def _choice(
    name: str, label: str, value: Callable[[Compared], str], choices: Choices, *, sortable: bool = False
) -> Column[Compared]:
    searched = name in ("engine", "accelerator", "model")
    return Column(name, label, _CHOICE, value, choices=choices, searched=searched, sortable=sortable, orders=_LETTERS)


def _number(
    name: str,
    label: str,
    value: Callable[[Compared], float | None],
    orders: tuple[str, str] = ("least first", "most first"),
) -> Column[Compared]:
    return Column(name, label, _NUMBER, value, orders=orders)


def _metrics(rows: Iterable[Compared]) -> Choices:
    there = {row.measurement.metric for row in rows}
    return tuple((metric.value, words) for metric, words in METRICS.items() if metric in there)


def _named(rows: Iterable[Compared], label: Callable[[Compared], str], field: str) -> Choices:
    """The ids of a field that are there, by the names of the catalog."""
    return _by_label({getattr(row.measurement, field): label(row) for row in rows})


def _worded(rows: Iterable[Compared], value: Callable[[Compared], str], words: Callable[[str], str]) -> Choices:
    return _by_label({found: words(found) for found in map(value, rows)})


def _by_label(labels: dict[str, str]) -> Choices:
    return tuple(sorted(labels.items(), key=lambda item: item[1].casefold()))
