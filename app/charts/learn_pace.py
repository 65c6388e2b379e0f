"""What each user gets, and all of them together, as more share one reading of the weights."""

from typing import Any

import numpy as np

from app.calc.evaluation import Evaluation
from app.calc.notation import significant
from app.charts.figure import Chart, layout, linear_axis, log_axis, note, table_of, vertical
from app.charts.series import BatchSeries, Values, batch_series

HEIGHT_PX = 420
MOST_BEYOND = 16.0
"""How far beyond the ridge the axis reaches."""


def pace_chart(evaluation: Evaluation) -> Chart:
    """Two plots over one batch axis by the rule of thumb, weights alone: level and rising, then falling and level."""
    series = batch_series(evaluation)
    users = evaluation.measures.memory.replica_sequences
    each, all_ = 1 / series.weights_only_step_s, series.batch / series.weights_only_step_s
    top = float(min(series.batch[-1], max(2 * users, MOST_BEYOND * series.ridge_batch, 64)))
    shapes, labels = [], []
    if 1 < series.ridge_batch < top:
        shapes.append(vertical(series.ridge_batch, "ridge", "dot"))
        text = f"ridge: {significant(series.ridge_batch, 3)} users"
        labels.append(
            note(
                text, float(np.log10(series.ridge_batch)), 1.0, yref="paper", xanchor="right", yanchor="top", xshift=-5
            )
        )
    figure = {
        "data": [
            _line(series.batch, each, "y2", "decode", "Each user", "solid"),
            _line(series.batch, all_, "y", "rule", "All users", "dash"),
            _here(series, users, "y2", each),
            _here(series, users, "y", all_),
        ],
        "layout": layout(
            HEIGHT_PX,
            xaxis=log_axis("Users who share a step", 1, top, anchor="y2"),
            yaxis=linear_axis("All users, tokens/s", float(all_.max()), domain=[0.54, 1], rangemode="tozero"),
            yaxis2=linear_axis("Each user, tokens/s", float(each.max()), domain=[0, 0.44], rangemode="tozero"),
            shapes=shapes,
            annotations=labels,
        ),
    }
    rows = [(int(b), float(e), float(a)) for b, e, a in zip(series.batch, each, all_, strict=True) if b <= top]
    return Chart(
        "pace",
        "The pace of one user as others join",
        "From which batch on does one more user slow the others down?",
        _summary(series, each, users),
        figure,
        table_of(("users in a step", "each user (tokens/s)", "all users (tokens/s)"), rows),
    )


def _line(batch: Values, values: Values, axis_name: str, role: str, name: str, dash: str) -> dict[str, Any]:
    return {
        "type": "scatter",
        "mode": "lines",
        "name": name,
        "x": batch.tolist(),
        "y": values.tolist(),
        "yaxis": axis_name,
        "line": {"color": f"@{role}", "width": 2.5, "dash": dash},
        "hovertemplate": f"{name}, batch %{{x:,}}: %{{y:.4s}} tokens/s<extra></extra>",
    }


def _here(series: BatchSeries, users: int, axis_name: str, values: Values) -> dict[str, Any]:
    at = int(np.argmin(np.abs(series.batch - users)))
    return {
        "type": "scatter",
        "mode": "markers",
        "name": f"{users:,} users",
        "showlegend": axis_name == "y",
        "x": [float(series.batch[at])],
        "y": [float(values[at])],
        "yaxis": axis_name,
        "marker": {"color": "@overhead", "size": 12, "symbol": "circle", "line": {"color": "@surface", "width": 2}},
        "hovertemplate": "batch %{x:,}: %{y:.4s} tokens/s<extra></extra>",
    }


def _summary(series: BatchSeries, each: Values, users: int) -> str:
    first, ridge = float(each[0]), series.ridge_batch
    at = float(each[int(np.argmin(np.abs(series.batch - users)))])
    level = "keeps that" if at > 0.999 * first else f"has {significant(at, 3)} left"
    return (
        f"Alone a user gets {significant(first, 4)} tokens/s, and among {users:,} each {level}. Arithmetic takes as "
        f"long as the reading from {significant(ridge, 3)} users on; beyond it the total stays and each share shrinks."
    )
