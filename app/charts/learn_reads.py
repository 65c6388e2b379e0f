"""What one decode step reads: the weights, once for all, and the cache of each user, once for that user alone."""

import math
from typing import Any

import numpy as np

from app.calc.broadcast import scalar
from app.calc.coverage import step_weight_bytes
from app.calc.evaluation import Evaluation
from app.calc.kv_cache import kv_bytes_per_sequence
from app.calc.notation import quantity, significant
from app.charts.figure import Chart, layout, legend_above, linear_axis, table_of

HEIGHT_PX = 360
_GB = 1e9


def reads_chart(evaluation: Evaluation) -> Chart:
    """Stacked bars over the number of users at full length; the bar of the scenario's own is among them."""
    deployment, users = evaluation.deployment, evaluation.measures.memory.replica_sequences
    plan, tokens = deployment.precision.weights, deployment.workload.total_tokens
    batches = sorted({1, 2, 4, 8, 16, 32, 64, 128, 256, users})
    batches = [batch for batch in batches if batch <= max(128, 2 * users)]
    one = scalar(kv_bytes_per_sequence(deployment.architecture, tokens, deployment.precision.kv_cache))
    read = np.asarray(
        step_weight_bytes(deployment.architecture, plan, np.array(batches, dtype=float)) + np.zeros(len(batches))
    )
    cache = one * np.array(batches, dtype=float)
    names = [f"{batch:,}" for batch in batches]
    highest = float((read + cache).max()) / _GB
    figure = {
        "data": [
            _bar("Weights, once for all", "weights", names, (read / _GB).tolist()),
            _bar("Cache, each user’s own", "cache", names, (cache / _GB).tolist()),
        ],
        "layout": layout(
            HEIGHT_PX,
            barmode="stack",
            bargap=0.3,
            xaxis=_users(tokens),
            yaxis=linear_axis("Read in one step, GB", highest, rangemode="tozero"),
            legend=legend_above(),
            margin={"l": 64, "r": 20, "t": 56, "b": 52},
        ),
    }
    rows = [
        (batch, float(w), float(c), float(c / w))
        for batch, w, c in zip(batches, read.tolist(), cache.tolist(), strict=True)
    ]
    return Chart(
        "reads",
        "What one step reads",
        "From how many users on is more cache read than weights?",
        _summary(users, tokens, float(read[batches.index(users)]), one),
        figure,
        table_of(("users", "weights (B)", "cache (B)", "cache ÷ weights"), rows),
    )


def _users(tokens: int) -> dict[str, Any]:
    """An axis of words: each bar stands for a number of users."""
    title = {"text": f"Users, {tokens:,} tokens each", "standoff": 8, "font": {"color": "@muted", "size": 12}}
    return {
        "type": "category",
        "title": title,
        "tickfont": {"color": "@muted"},
        "linecolor": "@axis",
        "automargin": True,
        "fixedrange": True,
    }


def _bar(name: str, role: str, names: list[str], values: list[float]) -> dict[str, Any]:
    return {
        "type": "bar",
        "name": name,
        "x": names,
        "y": values,
        "marker": {"color": f"@{role}", "line": {"color": "@surface", "width": 1}},
        "hovertemplate": f"%{{x}} users, {name.lower()}: %{{y:.4~g}} GB<extra></extra>",
    }


def _summary(users: int, tokens: int, weights: float, one: float) -> str:
    who = "One user" if users == 1 else f"{users:,} users"
    text = f"{who} with {tokens:,} tokens each make a step read {quantity(weights, 'B', 4)} of weights"
    if one <= 0:
        return f"{text} and no cache at all."
    cache = users * one
    text = f"{text} and {quantity(cache, 'B', 4)} of cache, {significant(cache / weights, 2)} times as much."
    return f"{text} From {math.ceil(weights / one):,} such users on the cache is the larger part."
