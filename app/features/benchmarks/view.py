"""What the benchmark page shows of a study: charts, every ratio, what was left out, and the fit."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from app.calc.quantity import quantity, significant
from app.features.benchmarks.chart import bench_charts
from app.features.benchmarks.fit import sentences
from app.features.benchmarks.overlay import Beside, Laid
from app.features.benchmarks.study import Study
from app.web import urls
from app.web.figure import Chart

_DIGITS = 3


@dataclass(frozen=True, slots=True)
class RatioRow:
    """One figure of a run: as measured, as expected, how they compare before and after the fit. `state` is `beats`,
    `inside`, `outside` or `unclaimed`.
    """

    run: str
    load: str
    figure: str
    measured: str
    ceiling: str
    expected: str
    interval: str
    ratio: str
    after: str
    state: str
    words: str


class BenchView:
    """Everything the template reads of one study."""

    def __init__(self, study: Study) -> None:
        self.study = study
        after = study.after.laid if study.after else ()
        self.charts: Sequence[Chart] = bench_charts(study.before.laid, after)
        self.sentences = sentences(study.fit)
        self.rows = [
            _row(laid, beside, fitted)
            for laid, calibrated in zip(study.before.laid, after or study.before.laid, strict=True)
            for beside, fitted in zip(laid.figures, calibrated.figures, strict=True)
        ]

    @property
    def title(self) -> str:
        """What was brought, in a line."""
        tools = list(dict.fromkeys(point.tool.value for point in self.study.points))
        count = len(self.study.points)
        return f"{count:,} {'run' if count == 1 else 'runs'} of {', '.join(tools)}"

    @property
    def is_fitted(self) -> bool:
        """Whether there is a fit."""
        return self.study.after is not None

    @property
    def left_out(self) -> Sequence[tuple[str, str]]:
        """The runs that are compared with nothing, and why."""
        return [(f"Run {out.number}", out.reason) for out in self.study.before.left_out]

    @property
    def calibrated_items(self) -> Sequence[tuple[str, str]]:
        """The scenario with the calibration, as query items."""
        return urls.scenario_items(self.study.calibrated or self.study.scenario)

    def chart_data(self) -> list[dict[str, Any]]:
        """The figures, for the script that draws them, with the words an exported picture carries."""
        return [
            {"id": chart.id, "title": f"{chart.title}, measured over expected", "caption": self.title}
            | {"figure": chart.figure}
            for chart in self.charts
        ]


def _row(laid: Laid, beside: Beside, fitted: Beside) -> RatioRow:
    load, predicted = laid.load, beside.predicted
    state, words = _state(beside)
    low, high = predicted.low, predicted.high
    return RatioRow(
        run=f"Run {laid.number}",
        load=f"{load.concurrency:,} at a time, {load.how}; {load.prompt_tokens:,} in, {load.output_tokens:,} out",
        figure=beside.figure.label,
        measured=_told(beside, beside.measured),
        ceiling=_told(beside, predicted.ceiling),
        expected=_told(beside, predicted.mid),
        interval="–" if low is None or high is None else f"{_told(beside, low)} to {_told(beside, high)}",
        ratio=_ratio(beside),
        after=_ratio(fitted),
        state=state,
        words=words,
    )


def _state(beside: Beside) -> tuple[str, str]:
    if beside.beats_ceiling:
        return "beats", "beats the ceiling"
    if beside.is_inside is None:
        return "unclaimed", "no interval"
    return ("inside", "inside") if beside.is_inside else ("outside", "outside")


def _told(beside: Beside, value: float | None) -> str:
    if value is None:
        return "–"
    return (
        quantity(value, "s", _DIGITS)
        if beside.figure.is_time
        else f"{significant(value, _DIGITS)} {beside.figure.unit}"
    )


def _ratio(beside: Beside) -> str:
    return "–" if beside.ratio is None else f"× {significant(beside.ratio, _DIGITS)}"
