"""How the cache grows with the context on one GPU, by the engine's own rules, and where its pool ends it."""

import math
from typing import Any

import numpy as np

from app.calc.evaluation import Evaluation
from app.calc.notation import quantity
from app.charts.figure import Chart, layout, log_axis, note, table_of, vertical
from app.charts.series import Values

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
    traces = [_line(context, one / scale, "One sequence", "one", "solid", unit)]
    if running > 1:
        traces.append(_line(context, running * one / scale, f"All {running:,}", "decode", "solid", unit))
    traces.append(_here(total, running * held.gpu_bytes_per_sequence / scale, unit))
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
        _summary(evaluation, binary=binary),
        figure,
        table_of(("context (tokens)", "one sequence (B)", f"all {running:,} (B)", "fits the pool"), rows),
    )


def _fits(evaluation: Evaluation, tokens: int) -> bool:
    """Whether every stage has room for its sequences at that length."""
    deployment, held = evaluation.deployment, evaluation.measures.memory
    return all(rank.fitting(deployment, rank.pool.mid, tokens) >= held.rank_sequences for rank in held.ranks)


def _line(context: Values, values: Values, name: str, role: str, dash: str, unit: str) -> dict[str, Any]:
    return {
        "type": "scatter",
        "mode": "lines",
        "name": name,
        "x": context.tolist(),
        "y": values.tolist(),
        "line": {"color": f"@{role}", "width": 2.5, "dash": dash},
        "hovertemplate": f"{name}, %{{x:,}} tokens: %{{y:.4~g}} {unit}<extra></extra>",
    }


def _here(tokens: int, size: float, unit: str) -> dict[str, Any]:
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


def _summary(evaluation: Evaluation, *, binary: bool) -> str:
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
