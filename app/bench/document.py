"""Runs, overlay and fit as JSON: SI units, null where nothing is told."""

from dataclasses import asdict
from typing import Any

from app.bench.fit import FitReport, SideFit
from app.bench.fit_words import sentences
from app.bench.overlay import Beside, Laid, Overlay
from app.bench.points import BenchPoint
from app.bench.study import Study


def point_document(point: BenchPoint) -> dict[str, Any]:
    """A run as it was read."""
    return asdict(point) | {"tool": point.tool.value}


def overlay_document(found: Overlay) -> dict[str, Any]:
    """Each run beside its prediction, and those that are left out."""
    return {
        "runs": [_laid(laid) for laid in found.laid],
        "left_out": [{"number": out.number, "reason": out.reason} for out in found.left_out],
        "beating_their_ceiling": found.suspicious,
    }


def fit_document(report: FitReport) -> dict[str, Any]:
    """The factors and how sure they are, in numbers and in words."""
    held = report.held_out
    return {
        "calibration": None if report.calibration is None else report.calibration.model_dump(mode="json"),
        "decode": _side(report.decode),
        "prefill": _side(report.prefill),
        "held_out": None if held is None else asdict(held),
        "runs": report.runs,
        "used": report.used,
        "words": sentences(report),
    }


def _laid(laid: Laid) -> dict[str, Any]:
    return {
        "number": laid.number,
        "concurrency": laid.load.concurrency,
        "concurrency_is": laid.load.how,
        "prompt_tokens": laid.load.prompt_tokens,
        "output_tokens": laid.load.output_tokens,
        "figures": [_beside(beside) for beside in laid.figures],
    }


def _beside(beside: Beside) -> dict[str, Any]:
    predicted = beside.predicted
    return {
        "figure": beside.figure.value,
        "measured": beside.measured,
        "ceiling": predicted.ceiling,
        "low": predicted.low,
        "mid": predicted.mid,
        "high": predicted.high,
        "measured_to_expected": beside.ratio,
        "inside": beside.is_inside,
        "beats_ceiling": beside.beats_ceiling,
    }


def _side(side: SideFit | None) -> dict[str, Any] | None:
    if side is None:
        return None
    return {
        "factor": side.factor.factor,
        "low": side.factor.low,
        "high": side.factor.high,
        "points": side.factor.points,
        "believed": side.believed,
        "default_error": side.default_error,
        "fitted_error": side.fitted_error,
        "left_out_error": side.left_out_error,
        "at_ceiling": side.at_ceiling,
        "stuck": side.is_stuck,
        "drift": None if side.drift is None else asdict(side.drift),
    }


def study_document(found: Study) -> dict[str, Any]:
    """The whole study; `scenario` carries the calibration where there is one."""
    carried = found.calibrated or found.scenario
    return {
        "points": [point_document(point) for point in found.points],
        "overlay": overlay_document(found.before),
        "fit": fit_document(found.fit),
        "doubts": found.doubts,
        "calibrated": None if found.after is None else overlay_document(found.after),
        "scenario": carried.document(),
    }
