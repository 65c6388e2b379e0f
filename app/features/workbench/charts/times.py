"""Where the time of one answer goes.

Why a server is slower than its ceiling: one time per output token, piled up by cause.
"""

from collections.abc import Mapping
from typing import Any

from app.calc.evaluate import Evaluation
from app.calc.model.layers.parts import OperatorName
from app.calc.quantity import quantity, significant
from app.calc.time.phase import PhaseCost
from app.web.figure import Chart, axis, layout, legend_above, linear_axis, table_of

# What moves or computes together, told apart by colour and order.
PARTS: Mapping[str, tuple[str, tuple[OperatorName, ...]]] = {
    "Feed-forward": ("ffn", (OperatorName.GATE_UP, OperatorName.DOWN, OperatorName.SHARED_EXPERTS)),
    "Experts": ("experts", (OperatorName.ROUTER, OperatorName.EXPERTS)),
    "Attention matrices": (
        "weights",
        (OperatorName.QKV, OperatorName.LATENT_UP, OperatorName.COMPRESSOR, OperatorName.OUTPUT),
    ),
    "Cache: scores, values": ("cache", (OperatorName.ATTENTION, OperatorName.INDEXER)),
    "State": ("state", (OperatorName.CONVOLUTION, OperatorName.STATE)),
    "Head": ("head", (OperatorName.HEAD,)),
    "Between GPUs": ("link", (OperatorName.ALL_REDUCE,)),
    "Guessing": ("overhead", (OperatorName.DRAFT,)),
    "Other": ("outside", (OperatorName.EMBEDDING, OperatorName.NORMS, OperatorName.SIDE_PATHS)),
}


def time_chart(evaluation: Evaluation) -> Chart:
    """Three bars of 100 %: the answer in prefill and decode, then each of the two in its operators."""
    served, deployment = evaluation.measures.serving, evaluation.deployment
    ttft, total = served.ttft_s.ceiling, served.total_latency_s.ceiling
    step, steps = evaluation.measures.decode.ceiling_s, deployment.workload.output_tokens / deployment.tokens_per_step
    prefill = evaluation.measures.prefill.ceiling_s / deployment.prompt_side.split.pipeline
    decode_s, counted = step * steps, f"{steps:,.0f}"
    answer_row = f"One answer<br>{quantity(total, 's', 3)}"
    prefill_row = f"Prefill<br>{quantity(prefill, 's', 3)}"
    decode_row = f"Decode<br>{counted} × {quantity(step, 's', 3)}"
    rows = [decode_row, prefill_row, answer_row]
    traces = [
        _bar("Prefill", "prefill", [None, None, ttft / total], rows, [None, None, quantity(ttft, "s", 3)]),
        _bar("Decode", "decode", [None, None, decode_s / total], rows, [None, None, quantity(decode_s, "s", 3)]),
    ]
    table: list[tuple[str, str, float, float]] = [
        ("answer", "prefill", ttft, ttft / total),
        ("answer", "decode", decode_s, decode_s / total),
    ]
    for name, (role, operators) in PARTS.items():
        in_decode = _share(evaluation.measures.decode, operators)
        in_prefill = _share(evaluation.measures.prefill, operators)
        if not in_decode and not in_prefill:
            continue
        written = [quantity(in_decode * step, "s", 3) + " a step", quantity(in_prefill * prefill, "s", 3), None]
        traces.append(_bar(name, role, [in_decode, in_prefill, None], rows, written))
        table += [
            ("one decode step", name.lower(), in_decode * step, in_decode),
            ("prefill", name.lower(), in_prefill * prefill, in_prefill),
        ]
    figure = {
        "data": traces,
        "layout": layout(
            280,
            barmode="stack",
            bargap=0.4,
            xaxis=axis("Share of the time", range=[0, 1], tickformat=".0%"),
            yaxis={"automargin": True, "tickfont": {"color": "@ink"}, "fixedrange": True},
            legend=legend_above(),
            margin={"l": 100, "r": 20, "t": 64, "b": 44},
        ),
    }
    summary = (
        f"Of an answer's {quantity(total, 's', 3)} at best, {significant(100 * decode_s / total, 3)} % is decode: "
        f"{counted} steps of {quantity(step, 's', 3)}."
    )
    return Chart(
        "time",
        "Where one answer's time goes",
        "Which part is worth making faster?",
        summary,
        figure,
        table_of(("of", "part", "time (s)", "share"), table),
    )


def _share(cost: PhaseCost, operators: tuple[OperatorName, ...]) -> float:
    return sum(op.time_s for op in cost.operators if op.name in operators) / cost.ceiling_s


def _bar(
    name: str, role: str, shares: list[float | None], rows: list[str], written: list[str | None]
) -> dict[str, Any]:
    return {
        "type": "bar",
        "orientation": "h",
        "name": name,
        "x": shares,
        "y": rows,
        "customdata": written,
        "marker": {"color": f"@{role}", "line": {"color": "@surface", "width": 1}},
        "hovertemplate": f"{name}: %{{customdata}} (%{{x:.1%}})<extra></extra>",
    }


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
        _gap_bar("Rule of thumb", "rule", {"Rule of thumb": rule.kv_step_s}, names, show=True),
        _gap_bar("Ceiling", "decode", {"Ceiling": tpot.ceiling} | ({"Expected": parts[0][0]} if parts else {}), names),
    ]
    data += [_gap_bar(name, role, {"Expected": value}, names) for value, name, role, _ in parts[1:] if value > 0]
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


def _gap_bar(name: str, role: str, values: dict[str, float], rows: list[str], *, show: bool = True) -> dict[str, Any]:
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
