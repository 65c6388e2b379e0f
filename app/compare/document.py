"""A comparison as the JSON document that clients rely on."""

from collections.abc import Sequence
from typing import Any

from app.answer import Answer
from app.compare.differences import differences
from app.compare.plans import Comparison
from app.compare.results import result_rows
from app.compare.rows import Row
from app.document import document
from app.web import urls


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
