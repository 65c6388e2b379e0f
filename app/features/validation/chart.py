"""Predicted against measured, log-log: a point a measurement, times in one figure and rates in another."""

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from app.catalog.measurements import Metric
from app.features.validation.compared import METRICS, RATES, Compared, value_words
from app.features.validation.errors import NEAR, TWICE, errors_of
from app.web.figure import Cell, Chart, layout, log_axis, plain, table_of

HEIGHT = 480
_MARKS = {
    Metric.TTFT: ("prefill", "diamond"),
    Metric.TPOT: ("decode", "circle"),
    Metric.OUTPUT: ("decode", "circle"),
    Metric.PER_USER: ("rule", "square"),
    Metric.TOTAL: ("experts", "triangle-up"),
    Metric.PREFILL: ("prefill", "diamond"),
    Metric.DECODE: ("rule", "square"),
}
_GUIDES = (
    ("as measured", "solid", (1.0,)),
    ("± 20 %", "dash", (1 - NEAR, 1 + NEAR)),
    ("factor 2", "dot", (1 / TWICE, TWICE)),
)
_LEAST_REACH = math.sqrt(10)


def validation_charts(rows: Sequence[Compared]) -> list[Chart]:
    """A chart of the times and one of the rates among `rows`; none of what is not there."""
    times = [row for row in rows if row.measurement.metric not in RATES]
    rates = [row for row in rows if row.measurement.metric in RATES]
    charts = []
    if times:
        charts.append(_chart("predicted-times", "Times", "s", times))
    if rates:
        charts.append(_chart("predicted-rates", "Rates", "tokens/s", rates))
    return charts


def _chart(id_: str, title: str, unit: str, rows: Sequence[Compared]) -> Chart:
    low, high = _range(rows)
    metrics = [metric for metric in Metric if any(row.measurement.metric is metric for row in rows)]
    scored = [row for row in rows if row.is_scored]
    traces = [_guide(name, dash, factors, low, high) for name, dash, factors in _GUIDES]
    traces += [
        _points(METRICS[metric], *_MARKS[metric], [row for row in scored if row.measurement.metric is metric])
        for metric in metrics
        if any(row.measurement.metric is metric for row in scored)
    ]
    if others := [row for row in rows if not row.is_scored]:
        traces.append(_points("not counted: speculation not stated", "ridge", "x-thin-open", others))
    figure = {
        "data": traces,
        "layout": layout(
            HEIGHT,
            margin={"l": 64, "r": 20, "t": 64, "b": 48},
            hovermode="closest",
            xaxis=log_axis(f"Measured, {unit}", low, high),
            yaxis=log_axis(f"Predicted, cross-validated, {unit}", low, high),
        ),
    }
    return Chart(
        id_,
        title,
        f"Does what was predicted in {'seconds' if unit == 's' else unit} lie where it was measured?",
        _summary(scored),
        figure,
        table_of(_COLUMNS, [_line(metric, rows) for metric in metrics]),
    )


_COLUMNS = ("metric", "measurements", "counted", "median error (%)", "within 20 % (%)", "within factor 2 (%)")


def _line(metric: Metric, rows: Sequence[Compared]) -> tuple[Cell, ...]:
    found = [row for row in rows if row.measurement.metric is metric]
    scored = [row for row in found if row.is_scored]
    errors = errors_of((row.held_out, row.measured) for row in scored)
    if errors is None:
        return METRICS[metric], len(found), 0, "none", "none", "none"
    shares = errors.median, errors.within_20_percent, errors.within_factor_2
    return METRICS[metric], len(found), len(scored), *(100 * share for share in shares)


def _range(rows: Sequence[Compared]) -> tuple[float, float]:
    """From where to where both axes reach: a little beyond every point, and a decade at least, for the guides."""
    values = np.array([(row.measured, row.held_out) for row in rows])
    low, high = float(values.min()) / 1.3, float(values.max()) * 1.3
    middle = math.sqrt(low * high)
    return min(low, middle / _LEAST_REACH), max(high, middle * _LEAST_REACH)


def _guide(name: str, dash: str, factors: Sequence[float], low: float, high: float) -> dict[str, Any]:
    """Lines along which the prediction is so many times what was measured, inside the axes."""
    xs, ys = list[float | None](), list[float | None]()
    for factor in factors:
        start, end = max(low, low / factor), min(high, high / factor)
        xs += [start, end, None]
        ys += [start * factor, end * factor, None]
    return {
        "type": "scatter",
        "mode": "lines",
        "name": name,
        "x": xs[:-1],
        "y": ys[:-1],
        "line": {"color": "@roof" if dash == "solid" else "@ridge", "width": 1.5, "dash": dash},
        "hoverinfo": "skip",
    }


def _points(name: str, role: str, symbol: str, rows: Sequence[Compared]) -> dict[str, Any]:
    is_cross = symbol.endswith("open")
    return {
        "type": "scatter",
        "mode": "markers",
        "name": name,
        "x": [row.measured for row in rows],
        "y": [_rounded(row.held_out) for row in rows],
        "text": [_identity(row) for row in rows],
        "marker": {
            "color": f"@{role}",
            "size": 6,
            "symbol": symbol,
            "opacity": 0.9 if is_cross else 0.55,
            "line": {"color": f"@{role}", "width": 1.5} if is_cross else {"width": 0},
        },
        "hovertemplate": "%{text}<extra></extra>",
    }


@lru_cache(maxsize=4096)
def _identity(row: Compared) -> str:
    """Which measurement a point is, and its two figures. Kept: most points are drawn again and again."""
    m = row.measurement
    load = f"{m.concurrency} at a time" if m.concurrency else "as many as fit"
    lines = (
        f"{row.model}, {m.weights}",
        f"{m.gpus} × {row.accelerator}",
        f"{row.engine} {m.version}, {load}",
        f"{int(m.prompt_tokens):,} in, {int(m.output_tokens):,} out",
        f"measured {value_words(row.measured, m.metric)}, predicted {value_words(row.held_out, m.metric)}",
    )
    return "<br>".join(plain(line) for line in lines)


def _rounded(value: float) -> float:
    """Five digits, as the predictions are kept."""
    return float(f"{value:.5g}") if math.isfinite(value) else value


def _summary(scored: Sequence[Compared]) -> str:
    errors = errors_of((row.held_out, row.measured) for row in scored)
    if errors is None:
        return "No measurement here counts: none says whether it speculates."
    noun = "measurement" if errors.measurements == 1 else "measurements"
    return (
        f"Of {errors.measurements:,} counted {noun}, {100 * errors.within_20_percent:.0f} % are predicted within "
        f"20 % and {100 * errors.within_factor_2:.0f} % within a factor of 2; half are off by less than "
        f"{100 * errors.median:.0f} %."
    )
