"""What a growing batch gives to all and takes from each."""

from types import MappingProxyType
from typing import Any

import numpy as np

from app.calc.evaluation import Evaluation
from app.calc.notation import significant
from app.charts.figure import Chart, layout, linear_axis, log_axis, note, table_of, vertical, zone
from app.charts.series import BatchSeries, Values, batch_series

DASHES = MappingProxyType({"rule": "dash", "decode": "solid", "overhead": "dot"})


def batch_chart(evaluation: Evaluation) -> Chart:
    """Two plots over one batch axis: tokens a second of all users, and of each; with the cache, and weights alone."""
    series = batch_series(evaluation)
    capacity = evaluation.measures.memory.max_concurrency
    top = float(series.batch[-1])
    fastest = 1 / float(min(series.tpot_s[0], series.weights_only_step_s[0]))
    traces = [
        _line(series, 1 / series.weights_only_step_s, "y2", "rule", "Weights alone (rule)", show=False),
        _line(series, 1 / series.tpot_s, "y2", "decode", "With the cache (ceiling)", show=False),
        _line(series, series.batch / series.weights_only_step_s, "y", "rule", "Weights alone (rule)"),
        _line(series, series.batch / series.tpot_s, "y", "decode", "With the cache (ceiling)"),
        *_expected(series),
        _here(evaluation, "y", evaluation.measures.memory.served_sequences),
        _here(evaluation, "y2", 1),
    ]
    shapes = [vertical(series.ridge_batch, "ridge", "dot")] if series.ridge_batch < top else []
    labels = []
    if series.ridge_batch < top:
        labels.append(_label(f"ridge {significant(series.ridge_batch, 3)}", series.ridge_batch, 1.0, "right"))
    if 0 < capacity < top:
        shapes += [vertical(capacity, "limit"), zone(capacity, top, "overzone")]
        labels.append(_label(f"memory full at {capacity:,}", capacity, 0.5, "right"))
    figure = {
        "data": traces,
        "layout": layout(
            420,
            xaxis=log_axis("Sequences in a decode step (batch)", 1, top, anchor="y2"),
            yaxis=linear_axis("All users, tokens/s", fastest * top, domain=[0.54, 1], rangemode="tozero"),
            yaxis2=linear_axis("Each user, tokens/s", fastest, domain=[0, 0.44], rangemode="tozero"),
            shapes=shapes,
            annotations=labels,
        ),
    }
    reached = series.tpot_s if series.expected_tpot_s is None else series.expected_tpot_s
    rows = [
        (
            int(b),
            float(b / e),
            float(1 / e),
            float(b / s),
            float(1 / s),
            float(b / w),
            float(1 / w),
            float(s),
            "yes" if b <= capacity else "no",
        )
        for b, s, w, e in zip(series.batch, series.tpot_s, series.weights_only_step_s, reached, strict=True)
    ]
    columns = (
        "batch",
        "all users, expected (tokens/s)",
        "each user, expected (tokens/s)",
        "all users, with cache (tokens/s)",
        "each user, with cache (tokens/s)",
        "all users, weights alone (tokens/s)",
        "each user, weights alone (tokens/s)",
        "a token, with cache (s)",
        "fits at full length",
    )
    return Chart(
        "batch",
        "Throughput and pace against batch",
        "What does one more user cost the others?",
        _summary(evaluation, series, capacity),
        figure,
        table_of(columns, rows),
    )


def _expected(series: BatchSeries) -> list[dict[str, Any]]:
    """The estimate, dotted as estimates are everywhere."""
    step = series.expected_tpot_s
    if step is None:
        return []
    return [
        _line(series, series.batch / step, "y", "overhead", "Expected"),
        _line(series, 1 / step, "y2", "overhead", "Expected", show=False),
    ]


def _line(
    series: BatchSeries, values: Values, axis_name: str, role: str, name: str, *, show: bool = True
) -> dict[str, Any]:
    return {
        "type": "scatter",
        "mode": "lines",
        "name": name,
        "legendgroup": role,
        "showlegend": show,
        "x": series.batch.tolist(),
        "y": values.tolist(),
        "yaxis": axis_name,
        "line": {
            "color": f"@{role}",
            "width": 2 if role == "rule" else 2.5,
            "dash": DASHES[role],
        },
        "hovertemplate": f"{name}, batch %{{x:,}}: %{{y:.4s}} tokens/s<extra></extra>",
    }


def _here(evaluation: Evaluation, axis_name: str, users: int) -> dict[str, Any]:
    step = evaluation.measures.decode_s.best_known / evaluation.deployment.tokens_per_step
    return {
        "type": "scatter",
        "mode": "markers",
        "name": "This scenario",
        "showlegend": axis_name == "y",
        "x": [evaluation.measures.memory.served_sequences],
        "y": [users / step],
        "yaxis": axis_name,
        "marker": {"color": "@overhead", "size": 12, "symbol": "circle", "line": {"color": "@surface", "width": 2}},
        "hovertemplate": "this scenario, batch %{x:,}: %{y:.4s} tokens/s<extra></extra>",
    }


def _label(text: str, x: float, y: float, anchor: str) -> dict[str, Any]:
    return note(text, float(np.log10(x)), y, yref="paper", xanchor=anchor, yanchor="top", xshift=-4)


def _summary(evaluation: Evaluation, series: BatchSeries, capacity: int) -> str:
    first, running = series.tpot_s[0], evaluation.measures.memory.running_sequences
    each = evaluation.deployment.tokens_per_step
    step, found = evaluation.measures.decode.ceiling_s / each, evaluation.measures.decode_s.mid
    expected = None if found is None else found / each
    text = (
        f"Decode alone: one user gets at best {significant(1 / first, 3)} tokens/s; at {running:,} each gets at best "
        f"{significant(1 / step, 3)} and all together {significant(running / step, 3)}."
    )
    if expected is not None:
        text = f"{text} A server is expected to give each {significant(1 / expected, 3)}."
    limit = f" Memory is full at {capacity:,}" if capacity else " Not one sequence fits"
    return f"{text}{limit}; arithmetic would bind weights alone from {significant(series.ridge_batch, 3)} on."
