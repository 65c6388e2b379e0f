"""The times of runs that tell of an efficiency, and what is expected of them under any factors."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from app.bench.overlay import ROUNDING, Figure, Laid
from app.calc.broadcast import scalar
from app.calc.deployment import Deployment
from app.calc.expected.own import OwnCalibration, OwnFactor
from app.calc.measure import Measures, measure
from app.calc.serving import Estimate
from app.catalog.catalog import Catalog
from app.resolve import resolve

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
