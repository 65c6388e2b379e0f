"""What a growing batch gives to all and takes from each.

How the cache grows with the context on one GPU, by the engine's own rules, and where its pool ends it.
"""

import math
from types import MappingProxyType
from typing import Any

import numpy as np

from app.calc.evaluate import Evaluation
from app.calc.quantity import quantity, significant
from app.web.figure import (
    BatchSeries,
    Chart,
    Values,
    batch_series,
    layout,
    linear_axis,
    log_axis,
    note,
    table_of,
    vertical,
    zone,
)

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


LEAST_TOP = 131_072


def context_chart(evaluation: Evaluation, *, binary: bool = False) -> Chart:
    """Log-log: cache of one sequence and of all, by context, under the pool's line."""
    deployment, held = evaluation.deployment, evaluation.measures.memory
    scale, unit = (2.0**30, "GiB") if binary else (1e9, "GB")
    limit, total = deployment.architecture.max_position, deployment.workload.total_tokens
    top = max(LEAST_TOP, limit or 0, 2 * total)
    start = min(256, total)
    context = np.unique(np.rint(np.geomspace(start, top, 25))).astype(float)
    one = np.array([held.plan.sequence_bytes(int(tokens)) for tokens in context])
    running, pool = held.rank_sequences, held.per_gpu.kv_pool_bytes
    traces = [_context_line(context, one / scale, "One sequence", "one", "solid", unit)]
    if running > 1:
        traces.append(_context_line(context, running * one / scale, f"All {running:,}", "decode", "solid", unit))
    traces.append(_context_here(total, running * held.gpu_bytes_per_sequence / scale, unit))
    bottom = max(1.0, float(one[0])) / scale  # a byte, where nothing is kept
    highest = max(bottom, running * float(one[-1]) / scale)
    shapes = [vertical(limit, "muted", "dot")] if limit else []
    labels = []
    if pool > 0:
        highest = max(highest, pool / scale)
        shapes.append(_pool_line(pool / scale))
        labels.append(
            note(
                f"cache pool {quantity(pool, 'B', 3, binary=binary)}",
                0,
                math.log10(pool / scale),
                xref="paper",
                xanchor="left",
                yanchor="bottom",
            )
        )
    if limit:
        labels.append(
            note(
                f"model's limit {limit:,}",
                math.log10(limit),
                0,
                yref="paper",
                xanchor="right",
                yanchor="bottom",
                xshift=-4,
            )
        )
    figure = {
        "data": traces,
        "layout": layout(
            340,
            xaxis=log_axis("Context, tokens", start, top * 1.15),
            yaxis=log_axis(f"KV cache, {unit}", bottom / 1.5, highest * 2),
            shapes=shapes,
            annotations=labels,
        ),
    }
    rows = [
        (int(c), float(b), float(running * b), "yes" if _fits(evaluation, int(c)) else "no")
        for c, b in zip(context, one, strict=True)
    ]
    return Chart(
        "context",
        "KV cache against context",
        "How long may the conversations get?",
        _context_summary(evaluation, binary=binary),
        figure,
        table_of(("context (tokens)", "one sequence (B)", f"all {running:,} (B)", "fits the pool"), rows),
    )


def _fits(evaluation: Evaluation, tokens: int) -> bool:
    """Whether every stage has room for its sequences at that length."""
    deployment, held = evaluation.deployment, evaluation.measures.memory
    return all(rank.fitting(deployment, rank.pool.mid, tokens) >= held.rank_sequences for rank in held.ranks)


def _context_line(context: Values, values: Values, name: str, role: str, dash: str, unit: str) -> dict[str, Any]:
    return {
        "type": "scatter",
        "mode": "lines",
        "name": name,
        "x": context.tolist(),
        "y": values.tolist(),
        "line": {"color": f"@{role}", "width": 2.5, "dash": dash},
        "hovertemplate": f"{name}, %{{x:,}} tokens: %{{y:.4~g}} {unit}<extra></extra>",
    }


def _context_here(tokens: int, size: float, unit: str) -> dict[str, Any]:
    return {
        "type": "scatter",
        "mode": "markers",
        "name": "This scenario",
        "x": [tokens],
        "y": [size],
        "marker": {"color": "@decode", "size": 12, "symbol": "circle", "line": {"color": "@surface", "width": 2}},
        "hovertemplate": f"this scenario, %{{x:,}} tokens: %{{y:.4~g}} {unit}<extra></extra>",
    }


def _pool_line(size: float) -> dict[str, Any]:
    return {
        "type": "line",
        "xref": "paper",
        "x0": 0,
        "x1": 1,
        "y0": size,
        "y1": size,
        "line": {"color": "@limit", "width": 2},
    }


def _context_summary(evaluation: Evaluation, *, binary: bool) -> str:
    held = evaluation.measures.memory
    one = quantity(held.gpu_bytes_per_sequence, "B", 3, binary=binary)
    tokens, running = evaluation.deployment.workload.total_tokens, held.rank_sequences
    who = "the sequence" if running == 1 else f"each of {running:,} sequences"
    where = "" if evaluation.deployment.gpus == 1 else " on each GPU"
    text = f"A sequence of {tokens:,} tokens holds {one} of cache{where}."
    if held.max_context_tokens < 1:
        if held.per_gpu.kv_pool_bytes <= 0:
            return f"{text} The card has no room for a cache."
        return f"{text} The pool has no room for {running:,} at any length."
    return f"{text} In the pool {who} could grow to {held.max_context_tokens:,} tokens."
