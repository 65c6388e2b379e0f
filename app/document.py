"""The Evaluation as the JSON document that clients rely on: key by key, so renaming code renames no key."""

from dataclasses import asdict
from math import isfinite
from typing import Any

from app.answer import Answer
from app.calc.deployment import Deployment
from app.calc.evaluation import Evaluation
from app.calc.expected.answer import Expected
from app.calc.explanation import Explanation
from app.calc.goodput import Goodput
from app.calc.levers import Change, Lever
from app.calc.phase import PhaseCost
from app.calc.roofline import Bound, ridge_flops_per_byte
from app.calc.serving import Estimate
from app.calc.techniques.disaggregation import sent_bytes
from app.memory_document import comparison_line, memory_detail


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
        "rule_of_thumb": asdict(evaluation.rule_of_thumb),
        "memory": _memory(evaluation),
        "prefill": _phase(measures.prefill, measures.prefill_s),
        "decode": _phase(measures.decode, measures.decode_s)
        | {
            "concurrency": measures.memory.running_sequences,
            "context_tokens": evaluation.deployment.workload.mid_answer_tokens,
        },
        "roofline": _roofline(evaluation),
        "serving": _serving(evaluation),
        "expected": _expected(evaluation.deployment, measures.expected),
        "goodput": None if evaluation.goodput is None else goodput_document(evaluation.goodput),
        "techniques": _techniques(evaluation),
        "cost": None if measures.cost is None else asdict(measures.cost),
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


def _memory(evaluation: Evaluation) -> dict[str, Any]:
    held = evaluation.measures.memory
    return {
        "per_gpu": asdict(held.per_gpu),
        "kv_bytes_per_sequence": held.kv_bytes_per_sequence,
        "kv_bytes_per_token": held.kv_bytes_per_token,
        "state_bytes_per_sequence": held.state_bytes_per_sequence,
        "gpu_bytes_per_sequence": held.gpu_bytes_per_sequence,
        "shared_bytes": held.shared_bytes,
        "kv_pool_tokens": held.kv_pool_tokens,
        "max_concurrency": held.max_concurrency,
        "max_context_tokens": held.max_context_tokens,
        "budget_bytes": held.budget_bytes,
        "needed_bytes": held.needed_bytes,
        **memory_detail(held),
    }


def _phase(cost: PhaseCost, time: Estimate) -> dict[str, Any]:
    return {
        "flops": cost.flops,
        "bytes": cost.bytes,
        "intensity_flops_per_byte": cost.intensity_flops_per_byte,
        "bound": cost.bound.value,
        "ceiling_s": cost.ceiling_s,
        "overlapped_s": cost.overlapped_s,
        "expected_s": {"low": time.low, "mid": time.mid, "high": time.high},
    }


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


def _serving(evaluation: Evaluation) -> dict[str, Any]:
    served = evaluation.measures.serving
    return {
        "ttft_s": _estimate(served.ttft_s),
        "tpot_s": _estimate(served.tpot_s),
        "tpot_inclusive_s": _estimate(served.tpot_inclusive_s),
        "total_latency_s": _estimate(served.total_latency_s),
        "output_tokens_per_s": _estimate(served.output_tokens_per_s),
        "output_tokens_per_s_per_user": _estimate(served.output_tokens_per_s_per_user),
        "total_tokens_per_s": _estimate(served.total_tokens_per_s),
    }


def _expected(deployment: Deployment, expected: Expected | None) -> dict[str, Any] | None:
    """What stands behind the expected values, and what a time per output token consists of."""
    if expected is None:
        return None
    own = deployment.own_calibration
    return {
        "calibration": expected.calibration_version,
        "own_calibration": None if own is None else own.name,
        "seen": expected.is_seen,
        "interval_withheld": expected.unclaimed,
        "ttft_refused": expected.refused,
        "tpot_causes_s": {
            "ceiling": expected.causes.ceiling_s,
            "efficiency": expected.causes.efficiency_s,
            "calls": expected.causes.calls_s,
            "collectives": expected.causes.collectives_s,
            "host": expected.causes.host_s,
            "interference": expected.causes.interference_s,
        },
    }


def goodput_document(found: Goodput) -> dict[str, Any]:
    """Requests a second that meet the targets, and where."""
    return {
        "rate_per_s": found.rate_per_s,
        "offered_per_s": found.offered_per_s,
        "attained": found.attained,
        "concurrency": found.concurrency,
        "limiter": found.limiter.value,
        "most_per_s": found.most_per_s,
    }


def _techniques(evaluation: Evaluation) -> dict[str, Any]:
    """What the techniques in use come to; null where one is not used."""
    deployment, measures = evaluation.deployment, evaluation.measures
    speculation, pool, expected = deployment.speculation, deployment.prefill_pool, measures.expected
    speculative = speculation and {
        "method": speculation.method.value,
        "tokens_per_step": speculation.tokens_per_step,
        "acceptance_rate": speculation.acceptance_rate,
        "positions": speculation.positions,
    }
    rates = expected.pool if expected else None
    disaggregation = pool and {
        "prefill_gpus": pool.gpus,
        "decode_gpus": deployment.decode_gpus,
        "sent_bytes": sent_bytes(deployment),
        "link_bytes_per_s": pool.link_bytes_per_s,
        "link_wait_s": expected.link_wait_s if expected else None,
        "prefill_per_s": rates.prefill_per_s if rates else None,
        "link_per_s": rates.link_per_s if rates and isfinite(rates.link_per_s) else None,
    }
    return {"speculative": speculative, "disaggregation": disaggregation}


def _estimate(estimate: Estimate) -> dict[str, Any]:
    return {"ceiling": estimate.ceiling, "low": estimate.low, "mid": estimate.mid, "high": estimate.high}


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
