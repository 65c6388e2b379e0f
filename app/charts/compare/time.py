"""How long one answer takes on each plan: to the first token, and the tokens after it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from app.calc.evaluation import Evaluation
from app.calc.notation import quantity, significant
from app.charts.compare.looks import row_title, rows_axis
from app.charts.figure import Chart, layout, legend_above, linear_axis, table_of
from app.compare.plans import Plan

PARTS = (("To the first token", "prefill", ""), ("Decode", "decode", ""), ("Waiting for a place", "outside", "/"))


@dataclass(frozen=True, slots=True)
class Stay:
    """Seconds of one answer in the order of `PARTS`; they sum to the whole."""

    total_s: float
    parts_s: tuple[float, float, float]


def stay(evaluation: Evaluation, *, expected: bool) -> Stay:
    """One answer at its ceiling, or as expected. Who asks beyond the room waits, which is in neither phase."""
    served, tokens = evaluation.measures.serving, evaluation.deployment.workload.output_tokens
    ttft, tpot, total = (
        estimate.best_known if expected else estimate.ceiling
        for estimate in (served.ttft_s, served.tpot_s, served.total_latency_s)
    )
    first = min(ttft, total)
    decode = min(tokens * tpot, total - first)
    waiting = total - first - decode
    # What is left of adding up doubles is no waiting.
    return (
        Stay(total, (first, total - first, 0.0)) if waiting <= 1e-9 * total else Stay(total, (first, decode, waiting))
    )


def is_expected(evaluations: Sequence[Evaluation]) -> bool:
    """True where a time to the first token and a whole answer are expected of every plan."""
    served = [evaluation.measures.serving for evaluation in evaluations]
    return all(one.ttft_s.mid is not None and one.total_latency_s.mid is not None for one in served)


def time(plans: Sequence[Plan], base: int, *, binary: bool) -> Chart:
    """Stacked bars, a row a plan: expected where that is told of all of them, else ceilings."""
    expected = is_expected([plan.answer.evaluation for plan in plans])
    found = [stay(plan.answer.evaluation, expected=expected) for plan in plans]
    words, rows = "expected" if expected else "ceiling", list(range(len(plans)))
    longest = max(one.total_s for one in found)
    figure = {
        "data": [
            _bar(place, [one.parts_s[place] for one in found], rows)
            for place in range(len(PARTS))
            if any(one.parts_s[place] > 0 for one in found)
        ],
        "layout": layout(
            96 + 84 * len(plans),
            barmode="stack",
            xaxis=linear_axis(f"Seconds of one answer, {words}", longest, range=[0, 1.03 * longest]),
            yaxis=rows_axis(plans),
            annotations=[
                row_title(plan, row, quantity(one.total_s, "s", 3))
                for row, (plan, one) in enumerate(zip(plans, found, strict=True))
            ],
            margin={"l": 28, "r": 20, "t": 64, "b": 44},
            legend=legend_above(),
        ),
    }
    columns = ("plan", *(f"{name.lower()}, {words} (s)" for name, _, _ in PARTS), f"whole answer, {words} (s)")
    table = table_of(columns, [(p.label, *one.parts_s, one.total_s) for p, one in zip(plans, found, strict=True)])
    summary = _summary(plans, found, base, words)
    return Chart("compare-time", "Time of one answer", "Who waits, and for what?", summary, figure, table)


def _bar(place: int, times: Sequence[float], rows: Sequence[int]) -> dict[str, Any]:
    name, role, pattern = PARTS[place]
    return {
        "type": "bar",
        "orientation": "h",
        "name": name,
        "x": list(times),
        "y": list(rows),
        "width": 0.44,
        "customdata": [quantity(seconds, "s", 3) for seconds in times],
        "marker": {
            "color": f"@{role}",
            "line": {"color": "@surface", "width": 1},
            "pattern": {"shape": pattern, "fgcolor": "@hatch", "size": 6, "fillmode": "overlay"},
        },
        "hovertemplate": f"{name}: %{{customdata}}<extra></extra>",
    }


def _summary(plans: Sequence[Plan], found: Sequence[Stay], base: int, words: str) -> str:
    told = []
    for plan, one in zip(plans, found, strict=True):
        share = significant(100 * one.parts_s[0] / one.total_s, 2)
        told.append(f"{plan.letter} takes {quantity(one.total_s, 's', 3)}, {share} % of it to the first token")
    kind = "As expected of servers" if words == "expected" else "At the ceiling, which nothing beats"
    return f"{kind}: {'; '.join(told)}."
