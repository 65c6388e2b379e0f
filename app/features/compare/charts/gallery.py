"""Prefill and decode of each plan under the roofs of its own card.

What a GPU yields against the pace that each user gets, as more users are served: the frontier of each plan.

The charts of a comparison, in their order, by id.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Protocol

import numpy as np

from app.calc.accelerator import attainable_flops_per_s, ridge_flops_per_byte
from app.calc.evaluate import Evaluation
from app.calc.measure import Measures, measure
from app.calc.quantity import quantity, significant
from app.calc.time.phase import PhaseCost
from app.calc.verdict import ROOF_WORDS
from app.features.compare.charts.bars import label_of, letters, look_of, marker, memory, time
from app.features.compare.plans import Plan
from app.web.figure import Cell, Chart, Table, layout, log_axis, note, table_of, vertical

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


POINTS = 15


@dataclass(frozen=True, slots=True)
class Point:
    """So many users at a time, the pace of each, and what one GPU yields: tokens a second."""

    users: int
    pace: float
    yield_: float


@dataclass(frozen=True, slots=True)
class Curve:
    """The points of one plan, slowest pace first; `best` are those that no other beats in both."""

    plan: Plan
    points: tuple[Point, ...]
    best: tuple[Point, ...]
    here: Point | None

    def yield_at(self, pace: float) -> float | None:
        """The most a GPU yields while each user gets at least this pace; None where none gets it."""
        return max((point.yield_ for point in self.best if point.pace >= pace * (1 - 1e-9)), default=None)


def is_expected(evaluations: Sequence[Evaluation]) -> bool:
    """True where something is expected of every plan; else ceilings stand beside ceilings."""
    return all(evaluation.measures.expected is not None for evaluation in evaluations)


def curve_of(plan: Plan, *, expected: bool) -> Curve:
    """The plan served to one user, to as many as find room, and to some numbers between."""
    evaluation = plan.answer.evaluation
    deployment, held = evaluation.deployment, evaluation.measures.memory
    point = partial(_point, evaluation, expected=expected)
    if held.max_concurrency < 1:
        return Curve(plan, (), (), None)
    here = point(held.served_sequences, evaluation.measures)
    users = {int(n) for n in np.rint(np.geomspace(1, held.max_concurrency, POINTS))} - {here.users}
    asked = [replace(deployment, workload=replace(deployment.workload, concurrency=n)) for n in sorted(users)]
    found = [here, *(point(one.workload.concurrency or 1, measure(one)) for one in asked)]
    return Curve(plan, tuple(sorted(found, key=lambda p: p.users)), frontier(found), here)


def frontier(points: Sequence[Point]) -> tuple[Point, ...]:
    """The points that no other one beats in both, from the slowest pace to the fastest."""
    best = list[Point]()
    for point in sorted(points, key=lambda p: (-p.pace, -p.yield_)):
        if not best or point.yield_ > best[-1].yield_:
            best.append(point)
    return tuple(reversed(best))


def _point(evaluation: Evaluation, users: int, measures: Measures, *, expected: bool) -> Point:
    served = measures.serving
    pace, rate = served.output_tokens_per_s_per_user, served.output_tokens_per_s
    both = [estimate.best_known if expected else estimate.ceiling for estimate in (pace, rate)]
    return Point(users, both[0], both[1] / evaluation.deployment.gpus)


def tradeoff(plans: Sequence[Plan], base: int, *, binary: bool) -> Chart:
    """Log-log: pace of a user to the right, tokens of a GPU up; a stepped frontier for each plan."""
    expected = is_expected([plan.answer.evaluation for plan in plans])
    curves = [curve_of(plan, expected=expected) for plan in plans]
    every = [point for curve in curves for point in curve.points] or [Point(1, 1.0, 1.0)]
    paces, yields = [p.pace for p in every], [p.yield_ for p in every]
    target = _common_target(plans)
    low, high = min(paces) / 1.3, max([*paces, *([target] if target else [])]) * 1.3
    words = "expected" if expected else "ceiling"
    figure = {
        "data": [trace for curve in curves for trace in _traces(curve)] + _beaten(curves),
        "layout": layout(
            440,
            xaxis=log_axis(f"Each user, tokens/s, {words}", low, high),
            yaxis=log_axis(f"Each GPU, tokens/s, {words}", min(yields) / 1.3, max(yields) * 1.4),
            shapes=[vertical(target, "limit")] if target else [],
            annotations=[
                note("↗ better", 1, 1, xref="paper", yref="paper", xanchor="right", yanchor="top"),
                *([_target_note(target)] if target else []),
            ],
        ),
    }
    columns = ("plan", "users at a time", f"each user, {words} (tokens/s)", f"each GPU, {words} (tokens/s)", "frontier")
    rows: list[tuple[Cell, ...]] = [
        (curve.plan.label, p.users, p.pace, p.yield_, "yes" if p in curve.best else "no")
        for curve in curves
        for p in curve.points
    ]
    rows += [(curve.plan.label, 0, 0.0, 0.0, "no room") for curve in curves if not curve.points]
    return Chart(
        "compare-tradeoff",
        "Throughput of a GPU against the pace of a user",
        "What does each plan yield at a pace that users accept?",
        _tradeoff_summary(curves, base, expected=expected),
        figure,
        table_of(columns, rows),
    )


def _traces(curve: Curve) -> list[dict[str, Any]]:
    if curve.here is None:
        return []
    look, label = look_of(curve.plan), label_of(curve.plan)
    hover = f"{curve.plan.letter}, %{{customdata:,}} users: %{{x:.4s}} tokens/s each, %{{y:.4s}} a GPU<extra></extra>"
    return [
        {
            "type": "scatter",
            "mode": "lines+markers",
            "name": label,
            "legendgroup": curve.plan.letter,
            "x": [point.pace for point in curve.best],
            "y": [point.yield_ for point in curve.best],
            "customdata": [point.users for point in curve.best],
            "line": {"color": f"@{look.role}", "width": 2.25, "dash": look.dash, "shape": "vh"},
            "marker": marker(curve.plan, 7),
            "hovertemplate": hover,
        },
        {
            "type": "scatter",
            "mode": "markers",
            "name": f"{curve.plan.letter}, as asked",
            "legendgroup": curve.plan.letter,
            "showlegend": False,
            "x": [curve.here.pace],
            "y": [curve.here.yield_],
            "customdata": [curve.here.users],
            "marker": marker(curve.plan, 16),
            "hovertemplate": f"as asked: {hover}",
        },
    ]


def _beaten(curves: Sequence[Curve]) -> list[dict[str, Any]]:
    """Points that another of the same plan beats in both: a click on the legend shows them."""
    points = [p for curve in curves for p in curve.points if p not in curve.best]
    if not points:
        return []
    return [
        {
            "type": "scatter",
            "mode": "markers",
            "name": "Beaten in both",
            "visible": "legendonly",
            "x": [point.pace for point in points],
            "y": [point.yield_ for point in points],
            "customdata": [point.users for point in points],
            "marker": {"color": "@muted", "size": 7, "symbol": "x"},
            "hovertemplate": "%{customdata:,} users: %{x:.4s} tokens/s each, %{y:.4s} a GPU<extra></extra>",
        }
    ]


def _common_target(plans: Sequence[Plan]) -> float | None:
    """The pace that a target asks for, where all plans have the same one."""
    targets = {plan.answer.evaluation.deployment.workload.slo_tpot_s for plan in plans}
    target = targets.pop() if len(targets) == 1 else None
    return None if target is None else 1 / target


def _target_note(target: float) -> dict[str, Any]:
    text = f"target {significant(target, 3)} tokens/s"
    return note(text, float(np.log10(target)), 0, yref="paper", xanchor="right", yanchor="bottom", xshift=-4)


def _tradeoff_summary(curves: Sequence[Curve], base: int, *, expected: bool) -> str:
    text = "Up and right is better; along a line more and more users are served, until memory is full."
    without = [curve.plan for curve in curves if curve.here is None]
    if without:
        text += f" {letters(without)} {'has' if len(without) == 1 else 'have'} no room for a single sequence."
    here = curves[base].here
    if here is None:
        return text
    told = []
    for curve in curves:
        reached = curve.yield_at(here.pace)
        told.append(f"{curve.plan.letter} {'does not reach it' if reached is None else significant(reached, 3)}")
    words = "is expected to yield" if expected else "yields at best"
    pace = f"At {significant(here.pace, 3)} tokens/s or more for each user, the pace of {curves[base].plan.letter}"
    return f"{text} {pace}, a GPU {words} in tokens/s: {', '.join(told)}."


class Maker(Protocol):
    """Draws plans, measured against the one at `base`."""

    def __call__(self, plans: Sequence[Plan], base: int, *, binary: bool) -> Chart:
        """The chart."""
        ...


COMPARED: Mapping[str, Maker] = {
    "compare-roofline": roofline,
    "compare-tradeoff": tradeoff,
    "compare-memory": memory,
    "compare-time": time,
}


def compared_charts(plans: Sequence[Plan], base: int, *, binary: bool) -> list[Chart]:
    """Every chart of the plans; sizes in GiB where `binary`."""
    return [make(plans, base, binary=binary) for make in COMPARED.values()]
