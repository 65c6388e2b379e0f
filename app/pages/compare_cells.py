"""The result rows in words: figures, intervals, and how each stands to the baseline."""

from collections.abc import Sequence
from dataclasses import dataclass

from app.calc.evaluation import Evaluation
from app.calc.notation import quantity, significant
from app.calc.verdict import Limiter
from app.compare.plans import Comparison
from app.compare.results import result_rows
from app.compare.rows import Level, Row, Value, Verdict

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
