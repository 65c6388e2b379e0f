"""What the page of predicted against measured shows beside its list."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from app.charts.figure import Chart
from app.charts.validation_chart import validation_charts
from app.pages.hardware_view import KeyFigure
from app.validation.compared import Compared
from app.validation.errors import SLICES, Errors, Slice, left_out_counts, slice_of, slices
from app.validation.sheet import ValidationSheet
from app.validation.worst import Group, worst
from app.web import urls
from app.web.listing import Listing

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
