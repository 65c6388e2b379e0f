"""Why a server is slower than its ceiling: one time per output token, piled up by cause."""

from typing import Any

from app.calc.evaluation import Evaluation
from app.calc.notation import quantity, significant
from app.charts.figure import Chart, layout, legend_above, linear_axis, table_of

HEIGHT_PX = 420
CAUSES = (
    ("ceiling_s", "Ceiling", "decode", "bytes and FLOP at the vendor’s peak"),
    ("efficiency_s", "Efficiency", "weights", "kernels reach a share of bandwidth and peak"),
    ("calls_s", "Kernel floors", "overhead", "each call takes microseconds that no peak shortens"),
    ("collectives_s", "Collectives", "link", "latency of all-reduces, volume beyond the link’s peak"),
    ("host_s", "Host", "state", "scheduling, sampling, tokens"),
    ("interference_s", "Others’ prefills", "prefill", "prompts of other requests, met between tokens"),
)


def gap_chart(evaluation: Evaluation) -> Chart:
    """Three bars of one TPOT: rule of thumb, ceiling, and what is expected by cause; with its interval."""
    measures, rule = evaluation.measures, evaluation.rule_of_thumb
    expected, tpot = measures.expected, measures.serving.tpot_s
    parts = [] if expected is None else [(getattr(expected.causes, key), *rest) for key, *rest in CAUSES]
    names = ["Expected", "Ceiling", "Rule of thumb"] if parts else ["Ceiling", "Rule of thumb"]
    data = [
        _bar("Rule of thumb", "rule", {"Rule of thumb": rule.kv_step_s}, names, show=True),
        _bar("Ceiling", "decode", {"Ceiling": tpot.ceiling} | ({"Expected": parts[0][0]} if parts else {}), names),
    ]
    data += [_bar(name, role, {"Expected": value}, names) for value, name, role, _ in parts[1:] if value > 0]
    if tpot.mid is not None and tpot.low is not None and tpot.high is not None:
        data.append(_whisker(tpot.low, tpot.mid, tpot.high))
    rows = [
        ("rule of thumb", rule.kv_step_s, "all bytes ÷ bandwidth, or FLOP ÷ peak"),
        *((name.lower(), value, why) for value, name, _, why in parts),
        *((("expected", tpot.mid, "the sum"),) if tpot.mid is not None else (("ceiling", tpot.ceiling, CAUSES[0][3]),)),
    ]
    longest = max(rule.kv_step_s, tpot.ceiling, tpot.high or tpot.best_known)
    figure = {
        "data": data,
        "layout": layout(
            HEIGHT_PX,
            barmode="stack",
            bargap=0.4,
            xaxis=linear_axis("Time per output token, ms", 1e3 * longest, rangemode="tozero"),
            yaxis={"automargin": True, "tickfont": {"color": "@ink"}, "fixedrange": True},
            legend=legend_above(),
            margin={"l": 100, "r": 20, "t": 72, "b": 48},
        ),
    }
    return Chart(
        "gap",
        "Why a server is slower than its ceiling",
        "What would have to get better?",
        _summary(evaluation, parts),
        figure,
        table_of(("part of a TPOT", "time (s)", "what it is"), rows),
    )


def _bar(name: str, role: str, values: dict[str, float], rows: list[str], *, show: bool = True) -> dict[str, Any]:
    written = [quantity(values[row], "s", 3) if row in values else None for row in rows]
    return {
        "type": "bar",
        "orientation": "h",
        "name": name,
        "showlegend": show,
        "x": [1e3 * values[row] if row in values else None for row in rows],
        "y": rows,
        "customdata": written,
        "marker": {"color": f"@{role}", "line": {"color": "@surface", "width": 1}},
        "hovertemplate": f"{name}: %{{customdata}}<extra></extra>",
    }


def _whisker(low: float, mid: float, high: float) -> dict[str, Any]:
    return {
        "type": "scatter",
        "mode": "markers",
        "name": "Eight cases of ten",
        "x": [1e3 * mid],
        "y": ["Expected"],
        "marker": {"color": "@ink", "size": 8, "symbol": "line-ns-open"},
        "error_x": {
            "type": "data",
            "symmetric": False,
            "array": [1e3 * (high - mid)],
            "arrayminus": [1e3 * (mid - low)],
            "color": "@ink",
            "thickness": 1.5,
            "width": 6,
        },
        "hovertemplate": f"expected {quantity(mid, 's', 3)}, {quantity(low, 's', 3)} to {quantity(high, 's', 3)}"
        "<extra></extra>",
    }


def _summary(evaluation: Evaluation, parts: list[tuple[Any, ...]]) -> str:
    tpot = evaluation.measures.serving.tpot_s
    if tpot.mid is None:
        return f"At best {quantity(tpot.ceiling, 's', 3)} a token; nothing is calibrated here."
    most = max(parts[1:], key=lambda part: float(part[0]))
    if not most[0] > 0:
        return f"A token is expected to take no less than its ceiling of {quantity(tpot.ceiling, 's', 3)}."
    return (
        f"A token is expected to take {quantity(tpot.mid, 's', 3)}, {significant(tpot.mid / tpot.ceiling, 3)} times "
        f"its ceiling of {quantity(tpot.ceiling, 's', 3)}. The largest part of the gap: {most[1].lower()}, "
        f"{quantity(float(most[0]), 's', 3)}."
    )
