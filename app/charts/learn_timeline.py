"""One request against the clock: the prompt is read in one go, then token follows token."""

from typing import Any

from app.calc.evaluation import Evaluation
from app.calc.notation import quantity, significant
from app.charts.figure import Chart, axis, layout, table_of

HEIGHT_PX = 300
SHOWN_STEPS = 12
"""Tokens that the second look shows one by one."""
MOST_BEFORE = 8
"""Steps' worth of prefill that it shows before them, where the prefill is longer."""


def timeline_chart(evaluation: Evaluation) -> Chart:
    """Two looks at one request by the rule of thumb: all of it, and the moment when the first tokens come."""
    rule, workload = evaluation.rule_of_thumb, evaluation.deployment.workload
    prefill, step, tokens = rule.prefill_s, rule.decode_step_s, workload.output_tokens
    total = rule.total_latency_s
    shown = min(SHOWN_STEPS, tokens)
    start = max(0.0, prefill - MOST_BEFORE * step)
    whole, close = "All of it", "First tokens"
    figure = {
        "data": [
            _bar("Prefill", "prefill", whole, 0.0, prefill, "x", show=True),
            _bar("Decode", "decode", whole, prefill, total - prefill, "x", show=True),
            _bar("Prefill", "prefill", close, start, prefill - start, "x2", show=False),
            *(_bar("Decode", "decode", close, prefill + i * step, step, "x2", show=False) for i in range(shown)),
        ],
        "layout": layout(
            HEIGHT_PX,
            barmode="overlay",
            bargap=0.35,
            xaxis=_clock("Seconds since the prompt arrived", 0.0, total, anchor="y"),
            xaxis2=_clock("The same, stretched", start, prefill + (shown + 0.5) * step, anchor="y2"),
            yaxis=_row([0.68, 1.0], "x"),
            yaxis2=_row([0.0, 0.32], "x2"),
            legend={"orientation": "h", "x": 0, "xanchor": "left", "y": 1.04, "yanchor": "bottom"},
            margin={"l": 88, "r": 20, "t": 40, "b": 48},
        ),
    }
    summary = (
        f"The prompt is read in {quantity(prefill, 's', 3)}, then a token comes every {quantity(step, 's', 3)}: "
        f"{significant(100 * (total - prefill) / total, 3)} % of the {quantity(total, 's', 3)} is writing."
    )
    return Chart(
        "timeline",
        "One request against the clock",
        "Which of the two waits is longer?",
        summary,
        figure,
        table_of(("what", "begins (s)", "ends (s)"), _rows(evaluation, shown)),
    )


def _rows(evaluation: Evaluation, shown: int) -> list[tuple[str, float, float]]:
    """The prefill, the first tokens one by one, and the last."""
    rule, tokens = evaluation.rule_of_thumb, evaluation.deployment.workload.output_tokens
    prefill, step, total = rule.prefill_s, rule.decode_step_s, rule.total_latency_s
    rows: list[tuple[str, float, float]] = [("prefill", 0.0, prefill)]
    rows += [(f"token {i + 1:,}", prefill + i * step, prefill + (i + 1) * step) for i in range(shown)]
    if tokens > shown:
        rows.append((f"token {tokens:,}, the last", total - step, total))
    return rows


def _bar(name: str, role: str, row: str, start: float, length: float, at: str, *, show: bool) -> dict[str, Any]:
    ends = quantity(start + length, "s", 3)
    return {
        "type": "bar",
        "orientation": "h",
        "name": name,
        "showlegend": show,
        "legendgroup": role,
        "base": [start],
        "x": [length],
        "y": [row],
        "xaxis": at,
        "yaxis": at.replace("x", "y"),
        "marker": {"color": f"@{role}", "line": {"color": "@surface", "width": 1.5}},
        "hovertemplate": f"{name}: {quantity(length, 's', 3)}, until {ends}<extra></extra>",
    }


def _clock(title: str, low: float, high: float, **more: Any) -> dict[str, Any]:
    return axis(title, range=[low, high], exponentformat="SI" if high < 1e15 else "e", ticksuffix="s", nticks=6, **more)


def _row(domain: list[float], anchor: str) -> dict[str, Any]:
    return {"automargin": True, "tickfont": {"color": "@ink"}, "fixedrange": True, "domain": domain, "anchor": anchor}
