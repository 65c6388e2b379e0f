"""The user's own efficiency: by which factors expected times become those of a benchmark, and how sure that is.

A fit in words: the factors, how sure they are, and what they are worth on runs that were not looked at.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from app.calc.quantity import significant
from app.catalog.catalog import Catalog
from app.features.benchmarks.overlay import Overlay
from app.features.benchmarks.regression import (
    FEWEST,
    LEAST_FACTOR,
    LEAST_SPREAD,
    MOST_FACTOR,
    Drift,
    Regressed,
    Side,
    TimedRuns,
    drift_of,
    interval_of,
    regress,
    typical,
)
from app.scenario.parts import OwnCalibration, OwnFactor

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


_SURE = 0.9
_DIGITS = 3
_LEAST_TOLD = 1.005
_FAR_OFF = math.log(1.5)
"""A fit that still is so far off says that the scenario is another."""


def sentences(report: FitReport) -> list[str]:
    """All that is to be known of a fit, the most important first."""
    if report.calibration is None:
        return ["No run has a time per output token, a time to the first token or a bare rate: nothing can be fitted."]
    found = []
    for what, side in (("Decode", report.decode), ("Prefill", report.prefill)):
        if side is not None:
            found += _fit_words_side(what, side)
    if any(side is not None and side.at_ceiling for side in (report.decode, report.prefill)):
        found.append(
            "Look whether model, precision, hardware and its number, prefix cache and speculation are those of the "
            "benchmark: no software is faster than a ceiling."
        )
    found.append(held_out_words(report.held_out))
    if report.used < report.runs:
        found.append(f"Of {report.runs:,} runs {report.used:,} were fitted to, taken evenly.")
    return found


def off(error: float) -> str:
    """A log error as how far off: 0.095 is "10 %", 1.1 is "a factor of 3"."""
    factor = math.exp(error)
    if factor < _LEAST_TOLD:
        return "less than 1 %"
    return f"{100 * (factor - 1):.0f} %" if factor < 2 else f"a factor of {significant(factor, 2)}"


def held_out_words(held: HeldOut | None) -> str:
    """What the fit is worth on a half of the runs that it had not seen."""
    if held is None:
        return "With one run there is no other to try the fit on."
    better = held.fitted_error < held.default_error
    verdict = "" if better else " On these runs the fit is no better than the default: do not rely on it."
    runs = "run" if held.judged == 1 else f"{held.judged:,} runs"
    return (
        f"Tried on the {runs} that a fit to the other {held.fitted:,} had not seen: times typically off by "
        f"{off(held.fitted_error)}, without it by {off(held.default_error)}.{verdict}"
    )


def _fit_words_side(what: str, side: SideFit) -> list[str]:
    factor, several = side.factor, side.at_ceiling > 1
    points = "1 point" if factor.points == 1 else f"{factor.points:,} points"
    times = significant(factor.factor, _DIGITS)
    found = [f"{what} times are {times} times those of the default ({points}). {_reach(side)}"]
    if side.left_out_error is not None:
        # The trial below is of both sides together, where a good one may hide a bad one.
        worse = " This factor is no better than the default: do not rely on it."
        found.append(
            f"{what} times predicted from the other runs are typically off by {off(side.left_out_error)}, without the "
            f"fit by {off(side.default_error)}.{worse if _is_worse(side) else ''}"
        )
    if side.believed < _SURE:
        weight = f"{100 * (1 - side.believed):.0f} % of the weight is the default’s"
        found.append(f"In the factor of {what.lower()} times {weight}: more runs would say more.")
    if not LEAST_FACTOR < factor.factor < MOST_FACTOR:
        found.append(f"{times} is as far as a calibration goes.")
    if side.fitted_error > _FAR_OFF:
        found.append(
            f"Even with the fit {what.lower()} times are typically off by {off(side.fitted_error)}: what was measured "
            "is hardly what was chosen here, or it is in other units."
        )
    if side.drift is not None:
        found.append(_drift(what, side.drift))
    if side.at_ceiling:
        beat = (
            "times beat their ceilings and are counted at them"
            if several
            else "time beats its ceiling and is counted at it"
        )
        found.append(f"{side.at_ceiling:,} {what.lower()} {beat}: no factor goes beyond.")
    if side.is_stuck:
        found.append(f"Expected {what.lower()} times stand at what no software beats, and follow no factor any more.")
    return found


def _is_worse(side: SideFit) -> bool:
    """Whether the default predicts a run better than the others do, by more than repetitions differ."""
    return (side.left_out_error or 0) > max(side.default_error, LEAST_SPREAD)


def _drift(what: str, drift: Drift) -> str:
    ends = (
        f"× {significant(value, _DIGITS)} at {load:,}"
        for load, value in ((drift.lowest, drift.at_lowest), (drift.highest, drift.at_highest))
    )
    return (
        f"{what} times over the fit go from {' to '.join(ends)} at a time: one factor does not follow the load, and "
        "beyond the loads that were measured it is off by more."
    )


def _reach(side: SideFit) -> str:
    low, high = side.factor.low, side.factor.high
    if low is not None and high is not None:
        return f"Eight new ones of ten will lie between {_signed(low)} and {_signed(high)} of that."
    if side.factor.points < FEWEST:
        return f"An interval is told from {FEWEST} points on."
    return "The points are too far apart for an interval."


def _signed(multiple: float) -> str:
    share = 100 * (multiple - 1)
    return f"{'+' if share >= 0 else '−'}{abs(share):.0f} %"
