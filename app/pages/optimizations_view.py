"""The optimizations as a page shows them: an overview, and a card for each."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from app.answer import Answer
from app.calc.explanation import Explanation
from app.calc.optimize.optimization import Figure, Level, Optimization, figure_at, written
from app.charts.figure import Chart
from app.charts.optimization_charts import optimization_chart
from app.learn.evidence import Evidence, load_evidence
from app.pages.answer_view import BINARY, DECIMAL, merge_patch, subject
from app.pages.goodput_view import GoodputView, goodput_view
from app.pages.optimization_cells import FigureRow, VariantTable, figure_row, times_words, together, variant_table
from app.pages.undo import UNDO, replaced
from app.refusal import ScenarioError
from app.scenario import Scenario
from app.web import urls

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
