"""The doors in the wall as a page shows them: an overview, and a card for each."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from app.answer import Answer
from app.calc.doors.chunked_prefill import PAUSE
from app.calc.doors.disaggregation import EACH, GOOD
from app.calc.doors.door import Door, DoorId, Figure, Level
from app.calc.doors.sides import ROOM, THROUGHPUT, TPOT, TTFT
from app.calc.explanation import Explanation
from app.charts.doors.all import chart_of
from app.charts.doors.binary_sizes import in_binary, sizes_of
from app.charts.figure import Chart
from app.learn.evidence import Evidence, load_evidence
from app.pages.answer_view import BINARY, DECIMAL, merge_patch, subject
from app.pages.door_cells import FigureRow, VariantTable, figure_row, figure_rows, times_words, together, variant_table
from app.pages.goodput_view import GoodputView, goodput_view
from app.pages.undo import UNDO, replaced
from app.refusal import ScenarioError
from app.scenario import Scenario
from app.web import urls

COUNTS: Mapping[DoorId, Sequence[str]] = {
    DoorId.QUANTIZATION: (TPOT,),
    DoorId.ATTENTION: (ROOM,),
    DoorId.PAGING: (ROOM,),
    DoorId.BATCHING: (THROUGHPUT,),
    DoorId.PREFIX_CACHING: (TTFT,),
    DoorId.CHUNKED_PREFILL: (PAUSE,),
    DoorId.SPECULATIVE: (TPOT,),
    DoorId.DISAGGREGATION: (GOOD, EACH),
    DoorId.PARALLELISM: (THROUGHPUT,),
    DoorId.NEWER_CARD: (THROUGHPUT,),
}
"""The figure that a door is opened for; the first that is told of both sides."""
_OWN_FIRST = (Level.EXPECTED, Level.CEILING, Level.EXACT)


@dataclass(frozen=True, slots=True)
class DoorCard:
    """One door, ready to show. `href` leads to the changed scenario; None where no change can be named."""

    id: str
    title: str
    is_open: bool
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
    """One line of the overview: the figure that counts, and what TPOT, throughput and room become, open ÷ closed."""

    id: str
    title: str
    is_open: bool
    counts: FigureRow | None
    tpot: str
    throughput: str
    room: str


@dataclass(frozen=True, slots=True)
class DoorsView:
    """Everything the page reads."""

    subject: str
    items: Sequence[tuple[str, str]]
    binary: bool
    overview: Sequence[OverviewRow]
    cards: Sequence[DoorCard]
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


def doors_view(answered: Answer, *, binary: bool) -> DoorsView:
    """The page of one answer; sizes in GiB where `binary`."""
    doors, units = answered.evaluation.doors, BINARY if binary else DECIMAL
    return DoorsView(
        subject=subject(answered),
        items=urls.scenario_items(answered.scenario, units),
        binary=binary,
        overview=[_overview(door, binary=binary) for door in doors],
        cards=[_card(door, answered, binary=binary) for door in doors],
        goodput=goodput_view(answered, units),
        stamp=_stamp(answered),
        plan=urls.query_string(urls.scenario_items(answered.scenario)),
    )


def _stamp(answered: Answer) -> str:
    versions = f"formulas {answered.formula_version}, catalog {answered.catalog_version}"
    return f"{subject(answered)} · Tokenroof {versions}"


def _card(door: Door, answered: Answer, *, binary: bool) -> DoorCard:
    told = door.refused is None
    return DoorCard(
        id=door.id.value,
        title=door.title,
        is_open=door.is_open,
        sentence=together(in_binary(door.sentence, sizes_of(door)) if binary else door.sentence),
        refused=door.refused,
        label=door.label,
        href=change_href(door, answered, BINARY if binary else DECIMAL),
        figures=figure_rows(door, binary=binary),
        variants=variant_table(door.variants, binary=binary),
        chart=chart_of(door, answered.evaluation, binary=binary) if told else None,
        explanations=door.explanations,
        limits=door.limits,
        evidence=[replace(found, text=together(found.text)) for found in load_evidence()[door.id]],
    )


def change_href(door: Door, answered: Answer, units: str) -> str | None:
    """The workbench with the door's change, and the way back; None where the door names no change."""
    if not door.change:
        return None
    # What a log said came out of the scenario as it is; of the changed one it says nothing.
    document = answered.scenario.document() | {"observed": {}}
    try:
        scenario = Scenario.model_validate(merge_patch(document, dict(door.change)))
    except (ValueError, ScenarioError):  # a change must never break the page it stands on
        return None
    items = urls.scenario_items(scenario, units)
    return urls.workbench([*items, (UNDO, replaced(urls.scenario_items(answered.scenario, units), items))])


def _overview(door: Door, *, binary: bool) -> OverviewRow:
    counts = _first(door, COUNTS[door.id])
    return OverviewRow(
        door.id.value,
        door.title,
        door.is_open,
        None if counts is None else figure_row(counts, binary=binary),
        *(_ratio(_first(door, labels)) for labels in ((TPOT,), (THROUGHPUT, EACH), (ROOM,))),
    )


def _first(door: Door, labels: Sequence[str]) -> Figure | None:
    """The first of these figures that is told of both sides, at its best known level."""
    found = {(figure.label, figure.level): figure for figure in door.figures}
    for label in labels:
        for level in _OWN_FIRST:
            figure = found.get((label, level))
            if figure is not None and figure.before is not None and figure.after is not None:
                return figure
    return None


def _ratio(figure: Figure | None) -> str:
    return times_words(None if figure is None else figure.ratio)
