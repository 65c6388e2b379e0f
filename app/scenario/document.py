"""The division of memory as JSON: what is assumed, what the log prints, each stage, logged beside predicted.

The Evaluation as the JSON document that clients rely on: its numbers by the table of outputs, the rest by key.
"""

from typing import Any

from app.calc.accelerator import Bound, ridge_flops_per_byte
from app.calc.derivation import Explanation
from app.calc.evaluate import Evaluation
from app.calc.memory.capacity import Memory
from app.calc.memory.engines.parts import Overhead
from app.calc.memory.logged import Line
from app.calc.memory.rank import RankMemory
from app.calc.optimize.suggestions import Change, Lever
from app.calc.output import plain
from app.calc.outputs import numbers_below, outputs_below
from app.calc.time.goodput import Goodput
from app.scenario.answer import Answer


def memory_lists(held: Memory) -> dict[str, Any]:
    """What stands beside the numbers of `memory`; of the tightest GPU unless a list of all stages says otherwise."""
    return {
        "overheads": [_overhead(overhead) for overhead in held.overheads],
        "log_lines": [
            {"id": line.id, "label": line.label, "value": line.value, "unit": line.unit, "text": line.text}
            for line in held.log_lines
        ],
        "stages": [_stage(stage, stage is held.tightest) for stage in held.ranks],
    }


def _overhead(overhead: Overhead) -> dict[str, Any]:
    return {
        "part": overhead.part.value,
        "bytes": plain(overhead.bytes),
        "given": overhead.is_given,
        "charged": overhead.is_charged,
        "evidence": overhead.evidence,
    }


def _stage(rank: RankMemory, is_tightest: bool) -> dict[str, Any]:
    return {
        "stage": rank.stage,
        "layers": rank.layers,
        "tightest": is_tightest,
        "weights_bytes": rank.weights.mid,
        "kv_pool_bytes": rank.pool.mid,
        "overhead_bytes": sum(overhead.bytes.mid for overhead in rank.overheads),
        "block_bytes": rank.plan.unit_bytes,
    }


def comparison_line(line: Line) -> dict[str, Any]:
    """One figure as logged and as predicted."""
    return {
        "id": line.id,
        "label": line.label,
        "logged": line.logged,
        "predicted": plain(line.predicted),
        "unit": line.unit,
        "difference": line.difference,
        "inside": line.is_inside,
        "reason": line.reason,
    }


def document(answer: Answer) -> dict[str, Any]:
    """Every number of `answer` in plain types; SI units, `null` where nothing is claimed."""
    evaluation = answer.evaluation
    measures = evaluation.measures
    return {
        "scenario": answer.scenario.document(),
        "catalog_version": answer.catalog_version,
        "formula_version": answer.formula_version,
        "verdict": {
            "state": evaluation.verdict.state.value,
            "limiter": evaluation.verdict.limiter.value,
            "sentence": evaluation.verdict.sentence,
        },
        "rule_of_thumb": numbers_below("rule_of_thumb", evaluation),
        "memory": numbers_below("memory", evaluation) | memory_lists(measures.memory),
        "prefill": numbers_below("prefill", evaluation) | {"bound": measures.prefill.bound.value},
        "decode": numbers_below("decode", evaluation) | {"bound": measures.decode.bound.value},
        "roofline": _roofline(evaluation),
        "serving": numbers_below("serving", evaluation),
        "expected": _expected(evaluation),
        "goodput": None if evaluation.goodput is None else goodput_document(evaluation.goodput),
        "techniques": _techniques(evaluation),
        "cost": None if measures.cost is None else numbers_below("cost", evaluation),
        "levers": [_lever(lever) for lever in evaluation.levers],
        "explanations": [explanation_document(explanation) for explanation in evaluation.explanations],
        "warnings": [{"code": notice.code, "message": notice.message} for notice in answer.notices],
        "comparison": [comparison_line(line) for line in evaluation.comparison],
    }


def number_at(document: dict[str, Any], path: str) -> Any:
    """The value at a dotted path, such as an explanation's id.

    Raises:
        KeyError: the document has no such path.
    """
    value: Any = document
    for key in path.split("."):
        if not isinstance(value, dict):
            raise KeyError(path)
        value = value[key]
    return value


def headline(document: dict[str, Any]) -> dict[str, float]:
    """The numbers that a saved link remembers, by path: every explained one."""
    return {explanation["id"]: explanation["value"] for explanation in document["explanations"]}


def _roofline(evaluation: Evaluation) -> dict[str, Any]:
    accelerator, precision = evaluation.deployment.accelerator, evaluation.deployment.precision
    bandwidth = accelerator.bandwidth_bytes_per_s
    roofs = [
        {
            "dtype": dtype.value,
            "peak_flops_per_s": peak,
            "bandwidth_bytes_per_s": bandwidth,
            "ridge_flops_per_byte": ridge_flops_per_byte(peak, bandwidth),
            "selected": dtype is precision.compute,
        }
        for dtype, peak in accelerator.peak_flops_per_s.items()
    ]
    points = []
    for phase, cost in (("prefill", evaluation.measures.prefill), ("decode", evaluation.measures.decode)):
        points.append(_point(phase, "all", cost.flops, cost.bytes, cost.bound, cost.ceiling_s))
        points += [_point(phase, op.name.value, op.flops, op.bytes, op.bound, op.time_s) for op in cost.operators]
    return {"roofs": roofs, "points": points}


def _point(phase: str, operator: str, flops: float, moved: float, bound: Bound, time_s: float) -> dict[str, Any]:
    return {
        "phase": phase,
        "operator": operator,
        "flops": flops,
        "bytes": moved,
        "intensity_flops_per_byte": flops / moved if moved else 0.0,
        "bound": bound.value,
        "time_s": time_s,
    }


def _expected(evaluation: Evaluation) -> dict[str, Any] | None:
    """What stands behind the expected values, and what a time per output token consists of."""
    expected, own = evaluation.measures.expected, evaluation.deployment.own_calibration
    if expected is None:
        return None
    return {
        "calibration": expected.calibration_version,
        "own_calibration": None if own is None else own.name,
        "seen": expected.is_seen,
        "interval_withheld": expected.unclaimed,
        "ttft_refused": expected.refused,
        **numbers_below("expected", evaluation),
    }


def goodput_document(found: Goodput) -> dict[str, Any]:
    """Requests a second that meet the targets, and where."""
    numbers = {output.key: getattr(found, output.key) for _, output in outputs_below("goodput")}
    return numbers | {"limiter": found.limiter.value}


def _techniques(evaluation: Evaluation) -> dict[str, Any]:
    """What the techniques in use come to; null where one is not used."""
    speculation, numbers = evaluation.deployment.speculation, numbers_below("techniques", evaluation)
    return {
        "speculative": speculation and {"method": speculation.method.value, **numbers["speculative"]},
        "disaggregation": evaluation.deployment.prefill_pool and numbers["disaggregation"],
    }


def _lever(lever: Lever) -> dict[str, Any]:
    effect = lever.effect
    return {
        "change": lever.change,
        "label": lever.label,
        "effect": {
            "state": {"before": effect.state[0].value, "after": effect.state[1].value},
            "max_concurrency": _change(effect.max_concurrency),
            "tpot_s": _change(effect.tpot_s),
            "output_tokens_per_s": _change(effect.output_tokens_per_s),
            **({} if effect.goodput_per_s is None else {"goodput_per_s": _change(effect.goodput_per_s)}),
        },
    }


def _change(change: Change) -> dict[str, float]:
    return {"before": change.before, "after": change.after}


def explanation_document(explanation: Explanation) -> dict[str, Any]:
    """The working of a number in plain types."""
    return {
        "id": explanation.id,
        "label": explanation.label,
        "formula": explanation.formula,
        "substituted": explanation.substituted,
        "terms": [
            {"symbol": term.symbol, "label": term.label, "value": term.value, "unit": term.unit}
            for term in explanation.terms
        ],
        "value": explanation.value,
        "unit": explanation.unit,
        "source": explanation.source,
    }
