"""What fills the card."""

from typing import Any

from app.calc.evaluation import Evaluation
from app.calc.notation import quantity
from app.charts.figure import Chart, layout, linear_axis, note, table_of, vertical


def memory_chart(evaluation: Evaluation, *, binary: bool = False) -> Chart:
    """One stacked bar: weights, cache in use, cache still free, and what lies outside the engine's share.

    What exceeds the card is hatched and stands beyond the card's line.
    """
    held = evaluation.measures.memory
    scale, unit = (2.0**30, "GiB") if binary else (1e9, "GB")
    capacity, weights = held.per_gpu.capacity_bytes, held.per_gpu.weights_bytes
    cache = held.running_sequences * held.gpu_bytes_per_sequence
    free_pool = max(0.0, held.per_gpu.kv_pool_bytes - cache)
    outside = max(0.0, capacity - weights - cache - free_pool)
    parts = [
        ("Weights", weights, "weights", ""),
        ("Cache in use", cache, "cache", ""),
        ("Cache free", free_pool, "free", ""),
        ("Not the engine's", outside, "outside", "/"),
    ]
    over = max(0.0, weights + cache - capacity)
    traces, start = [], 0.0
    for name, size, role, pattern in parts:
        inside = max(0.0, min(start + size, capacity) - start)
        beyond = size - inside
        if inside > 0:
            traces.append(_bar(name, inside / scale, role, pattern, size, binary))
        if beyond > 0:
            traces.append(_bar(f"{name}, over the card", beyond / scale, role, "x", beyond, binary))
        start += size
    figure = {
        "data": traces,
        "layout": layout(
            280,
            barmode="stack",
            bargap=0.45,
            xaxis=linear_axis(unit, max(capacity, start) / scale, range=[0, max(capacity, start) * 1.06 / scale]),
            yaxis={"visible": False, "fixedrange": True},
            shapes=[
                vertical(capacity / scale, "limit", "solid", layer="above"),
                vertical(held.budget_bytes / scale, "ridge", "dash", layer="above"),
            ],
            annotations=[
                _line_label("card", capacity, max(capacity, start), 0, scale),
                _line_label("engine's share", held.budget_bytes, max(capacity, start), 1, scale),
            ],
            legend={"orientation": "h", "x": 0, "y": 1.02, "yanchor": "bottom", "traceorder": "normal"},
        ),
    }
    rows = [(name, size, size / capacity) for name, size, _, _ in parts]
    rows += [
        ("Over the card", over, over / capacity),
        ("Card", capacity, 1.0),
        ("Engine's share", held.budget_bytes, held.budget_bytes / capacity),
    ]
    return Chart(
        "memory",
        "Memory of the card",
        "What fills it, and how much is left?",
        _summary(evaluation, cache, free_pool, over, binary=binary),
        figure,
        table_of(("part", "bytes (B)", "share of the card"), rows),
    )


def _line_label(text: str, at: float, end: float, height: int, scale: float) -> dict[str, Any]:
    """The name of a line, on the side where there is room for it."""
    side, shift = ("right", -3) if at > 0.4 * end else ("left", 3)
    vertical_anchor = "top" if height else "bottom"
    return note(text, at / scale, height, yref="paper", yanchor=vertical_anchor, xanchor=side, xshift=shift)


def _bar(name: str, size: float, role: str, pattern: str, size_bytes: float, binary: bool) -> dict[str, Any]:
    return {
        "type": "bar",
        "orientation": "h",
        "name": name,
        "x": [size],
        "y": [""],
        "marker": {
            "color": f"@{role}",
            "line": {"color": "@surface", "width": 1},
            "pattern": {"shape": pattern, "fgcolor": "@hatch", "size": 7, "fillmode": "overlay"},
        },
        "hovertemplate": f"{name}: {quantity(size_bytes, 'B', 4, binary=binary)}<extra></extra>",
    }


def _summary(evaluation: Evaluation, cache: float, free: float, over: float, *, binary: bool) -> str:
    held, name = evaluation.measures.memory, evaluation.deployment.accelerator.name

    def written(value: float) -> str:
        return quantity(value, "B", 3, binary=binary)

    text = f"{name}: weights {written(held.per_gpu.weights_bytes)}, cache {written(cache)}"
    if over > 0:
        return f"{text}; {written(over)} more than the card has."
    return f"{text}, {written(free)} of cache still free, of {written(held.per_gpu.capacity_bytes)} in all."
