"""The optimizations of a scenario as the JSON document that clients rely on: key by key, so renaming renames no key."""

from collections.abc import Mapping, Sequence
from typing import Any

from app.answer import Answer
from app.calc.goodput import LIMIT_WORDS, Goodput
from app.calc.optimize.optimization import Optimization
from app.document import explanation_document, goodput_document

Found = Mapping[str, Sequence[Mapping[str, Any]]]


def optimizations_document(answered: Answer, evidence: Found, name: str = "doors") -> dict[str, Any]:
    """Every optimization in plain types, SI units, `null` where nothing is known.

    Args:
        answered: the answer of the scenario.
        evidence: what was published of each optimization, in plain types.
        name: the key that they stand under.
    """
    evaluation = answered.evaluation
    return {
        "scenario": answered.scenario.document(),
        "catalog_version": answered.catalog_version,
        "formula_version": answered.formula_version,
        "goodput": None if evaluation.goodput is None else _goodput(evaluation.goodput),
        name: [_optimization(found, evidence.get(found.id, ())) for found in evaluation.optimizations],
    }


def _optimization(found: Optimization, evidence: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    variants = found.variants
    return {
        "id": found.id,
        "title": found.spec.title,
        "open": found.is_used,
        "label": found.label,
        "change": dict(found.change),
        "sentence": found.sentence,
        "figures": [
            {
                "label": figure.of.label,
                "before": figure.before,
                "after": figure.after,
                "ratio": figure.ratio,
                "unit": figure.of.unit,
                "level": figure.level.value,
                "better": figure.of.better.value,
            }
            for figure in found.figures
        ],
        "variants": variants
        and {
            "columns": [{"label": column.label, "unit": column.unit} for column in variants.columns],
            "rows": [
                {"label": row.label, "values": list(row.values), "here": row.is_here, "note": row.note}
                for row in variants.rows
            ],
        },
        "explanations": [explanation_document(explanation) for explanation in found.explanations],
        "limits": list(found.limits),
        "evidence": [dict(one) for one in evidence],
        "refused": found.refused,
    }


def _goodput(found: Goodput) -> dict[str, Any]:
    load = found.load
    return goodput_document(found) | {
        "sentence": LIMIT_WORDS[found.limiter],
        "slo_ttft_s": found.ttft_target_s,
        "slo_tpot_s": found.tpot_target_s,
        "load": {
            "concurrency": load.concurrency.tolist(),
            "offered_per_s": load.rate_per_s.tolist(),
            "good_per_s": load.good_per_s.tolist(),
            "attained": load.attained.tolist(),
            "ttft_s": load.ttft_s.tolist(),
            "tpot_s": load.tpot_s.tolist(),
        },
    }
