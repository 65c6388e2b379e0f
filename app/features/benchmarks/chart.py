"""A benchmark over its prediction: what was measured as points, the ceiling as a line, what is expected dotted."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from app.calc.quantity import quantity, significant
from app.features.benchmarks.overlay import Beside, Figure, Laid
from app.web.figure import Cell, Chart, layout, log_axis, plain, table_of

HEIGHT = 380
_ROOM = 1.3
_DRAWN = (Figure.TPOT, Figure.TTFT, Figure.OUTPUT, Figure.LATENCY, Figure.GENERATED, Figure.PROMPT)
"""The figures that are drawn, in their order; the others stand in the table of runs."""
_COLUMNS = ("run", "at a time", "prompt (tokens)", "answer (tokens)", "measured", "ceiling", "low", "expected", "high")
_BARE = (Figure.GENERATED, Figure.PROMPT)


@dataclass(frozen=True, slots=True)
class _Drawn:
    """A run with one of its figures: where it stands along the axis, and beside what."""

    run: Laid
    beside: Beside
    x: float


def bench_charts(before: Sequence[Laid], after: Sequence[Laid]) -> list[Chart]:
    """A chart for each figure that a run has; `after` are the same runs beside a fit, none where there is none."""
    charts = []
    for figure in _DRAWN:
        drawn = _drawn(before, figure)
        if drawn:
            charts.append(_chart(figure, drawn, _drawn(after, figure)))
    return charts


def _drawn(runs: Iterable[Laid], figure: Figure) -> list[_Drawn]:
    found = [_Drawn(run, beside, _x(run, figure)) for run in runs if (beside := run.of(figure)) is not None]
    return sorted(found, key=lambda one: (_lengths(one.run), one.x))


def _x(run: Laid, figure: Figure) -> float:
    """Requests at a time; of a bare pass the tokens in front of and in it."""
    return float(run.load.prompt_tokens if figure in _BARE else run.load.concurrency)


def _lengths(run: Laid) -> tuple[int, int]:
    """What runs of one line have in common: bare ones all make one."""
    return (0, run.load.output_tokens) if run.point.bare else (run.load.prompt_tokens, run.load.output_tokens)


def _chart(figure: Figure, drawn: Sequence[_Drawn], fitted: Sequence[_Drawn]) -> Chart:
    title, unit = figure.label, figure.unit.value
    traces = [
        _line("Ceiling", drawn, lambda one: one.beside.predicted.ceiling, "roof", "solid"),
        _expected(drawn),
    ]
    if fitted:
        traces.append(_line("Expected with the fit", fitted, lambda one: one.beside.predicted.mid, "rule", "dash"))
    traces.append(_measured(drawn, unit))
    low, high = _range(value for one in (*drawn, *fitted) for value in _values(one.beside))
    left, right = _range(one.x for one in drawn)
    along = "Tokens in front and in the prompt" if figure in _BARE else "Requests at a time"
    drawing = {
        "data": traces,
        "layout": layout(
            HEIGHT,
            margin={"l": 64, "r": 20, "t": 64, "b": 48},
            hovermode="closest",
            xaxis=log_axis(along, left, right),
            yaxis=log_axis(f"{title}, {unit}", low, high),
        ),
    }
    return Chart(
        f"bench-{figure.value}",
        title,
        "Does what was measured lie where it was expected?",
        _summary(drawn),
        drawing,
        table_of(_COLUMNS, [_row(one) for one in drawn]),
    )


def _values(beside: Beside) -> list[float]:
    predicted = beside.predicted
    told = (beside.measured, predicted.ceiling, predicted.low, predicted.mid, predicted.high)
    return [value for value in told if value is not None]


def _range(values: Iterable[float]) -> tuple[float, float]:
    """A little beyond every value."""
    found = list(values)
    return min(found) / _ROOM, max(found) * _ROOM


def _line(
    name: str, drawn: Sequence[_Drawn], value: Callable[[_Drawn], float | None], role: str, dash: str
) -> dict[str, Any]:
    """A line through runs of the same lengths, broken between others."""
    xs, ys = list[float | None](), list[float | None]()
    for before, one in zip((None, *drawn), drawn, strict=False):
        if before is not None and _lengths(before.run) != _lengths(one.run):
            xs.append(None)
            ys.append(None)
        xs.append(one.x)
        ys.append(value(one))
    return {
        "type": "scatter",
        "mode": "lines+markers",
        "name": name,
        "x": xs,
        "y": ys,
        "connectgaps": False,
        "line": {"color": f"@{role}", "width": 2, "dash": dash},
        "marker": {"color": f"@{role}", "size": 5, "symbol": "line-ew-open", "line": {"color": f"@{role}", "width": 2}},
        "hoverinfo": "skip",
    }


def _expected(drawn: Sequence[_Drawn]) -> dict[str, Any]:
    """The estimate, dotted as estimates are everywhere, with its interval as bars."""
    line = _line(
        "Expected, eight of ten within the bars", drawn, lambda one: one.beside.predicted.mid, "overhead", "dot"
    )
    up, down = [], []
    for x in _aligned(line["x"], drawn):
        up.append(_reach(x, upwards=True))
        down.append(_reach(x, upwards=False))
    bars = {"type": "data", "symmetric": False, "array": up, "arrayminus": down, "thickness": 1.5, "width": 4}
    return line | {"error_y": bars | {"color": "@overhead"}}


def _aligned(xs: Sequence[float | None], drawn: Sequence[_Drawn]) -> list[_Drawn | None]:
    """The runs with a gap where the line has one."""
    left = iter(drawn)
    return [None if x is None else next(left) for x in xs]


def _reach(one: _Drawn | None, *, upwards: bool) -> float:
    if one is None:
        return 0.0
    predicted = one.beside.predicted
    end = predicted.high if upwards else predicted.low
    return 0.0 if end is None or predicted.mid is None else abs(end - predicted.mid)


def _measured(drawn: Sequence[_Drawn], unit: str) -> dict[str, Any]:
    return {
        "type": "scatter",
        "mode": "markers",
        "name": "Measured",
        "x": [one.x for one in drawn],
        "y": [one.beside.measured for one in drawn],
        "text": ["<br>".join(plain(line) for line in _words(one, unit)) for one in drawn],
        "marker": {
            "color": ["@limit" if one.beside.beats_ceiling else "@decode" for one in drawn],
            "symbol": ["x" if one.beside.beats_ceiling else "circle" for one in drawn],
            "size": 10,
        },
        "hovertemplate": "%{text}<extra></extra>",
    }


def _words(one: _Drawn, unit: str) -> list[str]:
    load, beside = one.run.load, one.beside
    lines = [
        f"run {one.run.number}: {load.concurrency:,} at a time",
        f"{load.prompt_tokens:,} in, {load.output_tokens:,} out",
        f"measured {quantity(beside.measured, unit, 3)}",
    ]
    if beside.predicted.mid is not None:
        lines.append(f"expected {quantity(beside.predicted.mid, unit, 3)}")
    if beside.beats_ceiling:
        lines.append("faster than its ceiling")
    return lines


def _row(one: _Drawn) -> tuple[Cell, ...]:
    load, beside = one.run.load, one.beside
    predicted = beside.predicted
    told = (predicted.low, predicted.mid, predicted.high)
    ends = ("none" if value is None else value for value in told)
    lengths = (load.concurrency, load.prompt_tokens, load.output_tokens)
    return (f"run {one.run.number}", *lengths, beside.measured, predicted.ceiling, *ends)


def _summary(drawn: Sequence[_Drawn]) -> str:
    """How the runs lie: inside their intervals, and which way."""
    told = [one.beside for one in drawn if one.beside.is_inside is not None]
    speeds = [speed for one in drawn if (speed := one.beside.speed) is not None]
    if not speeds:
        return "Nothing is expected of these runs: there are only ceilings."
    inside = sum(beside.is_inside is True for beside in told)
    within = f"{inside:,} of {len(told):,} runs lie inside the interval" if told else "No interval is claimed"
    over = sum(one.beside.beats_ceiling for one in drawn)
    beaten = f" {over:,} beat the ceiling, which cannot be." if over else ""
    return f"{within}; typically measured at {significant(median(speeds), 3)} times the expected speed.{beaten}"
