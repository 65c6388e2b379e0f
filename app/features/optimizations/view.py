"""Figures and variants of an optimization in words: values with their units, and how both sides stand to each other.

The optimizations as a page shows them: an overview, and a card for each.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from app.calc.derivation import Explanation
from app.calc.optimize.optimization import Better, Figure, Level, Optimization, Variants, figure_at, written
from app.calc.quantity import quantity, significant
from app.features.compare.view import change_words
from app.features.learn.published import Evidence, load_evidence
from app.features.optimizations.charts.gallery import optimization_chart
from app.features.workbench.answer_view import BINARY, DECIMAL, merge_patch, subject
from app.features.workbench.goodput_view import GoodputView, goodput_view
from app.features.workbench.undo import UNDO, replaced
from app.scenario.answer import Answer
from app.scenario.refusal import ScenarioError
from app.scenario.scenario import Scenario
from app.web import urls
from app.web.figure import Chart

DIGITS = 3
ALIKE = 5e-4
"""Two numbers that differ by less are called the same."""
_WRITTEN_OUT = frozenset({"B", "s", "FLOP", "B/s", "FLOP/s", "W", "$"})
"""Units that stand in each cell, since they take prefixes; all others stand in the heading."""
_WHOLE = frozenset({"", "tokens", "sequences"})


@dataclass(frozen=True, slots=True)
class FigureRow:
    """One figure: both sides, the change with its sign, and whether it is better."""

    label: str
    level: str
    before: str
    after: str
    change: str
    verdict: str


@dataclass(frozen=True, slots=True)
class VariantRow:
    """One variant in words."""

    label: str
    cells: Sequence[str]
    is_here: bool
    note: str


@dataclass(frozen=True, slots=True)
class VariantTable:
    """The variants of an optimization; a heading holds the unit where the cells do not."""

    columns: Sequence[str]
    rows: Sequence[VariantRow]
    has_notes: bool


def figure_row(figure: Figure, *, binary: bool) -> FigureRow:
    """One figure in words."""
    return FigureRow(
        figure.of.label,
        figure.level.value,
        written_out(figure.before, figure.of.unit, binary=binary),
        written_out(figure.after, figure.of.unit, binary=binary),
        change(figure, binary=binary),
        verdict(figure),
    )


def written_out(value: float | None, unit: str, *, binary: bool) -> str:
    """A value with its unit; a dash where there is none."""
    if value is None:
        return "–"
    if unit in _WHOLE and value == int(value):
        return quantity(value, unit.removesuffix("s") if value == 1 else unit, DIGITS)
    if unit in _WRITTEN_OUT:
        return quantity(value, unit, DIGITS, binary=binary)
    return f"{_number(value)} {unit}".rstrip()


def together(text: str) -> str:
    """A text whose per cent signs stay on the line of their numbers."""
    return text.replace(" %", "\u00a0%")


def is_same(figure: Figure) -> bool:
    """Whether both sides are known and, to all that is shown, alike."""
    if figure.before is None or figure.after is None:
        return False
    return abs(figure.after - figure.before) <= ALIKE * max(abs(figure.before), abs(figure.after))


def change(figure: Figure, *, binary: bool) -> str:
    """From without to with: +12 %, −55 %, 0.45 ×; shares in points; what was nothing before as what is there now."""
    if figure.before is None or figure.after is None:
        return ""
    if is_same(figure):
        return "same"
    difference = figure.after - figure.before
    sign = "−" if difference < 0 else "+"
    if figure.of.unit == "%":
        return f"{sign}{significant(abs(difference), DIGITS)} points"
    if figure.ratio is None:
        return f"{sign}{written_out(abs(difference), figure.of.unit, binary=binary)}"
    return change_words(figure.ratio)


def verdict(figure: Figure) -> str:
    """Better or worse; empty where neither way is, or nothing changes."""
    if figure.before is None or figure.after is None or figure.of.better is Better.NEITHER or is_same(figure):
        return ""
    return "better" if (figure.after > figure.before) == (figure.of.better is Better.HIGHER) else "worse"


def times_words(ratio: float | None) -> str:
    """With ÷ without, for a narrow column: 1.48 ×; a dash where it is not known."""
    if ratio is None:
        return "–"
    return "1 ×" if abs(ratio - 1) <= ALIKE else f"{significant(ratio, DIGITS)} ×"


def variant_table(variants: Variants | None, *, binary: bool) -> VariantTable | None:
    """The variants in words; None where there are no more than two sides."""
    if variants is None:
        return None
    units = [column.unit for column in variants.columns]
    return VariantTable(
        [_heading(column.label, column.unit) for column in variants.columns],
        [
            VariantRow(
                together(row.label),
                [_cell(value, unit, binary=binary) for value, unit in zip(row.values, units, strict=True)],
                row.is_here,
                row.note,
            )
            for row in variants.rows
        ],
        any(row.note for row in variants.rows),
    )


def _heading(label: str, unit: str) -> str:
    return label if not unit or unit in _WRITTEN_OUT else f"{label}, {unit}"


def _cell(value: float | None, unit: str, *, binary: bool) -> str:
    if value is None:
        return "–"
    if unit in _WRITTEN_OUT or (unit in _WHOLE and value == int(value)):
        return quantity(value, unit if unit in _WRITTEN_OUT else "", DIGITS, binary=binary)
    return _number(value)


def _number(value: float) -> str:
    """Three digits, whatever the size."""
    return quantity(value, "", DIGITS) if 0 < abs(value) < 1e-4 else significant(value, DIGITS)


_OWN_FIRST = (Level.EXPECTED, Level.CEILING, Level.EXACT)


@dataclass(frozen=True, slots=True)
class OptimizationCard:
    """One optimization, ready to show. `href` leads to the changed scenario; None where no change can be named."""

    id: str
    title: str
    is_used: bool
    sentence: str
    refused: str | None
    label: str
    href: str | None
    figures: Sequence[FigureRow]
    variants: VariantTable | None
    chart: Chart | None
    explanations: Sequence[Explanation]
    limits: Sequence[str]
    evidence: Sequence[Evidence]


@dataclass(frozen=True, slots=True)
class OverviewRow:
    """One line of the overview: the figure that counts; TPOT, throughput and capacity as with ÷ without."""

    id: str
    title: str
    is_used: bool
    counts: FigureRow | None
    tpot: str
    throughput: str
    capacity: str


@dataclass(frozen=True, slots=True)
class OptimizationsView:
    """Everything the page reads."""

    subject: str
    items: Sequence[tuple[str, str]]
    binary: bool
    overview: Sequence[OverviewRow]
    cards: Sequence[OptimizationCard]
    goodput: GoodputView
    stamp: str
    plan: str = field(repr=False)

    @property
    def units(self) -> str:
        """The query value of the size units."""
        return BINARY if self.binary else DECIMAL

    def chart_data(self) -> list[dict[str, Any]]:
        """The figures, for the script that draws them, with the words an exported picture carries."""
        charts = [card.chart for card in self.cards if card.chart is not None]
        if self.goodput.chart is not None:
            charts.append(self.goodput.chart)
        return [
            {"id": chart.id, "title": chart.title, "caption": self.stamp, "figure": chart.figure} for chart in charts
        ]


def optimizations_view(answered: Answer, *, binary: bool) -> OptimizationsView:
    """The page of one answer; sizes in GiB where `binary`."""
    found, units = answered.evaluation.optimizations, BINARY if binary else DECIMAL
    return OptimizationsView(
        subject=subject(answered),
        items=urls.scenario_items(answered.scenario, units),
        binary=binary,
        overview=[_overview(one, binary=binary) for one in found],
        cards=[_card(one, answered, binary=binary) for one in found],
        goodput=goodput_view(answered, units),
        stamp=_stamp(answered),
        plan=urls.query_string(urls.scenario_items(answered.scenario)),
    )


def _stamp(answered: Answer) -> str:
    versions = f"formulas {answered.formula_version}, catalog {answered.catalog_version}"
    return f"{subject(answered)} · Tokenroof {versions}"


def _card(found: Optimization, answered: Answer, *, binary: bool) -> OptimizationCard:
    return OptimizationCard(
        id=found.id,
        title=found.spec.title,
        is_used=found.is_used,
        sentence=together(written(found.said, binary=binary)),
        refused=found.refused,
        label=found.label,
        href=change_href(found, answered, BINARY if binary else DECIMAL),
        figures=[figure_row(figure, binary=binary) for figure in found.figures],
        variants=variant_table(found.variants, binary=binary),
        chart=None if found.refused else optimization_chart(found, answered.evaluation, binary=binary),
        explanations=found.explanations,
        limits=found.limits,
        evidence=[replace(one, text=together(one.text)) for one in load_evidence()[found.id]],
    )


def change_href(found: Optimization, answered: Answer, units: str) -> str | None:
    """The workbench with the change, and the way back; None where no change can be named."""
    if not found.change:
        return None
    # What a log said came out of the scenario as it is; of the changed one it says nothing.
    document = answered.scenario.document() | {"observed": {}}
    try:
        scenario = Scenario.model_validate(merge_patch(document, dict(found.change)))
    except (ValueError, ScenarioError):  # a change must never break the page it stands on
        return None
    items = urls.scenario_items(scenario, units)
    return urls.workbench([*items, (UNDO, replaced(urls.scenario_items(answered.scenario, units), items))])


def _overview(found: Optimization, *, binary: bool) -> OverviewRow:
    counts = _first(found, found.spec.counts)
    return OverviewRow(
        found.id,
        found.spec.title,
        found.is_used,
        None if counts is None else figure_row(counts, binary=binary),
        *(_ratio(_first(found, keys)) for keys in (("tpot",), ("throughput", "throughput_per_gpu"), ("capacity",))),
    )


def _first(found: Optimization, keys: Sequence[str]) -> Figure | None:
    """The first of these figures that is known of both sides, at its best known level."""
    figures = (figure_at(found.figures, key, level) for key in keys for level in _OWN_FIRST)
    return next((f for f in figures if f is not None and f.before is not None and f.after is not None), None)


def _ratio(figure: Figure | None) -> str:
    return times_words(None if figure is None else figure.ratio)
