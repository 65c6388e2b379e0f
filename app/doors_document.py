"""The doors of a scenario as the JSON document that clients rely on: key by key, so renaming code renames no key."""

from collections.abc import Mapping, Sequence
from typing import Any

from app.answer import Answer
from app.calc.doors.door import Door, DoorId, Figure, Variants
from app.calc.goodput import LIMIT_WORDS, Goodput
from app.document import explanation_document, goodput_document

Found = Mapping[DoorId, Sequence[Mapping[str, Any]]]


def doors_document(answered: Answer, evidence: Found) -> dict[str, Any]:
    """Every door in plain types, SI units, `null` where nothing is told.

    Args:
        answered: the answer of the scenario.
        evidence: what was published beside each door, in plain types.
    """
    evaluation = answered.evaluation
    return {
        "scenario": answered.scenario.document(),
        "catalog_version": answered.catalog_version,
        "formula_version": answered.formula_version,
        "goodput": None if evaluation.goodput is None else _goodput(evaluation.goodput),
        "doors": [_door(door, evidence.get(door.id, ())) for door in evaluation.doors],
    }


def _door(door: Door, evidence: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    return {
        "id": door.id.value,
        "title": door.title,
        "open": door.is_open,
        "label": door.label,
        "change": dict(door.change),
        "sentence": door.sentence,
        "figures": [_figure(figure) for figure in door.figures],
        "variants": None if door.variants is None else _variants(door.variants),
        "explanations": [explanation_document(explanation) for explanation in door.explanations],
        "limits": list(door.limits),
        "evidence": [dict(one) for one in evidence],
        "refused": door.refused,
    }


def _figure(figure: Figure) -> dict[str, Any]:
    return {
        "label": figure.label,
        "before": figure.before,
        "after": figure.after,
        "ratio": figure.ratio,
        "unit": figure.unit,
        "level": figure.level.value,
        "better": figure.better.value,
    }


def _variants(variants: Variants) -> dict[str, Any]:
    return {
        "columns": [{"label": label, "unit": unit} for label, unit in variants.columns],
        "rows": [
            {"label": row.label, "values": list(row.values), "here": row.is_here, "note": row.note}
            for row in variants.rows
        ],
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
