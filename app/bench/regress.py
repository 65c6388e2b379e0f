"""The pair of factors that brings all times of some runs nearest: a robust regression in log space, held toward 1.

Sought together, for a time between tokens tells of both: of steps, and of others' prompts between them. Each time
counts by its usual scatter, those far off less (Huber); each factor is held toward 1 as loosely as the default is
usually off, so a few points that disagree move it little. Gauss and Newton's way, in a few steps.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from app.bench.timed import DEFAULT, Logs, Side, Timed, TimedRuns

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
