"""The table of residuals: each measurement with its predictions, how far off they are, and a way into the workbench."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from app.calc.notation import significant
from app.measured import scenario_of
from app.validation.compared import Compared, Inside
from app.validation.words import METRICS, value_words
from app.web import listing, urls
from app.web.listing import Column

_SHOWN = ("factor", "metric", "measured", "held_out", "interval", "in_sample", "source")
_INSIDE = {Inside.YES: "inside", Inside.NO: "outside", Inside.UNCLAIMED: "none claimed"}


@dataclass(frozen=True, slots=True)
class Cell:
    """One figure of a row, and a mark that stands before it. `text` is None where it is unknown."""

    text: str | None
    numeric: bool
    mark: str = ""
    title: str = ""


@dataclass(frozen=True, slots=True)
class Residual:
    """One measurement. Its name leads to the workbench with the scenario that was measured."""

    name: str
    href: str
    about: str
    cells: Sequence[Cell]


def shown(columns: Iterable[Column[Compared]]) -> list[Column[Compared]]:
    """The columns of the table, after the name."""
    by_name = {column.name: column for column in columns}
    return [by_name[name] for name in _SHOWN]


def residuals(rows: Iterable[Compared], columns: Sequence[Column[Compared]]) -> list[Residual]:
    """The rows of the table, in the order of `rows`, with a cell under each of `columns`."""
    return [
        Residual(
            name=f"{row.model} on {_cards(row)}",
            href=urls.workbench(urls.scenario_items(scenario_of(row.measurement))),
            about=_about(row),
            cells=[_cell(row, column) for column in columns],
        )
        for row in rows
    ]


def off_by(row: Compared) -> str:
    """How many times off, and in which direction: 1.4× too slow."""
    direction = "too fast" if row.speed > 1 else "too slow"
    return f"{significant(row.factor, 3)}× {direction}"


def _cards(row: Compared) -> str:
    gpus = row.measurement.gpus
    return row.accelerator if gpus == "1" else f"{gpus} × {row.accelerator}"


def _about(row: Compared) -> str:
    m = row.measurement
    load = f"{m.concurrency} at a time" if m.concurrency else "as many as fit"
    split = "".join(
        f", {name} {degree}"
        for name, degree in (("TP", m.tensor), ("PP", m.pipeline), ("EP", m.expert), ("DP", m.data))
        if degree != "1"
    )
    lengths = f"{int(m.prompt_tokens):,} in, {int(m.output_tokens):,} out"
    cached = f", {int(m.cached_tokens):,} cached" if m.cached_tokens else ""
    return f"{row.engine} {m.version}, {m.weights}{split} · {lengths}{cached}, {load}"


def _cell(row: Compared, column: Column[Compared]) -> Cell:
    metric, numeric = row.measurement.metric, column.kind is listing.Kind.NUMBER
    if column.name == "metric":
        return Cell(METRICS[metric], numeric, mark="" if row.is_scored else "not counted")
    if column.name == "factor":
        return Cell(off_by(row), numeric)
    if column.name == "interval":
        return Cell(_INSIDE[row.inside], numeric, title=_interval(row))
    if column.name == "source":
        return Cell(row.measurement.source, numeric, title=row.measurement.note)
    value = column.value(row)
    return Cell(None if value is None else value_words(float(value), metric), numeric)


def _interval(row: Compared) -> str:
    if row.low is None or row.high is None:
        return ""
    metric = row.measurement.metric
    return f"{value_words(row.low, metric)} to {value_words(row.high, metric)}"
