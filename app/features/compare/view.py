"""The result rows in words: figures, intervals, and how each stands to the baseline.

What the page of a comparison shows: its columns with their actions, what differs, and the charts.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from app.calc.evaluate import Evaluation
from app.calc.quantity import quantity, significant
from app.calc.verdict import Limiter, State, verdict
from app.catalog.catalog import Catalog
from app.features.compare.charts.gallery import compared_charts
from app.features.compare.differences import differences
from app.features.compare.plans import BINARY, MOST_PLANS, Comparison, Plan
from app.features.compare.results import Level, Row, Value, Verdict, requests_are_equal, result_rows
from app.features.compare.start import Addresses
from app.features.workbench.answer_view import merge_patch, subject
from app.features.workbench.form import form_of_answer
from app.scenario.query import name_of, query_items
from app.scenario.refusal import ScenarioError
from app.scenario.scenario import Scenario
from app.web import urls
from app.web.figure import Chart

DIGITS = 3
LARGE = 2.0
"""From this ratio on, and below its inverse, a difference is told as a factor too."""
_LEVELS = {
    Level.EXPECTED: "expected",
    Level.CEILING: "ceiling",
    Level.CAPACITY: "by the engine’s rules",
    Level.INPUT: "as asked",
}
_LIMITERS = {
    Limiter.MEMORY_BANDWIDTH: "memory bandwidth",
    Limiter.COMPUTE: "arithmetic",
    Limiter.INTERCONNECT: "the link between GPUs",
    Limiter.OVERHEAD: "launches and the host",
    Limiter.CAPACITY: "memory: it does not fit",
}


@dataclass(frozen=True, slots=True)
class Cell:
    """One figure of one plan. `change` is the difference to the baseline, `verdict` the same in a word."""

    text: str
    interval: str = ""
    change: str = ""
    verdict: str = ""
    is_best: bool = False


@dataclass(frozen=True, slots=True)
class ResultRow:
    """One quantity at one level, a cell for each plan."""

    id: str
    label: str
    level: str
    level_words: str
    scope: str
    is_equal: bool
    cells: Sequence[Cell]


def result_view(comparison: Comparison) -> list[ResultRow]:
    """Every row, those that are equal too; the template hides them where that is asked."""
    evaluations = [plan.answer.evaluation for plan in comparison.plans]
    found = [_row(row, comparison) for row in result_rows(evaluations)]
    return [
        *found,
        _words("limiter", "Most of the time goes to", [_LIMITERS[e.verdict.limiter] for e in evaluations]),
        _words("footing", "What the estimate rests on", [_footing(e) for e in evaluations]),
    ]


def change_words(ratio: float | None) -> str:
    """A ratio to the baseline as a difference: +12 %, −35 %, and +140 %, 2.4 × where it is large."""
    if ratio is None:
        return ""
    if ratio == 0:
        return "−100 %"
    percent = 100 * (ratio - 1)
    sign = "−" if percent < 0 else "+"
    size = abs(percent)
    text = f"{sign}{size:,.0f} %" if size >= 99.5 and percent > 0 else f"{sign}{significant(size, 2)} %"
    if percent < 0 and size >= 99.5:  # what is left must not be rounded to nothing
        text = f"−{significant(size, 4)} %"
    if ratio >= LARGE or ratio <= 1 / LARGE:
        return f"{text}, {significant(ratio, 2)} ×"
    return text


def _row(row: Row, comparison: Comparison) -> ResultRow:
    best = row.best
    cells = [
        Cell(
            text=_figure(row, value.mid, binary=comparison.binary),
            interval=_interval(row, value, binary=comparison.binary),
            change=_change(row, index, comparison.base),
            verdict=_verdict(row.verdict(index, comparison.base)),
            is_best=index in best,
        )
        for index, value in enumerate(row.values)
    ]
    return ResultRow(row.id, row.label, row.level.value, _LEVELS[row.level], row.scope, row.is_equal, cells)


def _figure(row: Row, mid: float | None, *, binary: bool) -> str:
    if mid is None:
        return "–"
    if row.unit == "$":
        return f"${significant(mid, DIGITS)}"
    if row.unit in ("sequences", ""):
        noun = row.unit.removesuffix("s") if mid == 1 else row.unit
        return f"{mid:,.0f} {noun}".rstrip()
    if row.unit == "tokens/s":
        return f"{significant(mid, DIGITS)} tokens/s"
    return quantity(mid, row.unit, DIGITS, binary=binary)


def _interval(row: Row, value: Value, *, binary: bool) -> str:
    if value.low is None or value.high is None:
        return ""
    low, high = (_figure(row, side, binary=binary) for side in (value.low, value.high))
    head, _, unit = low.partition(" ")
    return f"{head if high.endswith(f' {unit}') else low} to {high}"


def _change(row: Row, index: int, base: int) -> str:
    verdict = row.verdict(index, base)
    if verdict is Verdict.SAME:
        return ""
    ratio = row.ratio(index, base)
    if ratio is not None and verdict is not Verdict.BASELINE:
        return change_words(ratio)
    mid = row.values[index].mid
    if verdict in (Verdict.BETTER, Verdict.WORSE, Verdict.DIFFERENT) and mid is not None:  # the baseline has none
        return f"+{_figure(row, mid, binary=False)}"
    return ""


def _verdict(verdict: Verdict) -> str:
    """In a word; of what is neither better nor worse the difference alone speaks."""
    words = {Verdict.BETTER: "better", Verdict.WORSE: "worse", Verdict.SAME: "same", Verdict.UNKNOWN: "not comparable"}
    return words.get(verdict, "")


def _words(id_: str, label: str, texts: Sequence[str]) -> ResultRow:
    return ResultRow(id_, label, "words", "", "", len(set(texts)) == 1, [Cell(text) for text in texts])


def _footing(evaluation: Evaluation) -> str:
    expected = evaluation.measures.expected
    if expected is None:
        return "nothing calibrated: ceilings alone"
    return "measurements of its kind" if expected.is_seen else "no measurement of this pair"


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
