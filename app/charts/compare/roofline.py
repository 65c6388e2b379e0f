"""Prefill and decode of each plan under the roofs of its own card."""

import math
from collections.abc import Sequence
from typing import Any

from app.calc.evaluation import Evaluation
from app.calc.notation import quantity, significant
from app.calc.phase import PhaseCost
from app.calc.roofline import attainable_flops_per_s, ridge_flops_per_byte
from app.calc.verdict import ROOF_WORDS
from app.charts.compare.looks import label_of, letters, look_of, marker
from app.charts.figure import Chart, Table, layout, log_axis, note, table_of
from app.compare.plans import Plan

Roof = tuple[float, float]


def roofline(plans: Sequence[Plan], base: int, *, binary: bool) -> Chart:
    """Log-log: plans that share a roof share a line; full markers are prefill, open ones decode. Of one GPU."""
    found = [phase for plan in plans for _, phase in _phases(plan.answer.evaluation)]
    roofs = _roofs(plans)
    ridges = [float(ridge_flops_per_byte(peak, bandwidth)) for peak, bandwidth in roofs]
    intensities = [phase.intensity_flops_per_byte for phase in found]
    low = 10 ** math.floor(math.log10(0.5 * min(*ridges, *intensities)))
    high = 10 ** math.ceil(math.log10(3 * max(*ridges, *intensities)))
    reached = [phase.flops / phase.ceiling_s for phase in found]
    bottom = 10 ** math.floor(math.log10(0.7 * min(reached)))
    top = 10 ** math.ceil(math.log10(1.5 * max(peak for peak, _ in roofs)))
    figure = {
        "data": [
            *(_roof(roof, sharing, low, high) for roof, sharing in roofs.items()),
            *(_points(plan) for plan in plans),
        ],
        "layout": layout(
            440,
            xaxis=log_axis("Arithmetic intensity, FLOP/B", low, high),
            yaxis=log_axis("Arithmetic of a GPU, FLOP/s", bottom, top),
            annotations=_roof_notes(roofs, low, high, bottom),
        ),
    }
    return Chart(
        "compare-roofline",
        "Roofline of the plans",
        "What stops each of them?",
        _summary(plans, roofs),
        figure,
        _table(plans),
    )


def _table(plans: Sequence[Plan]) -> Table:
    columns = ("plan", "phase", "intensity (FLOP/B)", "arithmetic (FLOP/s)", "roof (FLOP/s)", "bound by")
    rows = [
        (
            plan.label,
            name,
            phase.intensity_flops_per_byte,
            phase.flops / phase.ceiling_s,
            float(attainable_flops_per_s(phase.intensity_flops_per_byte, *roof)),
            ROOF_WORDS[phase.bound],
        )
        for plan in plans
        for (name, phase), roof in zip(_phases(plan.answer.evaluation), _roofs_of(plan.answer.evaluation), strict=True)
    ]
    return table_of(columns, rows)


def _phases(evaluation: Evaluation) -> tuple[tuple[str, PhaseCost], ...]:
    return ("prefill", evaluation.measures.prefill), ("decode", evaluation.measures.decode)


def _roofs_of(evaluation: Evaluation) -> tuple[Roof, Roof]:
    """The roof over prefill and the one over decode: two where prompts are run on cards of another kind."""
    deployment = evaluation.deployment
    cards, compute = (deployment.prompt_side.accelerator, deployment.accelerator), deployment.precision.compute
    prefill, decode = ((card.peak(compute), card.bandwidth_bytes_per_s) for card in cards)
    return prefill, decode


def _roofs(plans: Sequence[Plan]) -> dict[Roof, list[Plan]]:
    """The roofs, and the plans under each."""
    found: dict[Roof, list[Plan]] = {}
    for plan in plans:
        for roof in dict.fromkeys(reversed(_roofs_of(plan.answer.evaluation))):
            found.setdefault(roof, []).append(plan)
    return found


def _roof(roof: Roof, sharing: Sequence[Plan], low: float, high: float) -> dict[str, Any]:
    peak, bandwidth = roof
    xs = sorted({low, min(max(peak / bandwidth, low), high), high})
    alone = len(sharing) == 1
    look, name = look_of(sharing[0]), f"Roof of {letters(sharing)}"
    return {
        "type": "scatter",
        "mode": "lines",
        "name": name,
        "showlegend": False,
        "x": xs,
        "y": [float(attainable_flops_per_s(x, peak, bandwidth)) for x in xs],
        "line": {
            "color": f"@{look.role}" if alone else "@roof",
            "width": 2.25,
            "dash": look.dash if alone else "solid",
        },
        "hovertemplate": f"{name}: {quantity(peak, 'FLOP/s', 4)}, {quantity(bandwidth, 'B/s', 4)}<extra></extra>",
    }


def _roof_notes(roofs: dict[Roof, list[Plan]], low: float, high: float, bottom: float) -> list[dict[str, Any]]:
    """The letters of the plans at their roof: at its slope where no other is near, else at its flat end."""
    notes = []
    for (peak, bandwidth), sharing in roofs.items():
        others = [other for _, other in roofs if other != bandwidth]
        is_alone = len(others) == len(roofs) - 1 and all(abs(math.log10(bandwidth / o)) > 0.06 for o in others)
        start = max(low, 1.3 * bottom / bandwidth)
        x, anchor, shift = (start, "left", 8) if is_alone and len(roofs) > 1 else (high, "right", -4)
        y = float(attainable_flops_per_s(x, peak, bandwidth))
        look = {"xanchor": anchor, "xshift": shift, "yshift": 10, "font": {"color": "@ink", "size": 12}}
        notes.append(note(letters(sharing), math.log10(x), math.log10(y), **look))
    return notes


def _points(plan: Plan) -> dict[str, Any]:
    """Both phases in one trace, so that a click on the legend takes the plan away whole."""
    phases = _phases(plan.answer.evaluation)
    full, hollow = marker(plan, 14), marker(plan, 13, is_open=True)
    return {
        "type": "scatter",
        "mode": "markers",
        "name": label_of(plan),
        "x": [phase.intensity_flops_per_byte for _, phase in phases],
        "y": [phase.flops / phase.ceiling_s for _, phase in phases],
        "customdata": [name for name, _ in phases],
        "marker": {
            **full,
            "color": [full["color"], hollow["color"]],
            "line": {"color": [full["line"]["color"], hollow["line"]["color"]], "width": [1.5, 2.5]},
        },
        "hovertemplate": f"{plan.letter}, %{{customdata}}: %{{x:.4s}} FLOP/B, at best %{{y:.4s}}FLOP/s<extra></extra>",
    }


def _summary(plans: Sequence[Plan], roofs: dict[Roof, list[Plan]]) -> str:
    told = []
    for plan in plans:
        (_, prefill), (_, decode) = _phases(plan.answer.evaluation)
        told.append(
            f"{plan.letter} decodes at {significant(decode.intensity_flops_per_byte, 3)} FLOP/B, bound by "
            f"{ROOF_WORDS[decode.bound]}, and prefills bound by {ROOF_WORDS[prefill.bound]}"
        )
    shared = "All stand under one roof." if len(roofs) == 1 and len(plans) > 1 else ""
    return f"Full markers are prefill, open ones decode. {'; '.join(told)}. {shared}".strip()
