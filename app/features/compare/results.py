"""One quantity of every plan in a row: what is best, and how each stands to the baseline.

The numbers of plans in rows: the same rows for all, the expected and the ceiling each in a row of its own.

Only like stands beside like: an expected value is never measured against another plan's ceiling.

A comparison as the JSON document that clients rely on.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from math import isclose
from typing import Any

from app.calc.evaluate import Evaluation
from app.calc.measure import joules_per_token, usd_per_million_tokens
from app.calc.output import Better, Face, Output
from app.calc.outputs import shown_on
from app.calc.time.serving import Estimate, scaled
from app.calc.verdict import State
from app.features.compare.differences import differences
from app.features.compare.plans import Comparison
from app.scenario.answer import Answer
from app.scenario.document import document
from app.web import urls

SAME = 1e-9  # relative


class Level(StrEnum):
    """What kind of figure stands in a row."""

    EXPECTED = "expected"
    CEILING = "ceiling"
    CAPACITY = "capacity"
    INPUT = "input"


class Verdict(StrEnum):
    """How a value stands to the baseline's."""

    BASELINE = "baseline"
    SAME = "same"
    BETTER = "better"
    WORSE = "worse"
    DIFFERENT = "different"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Value:
    """A number with the interval that is claimed for it; None where there is none."""

    mid: float | None
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True)
class Row:
    """One quantity of every plan. `fitting` says which plans fit: one that does not is never called the best."""

    id: str
    label: str
    scope: str
    unit: str
    level: Level
    better: Better
    values: tuple[Value, ...]
    fitting: tuple[bool, ...]

    @property
    def is_equal(self) -> bool:
        """True where all plans have the same number."""
        return all(_same(value.mid, self.values[0].mid) for value in self.values)

    @property
    def best(self) -> tuple[int, ...]:
        """The plans with the best value; none where all are alike, or nothing is better or worse."""
        known = [(i, v.mid) for i, v in enumerate(self.values) if v.mid is not None and self.fitting[i]]
        if self.better is Better.NEITHER or len(known) < 2 or self.is_equal:
            return ()
        top = (max if self.better is Better.HIGHER else min)(mid for _, mid in known)
        return tuple(i for i, mid in known if _same(mid, top))

    def ratio(self, index: int, base: int) -> float | None:
        """The value of a plan ÷ the baseline's; None where one of them is missing or the baseline's is nothing."""
        mid, reference = self.values[index].mid, self.values[base].mid
        return None if mid is None or not reference else mid / reference

    def verdict(self, index: int, base: int) -> Verdict:
        """How a plan stands to the baseline. Where one of them does not fit, no time or rate of it is called better."""
        mid, reference = self.values[index].mid, self.values[base].mid
        if index == base:
            return Verdict.BASELINE
        if mid is None or reference is None:
            return Verdict.UNKNOWN
        if _same(mid, reference):
            return Verdict.SAME
        told_as_if = self.level in (Level.EXPECTED, Level.CEILING) and not (self.fitting[index] and self.fitting[base])
        if self.better is Better.NEITHER or told_as_if:
            return Verdict.DIFFERENT
        return Verdict.BETTER if (mid > reference) is (self.better is Better.HIGHER) else Verdict.WORSE


def _same(one: float | None, other: float | None) -> bool:
    if one is None or other is None:
        return one is other
    return isclose(one, other, rel_tol=SAME)


def result_rows(evaluations: Sequence[Evaluation]) -> list[Row]:
    """Every row, whatever the plans are; what none of them has is left out."""
    fitting = tuple(e.verdict.state is not State.DOES_NOT_FIT for e in evaluations)
    rows = list[Row]()
    for output in shown_on(Face.COMPARE):
        of = _WITH_SIDES.get(output.path, output.of)
        found = [of(evaluation) for evaluation in evaluations]
        for level in _levels(output, found):
            values = tuple(_at(value, level) for value in found)
            names = (output.key, output.label, output.scope.value, output.unit.value)
            rows.append(Row(*names, level, output.better, values, fitting))
    return [row for row in rows if any(value.mid is not None for value in row.values)]


def _levels(output: Output, found: Sequence[object]) -> tuple[Level, ...]:
    if any(isinstance(value, Estimate) for value in found):
        return Level.EXPECTED, Level.CEILING
    return (_KNOWN.get(output.path, Level.CAPACITY),)


def _at(value: object, level: Level) -> Value:
    if isinstance(value, Value):
        return value
    if isinstance(value, Estimate):
        return Value(value.mid, value.low, value.high) if level is Level.EXPECTED else Value(value.ceiling)
    return Value(value if isinstance(value, int | float) else None)


def _usd_per_million(evaluation: Evaluation) -> Estimate | None:
    cost = evaluation.measures.cost
    if cost is None or cost.usd_per_hour is None:
        return None
    price, rate = cost.usd_per_hour, evaluation.measures.serving.output_tokens_per_s
    return scaled(rate, lambda tokens_per_s: float(usd_per_million_tokens(price, tokens_per_s)))


def _joules_per_token(evaluation: Evaluation) -> Estimate | None:
    cost, rate = evaluation.measures.cost, evaluation.measures.serving.output_tokens_per_s
    if cost is None or cost.joules_per_output_token is None:
        return None
    power = cost.joules_per_output_token * rate.best_known  # of all GPUs, whichever they are
    return scaled(rate, lambda tokens_per_s: float(joules_per_token(power, tokens_per_s)))


def _max_concurrency(evaluation: Evaluation) -> Value:
    held = evaluation.measures.memory
    low, high = held.max_concurrency_interval
    return Value(held.max_concurrency, *((None, None) if low == high else (low, high)))


def _needed(evaluation: Evaluation) -> Value:
    held = evaluation.measures.memory
    pool, needed = held.tightest.pool, held.needed_bytes
    if pool.is_exact:
        return Value(needed)
    return Value(needed, max(0.0, needed + pool.mid - pool.high), max(0.0, needed + pool.mid - pool.low))


def _pool(evaluation: Evaluation) -> Value:
    pool = evaluation.measures.memory.tightest.pool
    sides = [max(0.0, side) for side in (pool.mid, pool.low, pool.high)]
    return Value(sides[0], *((None, None) if pool.is_exact else sides[1:]))


_WITH_SIDES: Mapping[str, Callable[[Evaluation], Value | Estimate | None]] = {
    "memory.max_concurrency": _max_concurrency,
    "memory.needed_bytes": _needed,
    "memory.per_gpu.kv_pool_bytes": _pool,
    "cost.usd_per_million_output_tokens": _usd_per_million,
    "cost.joules_per_output_token": _joules_per_token,
}
"""Numbers that the document tells at one level, with what follows for them from the sides of what they are made of."""
_KNOWN = {"cost.usd_per_hour": Level.INPUT, "deployment.gpus": Level.INPUT}


def comparison_document(comparison: Comparison) -> dict[str, Any]:
    """Plans with their whole evaluations, what differs in the inputs, and the rows of results."""
    answers = [plan.answer for plan in comparison.plans]
    return {
        "baseline": comparison.base + 1,
        "plans": [
            {
                "letter": plan.letter,
                "name": plan.name,
                "href": urls.workbench(urls.scenario_items(plan.answer.scenario)),
                "saved": None if plan.slug is None else urls.saved(plan.slug),
                "evaluation": document(plan.answer),
            }
            for plan in comparison.plans
        ],
        "differences": [
            {"path": one.path, "label": one.label, "values": list(one.values)} for one in differences(answers)
        ],
        "results": [_row(row, comparison.base) for row in result_rows([answer.evaluation for answer in answers])],
        "equal_requests": requests_are_equal(answers),
    }


def requests_are_equal(answers: Sequence[Answer]) -> bool:
    """True where all plans serve the same requests, so that their times and rates answer one question."""
    asked = [a.scenario.workload.model_dump(exclude={"slo_ttft_s", "slo_tpot_s"}) for a in answers]
    return all(one == asked[0] for one in asked)


def _row(row: Row, base: int) -> dict[str, Any]:
    indexes = range(len(row.values))
    return {
        "id": row.id,
        "label": row.label,
        "scope": row.scope,
        "unit": row.unit,
        "level": row.level.value,
        "better": row.better.value,
        "equal": row.is_equal,
        "values": [{"mid": v.mid, "low": v.low, "high": v.high} for v in row.values],
        "ratios": [row.ratio(index, base) for index in indexes],
        "verdicts": [row.verdict(index, base).value for index in indexes],
        "best": [index + 1 for index in row.best],
    }
