"""The user's own efficiency: by which factors expected times become those of a benchmark, and how sure that is."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from app.bench.drift import Drift, drift_of
from app.bench.overlay import Overlay
from app.bench.regress import Regressed, regress
from app.bench.spread import interval_of, typical
from app.bench.timed import Side, TimedRuns
from app.catalog.catalog import Catalog
from app.scenario_calibration import OwnCalibration, OwnFactor

MOST_FITTED = 200
MOST_HIGH = 100.0
FOLLOWS = 0.1


@dataclass(frozen=True, slots=True)
class SideFit:
    """The factor of a side and how sure it is. Errors are medians of |log(measured ÷ expected)|.

    Attributes:
        factor: as a scenario carries it; its points are the measured times of the side.
        believed: the part of the certainty that comes from the points, the rest being that the default is right.
        default_error: of what is expected without it.
        fitted_error: of what is expected with it, each time having been seen.
        left_out_error: each time predicted from the other runs; None of a single run.
        at_ceiling: times that beat their ceiling and were counted at it.
        is_stuck: whether expected times stand at what no software beats, and follow no factor.
        drift: how far measured over fitted changes from the lowest load to the highest; None where it does not.
    """

    factor: OwnFactor
    believed: float
    default_error: float
    fitted_error: float
    left_out_error: float | None
    at_ceiling: int
    is_stuck: bool
    drift: Drift | None


@dataclass(frozen=True, slots=True)
class HeldOut:
    """Every second run predicted by the fit to the others, times of both sides; errors as above."""

    fitted: int
    judged: int
    default_error: float
    fitted_error: float


@dataclass(frozen=True, slots=True)
class FitReport:
    """`calibration` is None where no run has a time that a factor follows from. Of `runs` that could be compared,
    `used` were fitted to.
    """

    calibration: OwnCalibration | None
    decode: SideFit | None
    prefill: SideFit | None
    held_out: HeldOut | None
    runs: int
    used: int


def fit(laid_over: Overlay, catalog: Catalog, name: str) -> FitReport:
    """The factors that bring the runs of an overlay nearest, each run under the load it was laid over with.

    A calibration that the scenarios carry already is left aside: factors are those on the default. Of more than 200
    runs so many are taken, evenly.
    """
    chosen = _evenly(len(laid_over.laid), MOST_FITTED)
    runs = TimedRuns([laid_over.laid[i] for i in chosen], catalog)
    found = regress(runs, runs.times)
    sides = {} if found is None else {side: _side(runs, side, found) for side in Side if side in found.believed}
    calibration = None
    if sides:
        calibration = OwnCalibration(name=name, **{side.value: fitted.factor for side, fitted in sides.items()})
    return FitReport(
        calibration=calibration,
        decode=sides.get(Side.DECODE),
        prefill=sides.get(Side.PREFILL),
        held_out=tried(runs),
        runs=len(laid_over.laid),
        used=len(chosen),
    )


def _evenly(count: int, most: int) -> Sequence[int]:
    return range(count) if count <= most else [round(i * (count - 1) / (most - 1)) for i in range(most)]


def _side(runs: TimedRuns, side: Side, found: Regressed) -> SideFit:
    times = [time for time in runs.times if time.side is side]
    residuals, default = runs.residuals(times, found.logs), runs.residuals(times)
    interval = interval_of(residuals)
    low = high = None
    if interval is not None and interval[1] <= MOST_HIGH:
        low, high = (_short(end) for end in interval)
    left_out = None
    if len({time.run for time in found.times}) > 1:
        errors = [runs.residuals([time], found.without(time.run))[0] for time in times]
        left_out = typical(errors)
    return SideFit(
        factor=OwnFactor(factor=_short(math.exp(found.logs[side])), points=len(times), low=low, high=high),
        believed=found.believed[side],
        default_error=typical(default) or 0.0,
        fitted_error=typical(residuals) or 0.0,
        left_out_error=left_out,
        at_ceiling=runs.beating(times),
        is_stuck=found.followed[side] < FOLLOWS,
        drift=drift_of([runs.loads[time.run] for time in times], residuals),
    )


def _short(factor: float) -> float:
    """Five digits: a link carries it."""
    return float(f"{factor:.5g}")


def tried(runs: TimedRuns) -> HeldOut | None:
    """The first, third and so on fitted, the others predicted; None where a half has no times."""
    order = sorted({time.run for time in runs.times})
    fitted, judged = set(order[::2]), set(order[1::2])
    found = regress(runs, [time for time in runs.times if time.run in fitted])
    times = [time for time in runs.times if time.run in judged]
    if found is None or not times:
        return None
    before, after = typical(runs.residuals(times)), typical(runs.residuals(times, found.logs))
    return HeldOut(len(fitted), len(judged), before or 0.0, after or 0.0)
