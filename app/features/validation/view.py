"""What the page of predicted against measured shows beside its list.

The table of residuals: each measurement with its predictions, how far off they are, and a way into the workbench.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from app.calc.quantity import significant
from app.features.catalog.hardware_view import KeyFigure
from app.features.validation.chart import validation_charts
from app.features.validation.compared import METRICS, Compared, Inside, scenario_of, value_words
from app.features.validation.errors import (
    SLICES,
    Errors,
    Group,
    Slice,
    ValidationSheet,
    left_out_counts,
    slice_of,
    slices,
    worst,
)
from app.web import listing, urls
from app.web.figure import Chart
from app.web.listing import Column, Listing

MOST_GROUPS = 6


@dataclass(frozen=True, slots=True)
class SliceRow:
    """One line of the error table: its cells in words, and the list of its measurements."""

    label: str
    href: str | None
    measurements: int
    cross_validated: Sequence[str]
    in_sample: Sequence[str]
    unseen: Sequence[str]


@dataclass(frozen=True, slots=True)
class WorstList:
    """A ranked list of groups, each with the address that lists its measurements."""

    title: str
    groups: Sequence[tuple[Group, str]]


@dataclass(frozen=True, slots=True)
class ValidationView:
    """Everything beside the residuals. `measurements` counts all that were gathered, `scored` those in the errors."""

    figures: Sequence[KeyFigure]
    sliced_by: str
    slices: Sequence[SliceRow]
    charts: Sequence[Chart]
    worst: Sequence[WorstList]
    measurements: int
    unscored: int
    scored: int
    left_out: Sequence[tuple[str, int]]
    left_out_total: int
    calibration: str | None
    stamp: str
    pages: int

    def chart_data(self) -> list[dict[str, Any]]:
        """The figures, for the script that draws them, with the words an exported picture carries."""
        return [
            {"id": chart.id, "title": f"{chart.title}, predicted against measured", "caption": self.stamp}
            | {"figure": chart.figure}
            for chart in self.charts
        ]


def validation_view(found: Sequence[Compared], listing: Listing[Compared], sheet: ValidationSheet) -> ValidationView:
    """The page for the measurements that were `found`."""
    by = listing.view("by") if not listing.refusals else next(iter(SLICES))
    whole = slice_of(found)
    lines = [_row(one, urls.validation(listing.items_with(by, one.key))) for one in slices(found, by)]
    if len(lines) > 1:
        lines.append(_row(whole, None))
    calibration = sheet.calibration_version
    return ValidationView(
        figures=_figures(whole),
        sliced_by=SLICES[by][0],
        slices=lines,
        charts=validation_charts(found),
        worst=_worst(found, listing),
        measurements=len(sheet.catalog.measurements),
        unscored=sum(not row.is_scored for row in sheet.rows),
        scored=whole.measurements,
        left_out=left_out_counts(sheet.left_out),
        left_out_total=len(sheet.left_out),
        calibration=calibration,
        stamp=f"{len(found):,} measurements · calibration {calibration or 'none'} · catalog {sheet.catalog.version}",
        pages=listing.pages(found),
    )


def percent(share: float) -> str:
    """A share in whole percent; small ones with a digit more."""
    return f"{100 * share:.1f} %" if 0 < share < 0.0995 else f"{100 * share:.0f} %"


def _figures(whole: Slice) -> list[KeyFigure]:
    blind, seen, covered = whole.cross_validated, whole.in_sample, whole.coverage
    if blind is None:
        return []

    def figure(label: str, name: str) -> KeyFigure:
        beside = f"in-sample {percent(getattr(seen, name))}" if seen else "no in-sample prediction"
        return KeyFigure(label, percent(getattr(blind, name)), "", beside)

    share = None if covered is None else percent(covered.inside)
    beside = "none claimed" if covered is None else f"of {covered.measurements:,}; 80 % is what it claims"
    return [
        figure("Median error", "median"),
        figure("Mean error", "mean"),
        figure("9 of 10 within", "ninth_decile"),
        figure("Within 20 %", "within_20_percent"),
        figure("Within a factor 2", "within_factor_2"),
        KeyFigure("Inside the interval", share, "", beside),
    ]


def _row(one: Slice, href: str | None) -> SliceRow:
    inside = percent(one.coverage.inside) if one.coverage else "–"
    unseen = one.unseen
    return SliceRow(
        label=one.label,
        href=href,
        measurements=one.measurements,
        cross_validated=[*_cells(one.cross_validated), inside],
        in_sample=_cells(one.in_sample),
        unseen=[percent(unseen.median), percent(unseen.within_factor_2)] if unseen else ["–"] * 2,
    )


def _cells(errors: Errors | None) -> list[str]:
    if errors is None:
        return ["–"] * 5
    shares = (errors.median, errors.mean, errors.ninth_decile, errors.within_20_percent, errors.within_factor_2)
    return [percent(share) for share in shares]


def _worst(found: Sequence[Compared], listing: Listing[Compared]) -> list[WorstList]:
    lists = []
    for kind, title in (("family", "Engine and accelerator family"), ("model", "Engine and model")):
        groups = []
        for group in worst(found, kind, MOST_GROUPS):
            items = dict(listing.items_with(*group.asked[0])) | dict([group.asked[1]])
            groups.append((group, urls.validation([(n, items[n]) for n in listing.names if n in items])))
        lists.append(WorstList(title, groups))
    return lists


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
