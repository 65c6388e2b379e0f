"""The times of runs that tell of an efficiency, and what is expected of them under any factors.

The pair of factors that brings all times of some runs nearest: a robust regression in log space, held toward 1.

Sought together, for a time between tokens tells of both: of steps, and of others' prompts between them. Each time
counts by its usual scatter, those far off less (Huber); each factor is held toward 1 as loosely as the default is
usually off, so a few points that disagree move it little. Gauss and Newton's way, in a few steps.

What points scattered about a fit say: how far off they are, and where a new one will lie.

Whether what a fit leaves over rises or falls with the load: then no one factor follows it.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from app.calc.broadcast import scalar
from app.calc.deployment import Deployment
from app.calc.measure import Measures, measure
from app.calc.time.expected.calibration import OwnCalibration, OwnFactor
from app.calc.time.serving import Estimate
from app.catalog.catalog import Catalog
from app.features.benchmarks.overlay import ROUNDING, Figure, Laid
from app.scenario.resolve import resolve

_LOW_LOAD = 0.5


class Side(StrEnum):
    """What has a factor."""

    DECODE = "decode"
    PREFILL = "prefill"


Logs = Mapping[Side, float]
DEFAULT: Logs = dict.fromkeys(Side, 0.0)
"""The logarithms of no factor at all."""
SIDES: Mapping[Figure, Side] = {
    Figure.TTFT: Side.PREFILL,
    Figure.PROMPT: Side.PREFILL,
    Figure.TPOT: Side.DECODE,
    Figure.GENERATED: Side.DECODE,
}


@dataclass(frozen=True, slots=True)
class Timed:
    """One measured time: which run's, of what, its seconds; `waits` where it is expected to wait in a queue for more
    than half of itself, and so tells of that more than of the machine.
    """

    run: int
    figure: Figure
    seconds: float
    waits: bool

    @property
    def side(self) -> Side:
        """The side that it is a time of."""
        return SIDES[self.figure]


class TimedRuns:
    """Runs with their deployments, without a calibration that their scenarios may carry."""

    def __init__(self, runs: Sequence[Laid], catalog: Catalog) -> None:
        plain = [run.scenario.model_copy(update={"calibration": None}) for run in runs]
        self.loads = [run.load.concurrency for run in runs]
        self._deployments: list[Deployment] = [resolve(scenario, catalog).deployment for scenario in plain]
        self.times = [time for number, run in enumerate(runs) for time in self._times(number, run)]

    def residuals(self, times: Sequence[Timed], logs: Logs = DEFAULT) -> list[float]:
        """log(measured ÷ expected) of each under the factors exp(`logs`); what beats its ceiling counts as at it."""
        by_run = {run: self._measures(run, logs) for run in {time.run for time in times}}
        found = []
        for time in times:
            estimate = _estimate(by_run[time.run], time.figure)
            found.append(math.log(max(time.seconds, estimate.ceiling) / estimate.best_known))
        return found

    def beating(self, times: Sequence[Timed]) -> int:
        """How many are shorter than their ceilings."""
        ceilings = (_estimate(measure(self._deployments[time.run]), time.figure).ceiling for time in times)
        return sum(time.seconds < (1 - ROUNDING) * ceiling for time, ceiling in zip(times, ceilings, strict=True))

    def _measures(self, run: int, logs: Logs) -> Measures:
        decode, prefill = (OwnFactor(math.exp(logs[side]), 1) for side in (Side.DECODE, Side.PREFILL))
        return measure(replace(self._deployments[run], own_calibration=OwnCalibration("sought", decode, prefill)))

    def _times(self, number: int, run: Laid) -> list[Timed]:
        found = []
        for beside in run.figures:
            if beside.figure not in SIDES or beside.predicted.mid is None:
                continue
            seconds = beside.measured if beside.figure.is_time else 1 / beside.measured
            if beside.figure is Figure.PROMPT and run.point.bare is not None:
                seconds *= run.point.bare.prompt_tokens
            found.append(Timed(number, beside.figure, seconds, beside.figure is Figure.TTFT and self._waits(number)))
        return found

    def _waits(self, number: int) -> bool:
        expected = measure(self._deployments[number]).expected
        return expected is not None and scalar(expected.stay.wait_s) > _LOW_LOAD * scalar(expected.stay.ttft_s)


def _estimate(measures: Measures, figure: Figure) -> Estimate:
    if figure is Figure.TTFT:
        return measures.serving.ttft_s
    if figure is Figure.TPOT:
        return measures.serving.tpot_s
    return measures.prefill_s if figure is Figure.PROMPT else measures.decode_s


LEAST_FACTOR, MOST_FACTOR = 0.05, 20.0
USUALLY_OFF: Mapping[Side, float] = {Side.DECODE: 0.3, Side.PREFILL: 0.5}
"""By how much in log space the default misses what somebody else measures (docs/expected.md)."""
SCATTER = 0.1
"""Of a time about the fit of its own stack, in log space."""
SCATTER_OF_QUEUES = 0.3
"""Of a first token that waits for others' prompts: how requests arrive is in it, which no factor is about."""
_HUBER = 1.345
_STEPS = 5
_PROBE = 0.05
_NEAR = 1e-3
_BENDS = 0.1
"""Slopes are taken anew where a log factor has moved so far since."""

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Regressed:
    """Log factors of the sides that have times, how firmly the times say so, and what is left for leaving one out.

    `believed` is by side the part of the certainty that comes from the times, the rest being the hold toward 1;
    `followed` how much expected times of the side move with its factor: 1 in proportion, 0 not at all.
    """

    logs: Logs
    believed: Mapping[Side, float]
    followed: Mapping[Side, float]
    times: Sequence[Timed]
    _weighted: Array
    _slopes: Array
    _free: Sequence[Side]

    def without(self, run: int) -> Logs:
        """The factors that the other runs ask for, to first order about these."""
        kept = np.array([time.run != run for time in self.times])
        slopes, weighted = self._slopes[kept], self._weighted[kept]
        at = np.array([self.logs[side] for side in self._free])
        return _logs(self._free, at - _step(slopes, weighted, at, self._free))


def regress(runs: TimedRuns, times: Sequence[Timed]) -> Regressed | None:
    """The factors of `times`; None where there are none."""
    free = [side for side in Side if any(time.side is side for time in times)]
    if not free:
        return None
    scatter = np.array([SCATTER_OF_QUEUES if time.waits else SCATTER for time in times])
    at: Array = np.zeros(len(free))
    off = np.array(runs.residuals(times, _logs(free, at)))
    slopes, taken = _slopes(runs, times, free, at, off), at
    for _ in range(_STEPS):
        weight = _weights(off / scatter) / scatter
        step = _step(slopes * weight[:, None], off * weight, at, free)
        moved = np.minimum(math.log(MOST_FACTOR), np.maximum(math.log(LEAST_FACTOR), at - step))
        is_near = bool(np.max(np.abs(moved - at)) < _NEAR)
        at, off = moved, np.array(runs.residuals(times, _logs(free, moved)))
        if bool(np.max(np.abs(at - taken)) > _BENDS):
            slopes, taken = _slopes(runs, times, free, at, off), at
        if is_near:
            break
    weight = _weights(off / scatter) / scatter
    weighted = slopes * weight[:, None]
    variance = np.diag(np.linalg.inv(weighted.T @ weighted + _hold(free)))
    return Regressed(
        logs=_logs(free, at),
        believed={side: 1 - float(variance[i]) / USUALLY_OFF[side] ** 2 for i, side in enumerate(free)},
        followed={
            side: float(np.median([-slopes[row, i] for row, time in enumerate(times) if time.side is side]))
            for i, side in enumerate(free)
        },
        times=times,
        _weighted=off * weight,
        _slopes=weighted,
        _free=free,
    )


def _slopes(runs: TimedRuns, times: Sequence[Timed], free: Sequence[Side], at: Array, off: Array) -> Array:
    """How the residuals `off` at some log factors change with each of them."""
    columns = []
    for i in range(len(free)):
        beside = at.copy()
        beside[i] += _PROBE
        columns.append((np.array(runs.residuals(times, _logs(free, beside))) - off) / _PROBE)
    return np.stack(columns, axis=1)


def _step(slopes: Array, off: Array, at: Array, free: Sequence[Side]) -> Array:
    hold = _hold(free)
    solved = np.linalg.solve(slopes.T @ slopes + hold, slopes.T @ off + hold @ at)
    return np.asarray(solved, dtype=np.float64)


def _hold(free: Sequence[Side]) -> Array:
    return np.diag([1 / USUALLY_OFF[side] ** 2 for side in free])


def _weights(scaled: Array) -> Array:
    """Square roots of Huber's weights."""
    weights: Array = np.sqrt(1 / np.maximum(1.0, np.abs(scaled) / _HUBER))
    return weights


def _logs(free: Sequence[Side], at: Array) -> Logs:
    return {**DEFAULT, **{side: float(at[i]) for i, side in enumerate(free)}}


EIGHT_IN_TEN = 1.2815515655446004
"""Quantile 0.9 of the normal distribution: eight of ten lie within it on both sides."""
FEWEST = 3
"""Points from which an interval is told."""
LEAST_SPREAD = 0.02
"""Points of one run agree by chance; no repetition of a benchmark is nearer than about 2 %."""


def student_quantile(freedom: int) -> float:
    """Quantile 0.9 of Student's t with so many degrees of freedom, at least 2.

    From that of the normal distribution by the expansion of Cornish and Fisher (Abramowitz & Stegun 26.7.5), whose
    error is below 0.2 % from 2 on. Worked number: 1.886 for 2, 1.372 for 10.
    """
    z = EIGHT_IN_TEN
    terms = (
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
        (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / 92_160,
    )
    return z + sum(term / math.pow(freedom, power) for power, term in enumerate(terms, start=1))


def spread_of(residuals: Sequence[float]) -> float:
    """Root mean square of log residuals about the fit, one degree of freedom spent on it; of two or more."""
    return max(LEAST_SPREAD, math.sqrt(math.fsum(each * each for each in residuals) / (len(residuals) - 1)))


def interval_of(residuals: Sequence[float]) -> tuple[float, float] | None:
    """Between which multiples of the fit eight new points of ten will lie; None of fewer than three.

    t·s·sqrt(1 + 1/n) in log space: the scatter of a point, and that of the middle it is seen from.
    """
    n = len(residuals)
    if n < FEWEST:
        return None
    reach = student_quantile(n - 1) * spread_of(residuals) * math.sqrt(1 + 1 / n)
    return math.exp(-reach), math.exp(reach)


def typical(errors: Sequence[float]) -> float | None:
    """The median size of log errors; None of none."""
    return float(np.median(np.abs(errors))) if len(errors) else None


DRIFT_FEWEST = 4
"""Runs from which a slope is told from scatter."""
LEAST_TOLD = math.log(1.2)
"""How far the two ends of the loads must lie apart."""
FIRM = 3.0
"""How many times its own standard error a slope must be."""


@dataclass(frozen=True, slots=True)
class Drift:
    """Measured over fitted at the lowest and at the highest load, by a straight line in logarithms."""

    lowest: int
    at_lowest: float
    highest: int
    at_highest: float


def drift_of(loads: Sequence[int], residuals: Sequence[float]) -> Drift | None:
    """The slope of log residuals over the logarithm of the requests at a time; None where scatter explains it.

    Worked example: residuals -0.3, -0.1, 0.1, 0.3 at 1, 4, 16, 64 lie on a line, from x 0.74 to x 1.35.
    """
    lowest, highest = min(loads, default=1), max(loads, default=1)
    if len(loads) < DRIFT_FEWEST or lowest == highest:
        return None
    x, y = np.log(np.asarray(loads, dtype=float)), np.asarray(residuals, dtype=float)
    x -= x.mean()
    middle, spread = float(y.mean()), float(x @ x)
    slope = float(x @ y) / spread
    error = math.sqrt(float(np.sum((y - middle - slope * x) ** 2)) / (len(y) - 2) / spread)
    ends = (float(x.min()), float(x.max()))
    if abs(slope) * (ends[1] - ends[0]) < LEAST_TOLD or abs(slope) < FIRM * error:
        return None
    low, high = (math.exp(middle + slope * end) for end in ends)
    return Drift(lowest, low, highest, high)
