"""Where the time of one answer goes."""

from collections.abc import Mapping
from typing import Any

from app.calc.evaluation import Evaluation
from app.calc.layers.parts import OperatorName
from app.calc.notation import quantity, significant
from app.calc.phase import PhaseCost
from app.charts.figure import Chart, axis, layout, legend_above, table_of

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
