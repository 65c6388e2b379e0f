"""What makes a comparison doubtful before a number is looked at: other models, speculation, requests that failed.

A file of results and a scenario in; the runs beside the default, the fit, and the runs beside the fit out.

Runs, overlay and fit as JSON: SI units, null where nothing is told.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from app.catalog.catalog import Catalog
from app.engine_io.logs.model_names import NamedModel, find_model
from app.features.benchmarks.fit import FitReport, SideFit, fit, sentences
from app.features.benchmarks.overlay import Beside, Laid, Overlay, overlay
from app.features.benchmarks.points import BenchPoint
from app.features.benchmarks.reader import read
from app.scenario.scenario import Scenario

_SHOWN = 3


def doubts_about(points: Sequence[BenchPoint], scenario: Scenario, catalog: Catalog) -> list[str]:
    """Sentences about runs whose model, by its name, is not the scenario's, or that are of several; about speculation
    that the scenario has not; about failures.
    """
    return [*_models(points, scenario, catalog), *_speculation(points, scenario), *_failures(points)]


def _models(points: Sequence[BenchPoint], scenario: Scenario, catalog: Catalog) -> list[str]:
    names = list(dict.fromkeys(point.model for point in points if point.model))
    known = {name: find_model(name, catalog.models) for name in names}
    kinds: dict[NamedModel | str, str] = {}
    for name, model in known.items():
        kinds.setdefault(model or name, name)
    found = []
    if len(kinds) > 1:
        found.append(
            f"The runs are of {len(kinds):,} models or formats ({_listed(list(kinds.values()))}). All are laid over "
            "the one that is chosen, and a fit to all of them is that of none: bring them one by one."
        )
    chosen = catalog.models.get(scenario.model.id or "")
    others = [name for name, model in known.items() if chosen and model and model.id != chosen.id]
    if chosen and others:
        found.append(f"The runs name {_listed(others)}, and {chosen.name} is chosen: is that what was measured?")
    return found


def _speculation(points: Sequence[BenchPoint], scenario: Scenario) -> list[str]:
    drafted = [number for number, point in enumerate(points, start=1) if (point.step_tokens or 0) > 1]
    if not drafted or scenario.techniques.speculative is not None:
        return []
    which = (
        f"Run {drafted[0]} was" if len(drafted) == 1 else f"Runs {_listed([str(number) for number in drafted])} were"
    )
    return [
        f"{which} made with speculative decoding, and none is chosen: a decode factor would be that of the drafts, and "
        "change with what is written."
    ]


def _failures(points: Sequence[BenchPoint]) -> list[str]:
    hit = [(number, point) for number, point in enumerate(points, start=1) if point.failed and point.requests]
    if not hit:
        return []
    failed = sum(point.failed or 0 for _, point in hit)
    sent = failed + sum(point.requests or 0 for _, point in hit)
    runs = "run" if len(hit) == 1 else "runs"
    which = _listed([str(number) for number, _ in hit])
    return [
        f"{failed:,} of {sent:,} requests of {runs} {which} failed. Measured are the others: fewer ran at a time than "
        "was asked for, and rates are lower."
    ]


def _listed(names: Sequence[str]) -> str:
    left = len(names) - _SHOWN
    return ", ".join(names[:_SHOWN]) + (f" and {left:,} more" if left > 0 else "")


NAME = "My benchmark"


@dataclass(frozen=True, slots=True)
class Study:
    """`scenario` is the default's; `calibrated` the same with the fit, and `after` the runs beside that, where there is
    one. `doubts` are sentences about the runs themselves.
    """

    scenario: Scenario
    points: Sequence[BenchPoint]
    before: Overlay
    fit: FitReport
    calibrated: Scenario | None
    after: Overlay | None
    doubts: Sequence[str] = ()

    @property
    def models(self) -> Sequence[str]:
        """The models that the runs name, in their order."""
        return list(dict.fromkeys(point.model for point in self.points if point.model))


def study(text: bytes, scenario: Scenario, catalog: Catalog, name: str = NAME) -> Study:
    """The study of a file. A calibration that the scenario carries is left aside.

    Raises:
        BenchError: the file is none that is read here.
        ScenarioError: the scenario names something unknown, or something that is not computed.
    """
    points, plain = read(text), scenario.model_copy(update={"calibration": None})
    before = overlay(plain, points, catalog)
    report = fit(before, catalog, name)
    calibrated = after = None
    if report.calibration is not None:
        calibrated = plain.model_copy(update={"calibration": report.calibration})
        after = overlay(calibrated, points, catalog)
    return Study(plain, points, before, report, calibrated, after, doubts_about(points, plain, catalog))


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
