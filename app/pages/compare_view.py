"""What the page of a comparison shows: its columns with their actions, what differs, and the charts."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from app.calc.verdict import State, verdict
from app.catalog.catalog import Catalog
from app.charts.compare.gallery import compared_charts
from app.charts.figure import Chart
from app.compare.differences import differences
from app.compare.document import requests_are_equal
from app.compare.plans import BINARY, MOST_PLANS, Comparison, Plan
from app.compare.results import result_rows
from app.pages.answer_view import merge_patch, subject
from app.pages.compare_addresses import Addresses
from app.pages.compare_cells import ResultRow, change_words, result_view
from app.pages.form import form_of_answer
from app.refusal import ScenarioError
from app.scenario import Scenario
from app.scenario_query import name_of, query_items
from app.web import urls

MOST_LEVERS = 4
LONG = 1_800
"""Characters of an address from which on some chat programs cut it."""
_HEADLINES = (
    ("output_tokens_per_s", "throughput"),
    ("tpot_s", "time per token"),
    ("usd_per_million_output_tokens", "cost of a token"),
)


@dataclass(frozen=True, slots=True)
class Column:
    """One plan with all that can be done with it, each a plain link; None where it cannot be done."""

    plan: Plan
    state: str
    heading: str
    sentence: str
    subject: str
    against: str
    is_base: bool
    workbench: str
    make_base: str | None
    duplicate: str | None
    remove: str
    swap: str | None
    variants: Sequence[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class FieldCell:
    """A field's value: whether it is another one than the baseline's, and whether it only follows from the rest."""

    text: str
    differs: bool
    follows: bool


@dataclass(frozen=True, slots=True)
class FieldRow:
    """One field that differs."""

    path: str
    label: str
    cells: Sequence[FieldCell]


@dataclass(frozen=True, slots=True)
class CompareView:
    """Everything the page reads of plans that could be read."""

    columns: Sequence[Column]
    base: Column
    fields: Sequence[FieldRow]
    rows: Sequence[ResultRow]
    equal_rows: int
    toggle_equal: str
    units_hrefs: Sequence[tuple[str, str, str]]
    base_hrefs: Sequence[tuple[Column, str]]
    warnings: Sequence[str]
    charts: Sequence[Chart]
    address: str
    stamp: str

    @property
    def is_long(self) -> bool:
        """True where the address may be cut on its way."""
        return len(self.address) > LONG

    def chart_data(self) -> list[dict[str, Any]]:
        """The figures, for the script that draws them, with the words an exported picture carries."""
        return [
            {"id": chart.id, "title": chart.title, "caption": self.stamp, "figure": chart.figure}
            for chart in self.charts
        ]


def compare_view(comparison: Comparison, catalog: Catalog) -> CompareView:
    """The page of a comparison with at least one plan."""
    addresses = Addresses(comparison)
    columns = [_column(comparison, index, addresses) for index in range(len(comparison.plans))]
    rows = result_view(comparison)
    names = ", ".join(plan.label for plan in comparison.plans)
    answer = comparison.baseline.answer
    return CompareView(
        columns=columns,
        base=columns[comparison.base],
        fields=_fields(comparison, catalog),
        rows=[row for row in rows if not (comparison.hides_equal and row.is_equal)],
        equal_rows=sum(row.is_equal for row in rows),
        toggle_equal=addresses.of(hides=not comparison.hides_equal) + "#results",
        units_hrefs=[(value, label, addresses.of(units=value)) for value, label in (("gb", "GB"), (BINARY, "GiB"))],
        base_hrefs=[(column, addresses.of(base=i) + "#results") for i, column in enumerate(columns)],
        warnings=_warnings(comparison),
        charts=compared_charts(comparison.plans, comparison.base, binary=comparison.binary),
        address=addresses.of(),
        stamp=f"{names} · Tokenroof formulas {answer.formula_version}, catalog {answer.catalog_version}",
    )


def _column(comparison: Comparison, index: int, addresses: Addresses) -> Column:
    plan = comparison.plans[index]
    evaluation = plan.answer.evaluation
    said = verdict(evaluation.deployment, evaluation.measures, binary=comparison.binary)
    has_room = len(comparison.plans) < MOST_PLANS
    units = BINARY if comparison.binary else "gb"
    return Column(
        plan=plan,
        state=said.state.value,
        heading=said.heading,
        sentence=said.standalone_reason,
        subject=subject(plan.answer),
        against=_against(comparison, index),
        is_base=index == comparison.base and len(comparison.plans) > 1,
        workbench=urls.workbench(urls.scenario_items(plan.answer.scenario, units)),
        make_base=None if index == comparison.base else addresses.of(base=index),
        duplicate=addresses.beside(index, plan.written) if has_room else None,
        remove=addresses.without(index),
        swap=addresses.swapped(index) if index else None,
        variants=_variants(plan, index, addresses) if has_room else (),
    )


def _against(comparison: Comparison, index: int) -> str:
    """The plan against the baseline in three figures, at the level that both have."""
    if index == comparison.base:
        return ""
    pair = [comparison.baseline.answer.evaluation, comparison.plans[index].answer.evaluation]
    told = []
    rows = {(row.id, row.level.value): row for row in result_rows(pair)}
    for id_, words in _HEADLINES:
        for level in ("expected", "ceiling"):
            row = rows.get((id_, level))
            ratio = None if row is None else row.ratio(1, 0)
            if ratio is not None:
                at_best = " at best" if level == "ceiling" else ""
                told.append(f"{words}{at_best} {'the same' if abs(ratio - 1) < 5e-4 else change_words(ratio)}")
                break
    fits = all(evaluation.verdict.state is not State.DOES_NOT_FIT for evaluation in pair)
    return f"{'Against' if fits else 'If both fitted, against'} {comparison.baseline.letter}: {'; '.join(told)}."


def _variants(plan: Plan, index: int, addresses: Addresses) -> list[tuple[str, str]]:
    """Copies of a plan with one change that would help, as links that put them beside it."""
    found = []
    # What a log said came out of the scenario as it is; of the changed one it says nothing.
    document = plan.answer.scenario.document() | {"observed": {}}
    for lever in plan.answer.evaluation.levers[:MOST_LEVERS]:
        try:
            scenario = Scenario.model_validate(merge_patch(document, dict(lever.change)))
        except (ValidationError, ScenarioError):  # a lever must never break the page it stands on
            continue
        found.append((lever.label, addresses.beside(index, urls.query_string(query_items(scenario)))))
    return found


def _fields(comparison: Comparison, catalog: Catalog) -> list[FieldRow]:
    answers = [plan.answer for plan in comparison.plans]
    forms = [form_of_answer(answer, catalog) for answer in answers]
    rows = []
    for one in differences(answers):
        name = name_of(one.path) or ""
        words = one.words(answers, binary=comparison.binary)
        cells = [
            FieldCell(
                text=text,
                differs=value != one.values[comparison.base],
                follows=value is not None and name in form.values and not form.values[name],
            )
            for text, value, form in zip(words, one.values, forms, strict=True)
        ]
        rows.append(FieldRow(one.path, one.label, cells))
    return rows


def _warnings(comparison: Comparison) -> list[str]:
    found = []
    if not requests_are_equal([plan.answer for plan in comparison.plans]):
        found.append("The plans serve different requests: their times and rates do not answer the same question.")
    without = [p.letter for p in comparison.plans if p.answer.evaluation.verdict.state is State.DOES_NOT_FIT]
    if without:
        verb, told = ("does", "it") if len(without) == 1 else ("do", "they")
        found.append(
            f"{' and '.join(without)} {verb} not fit. Times and rates stand here as if {told} did, and count neither "
            "as better nor as best."
        )
    found += [
        f"Not read from plan {plan.letter}: {', '.join(name[:40] for name in plan.ignored[:5])}."
        for plan in comparison.plans
        if plan.ignored
    ]
    if comparison.unknown:
        found.append(f"Not read from the address: {', '.join(name[:40] for name in comparison.unknown[:5])}.")
    return found
