"""The cache of one sequence by context, beside what plain multi-head attention would keep."""

import math
from typing import Any

import numpy as np

from app.calc.architecture import Architecture
from app.calc.dtypes import Dtype
from app.calc.kv_cache import kv_bytes_per_sequence
from app.calc.multi_head import multi_head_bytes_per_sequence
from app.calc.notation import quantity, significant
from app.charts.figure import Chart, layout, log_axis, table_of
from app.charts.series import Values

KV_CACHE = Dtype.BF16
FIRST_TOKENS, LEAST_LAST_TOKENS = 1_024, 4_096
POINTS = 25
_GB = 1e9


def multi_head_chart(architecture: Architecture) -> Chart:
    """Log-log in bf16, from 1,024 tokens to the model's own limit."""
    last = architecture.max_position or LEAST_LAST_TOKENS
    first = min(FIRST_TOKENS, last // 2 or 1)
    context = np.unique(np.rint(np.geomspace(first, last, POINTS))).astype(float)
    own = np.asarray(kv_bytes_per_sequence(architecture, context, KV_CACHE) + 0 * context, dtype=float)
    plain = multi_head_bytes_per_sequence(architecture, context, KV_CACHE)
    lines = [_line(context, own, "This model", "decode", "solid")]
    seen = [own]
    if plain is not None:
        seen.append(np.asarray(plain, dtype=float))
        lines.append(_line(context, seen[1], "With multi-head attention", "rule", "dash"))
    low, high = min(float(v[0]) for v in seen) / _GB, max(float(v[-1]) for v in seen) / _GB
    figure = {
        "data": lines,
        "layout": layout(
            360,
            xaxis=log_axis("Context, tokens", first, last),
            yaxis=log_axis("Cache of one sequence, GB", low / 1.5, high * 1.5),
        ),
    }
    columns = ["context (tokens)", "this model (B)"] + (["with multi-head attention (B)"] if plain is not None else [])
    rows = [(int(c), *(float(values[at]) for values in seen)) for at, c in enumerate(context)]
    return Chart(
        "cache",
        "Cache against context",
        "What does its attention save?",
        _summary(last, [float(values[-1]) for values in seen]),
        figure,
        table_of(columns, rows),
    )


def _line(context: Values, values: Values, name: str, role: str, dash: str) -> dict[str, Any]:
    return {
        "type": "scatter",
        "mode": "lines",
        "name": name,
        "x": context.tolist(),
        "y": (values / _GB).tolist(),
        "line": {"color": f"@{role}", "width": 2.5, "dash": dash},
        "hovertemplate": f"{name}, %{{x:,}} tokens: %{{y:.4~g}} GB<extra></extra>",
    }


def _summary(tokens: int, held: list[float]) -> str:
    text = f"At {tokens:,} tokens, its limit, a sequence holds {quantity(held[0], 'B', 4)}"
    if len(held) == 1:
        return f"{text}."
    if math.isclose(held[0], held[1]):
        return f"{text}: it has plain multi-head attention, and saves nothing."
    times = significant(held[1] / held[0], 3)
    return f"{text}; with multi-head attention {quantity(held[1], 'B', 4)}, {times} times that."
