"""What a GPU yields against the pace that each user gets, as more users are served: the frontier of each plan."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from app.calc.evaluation import Evaluation
from app.calc.measure import Measures, measure
from app.calc.notation import significant
from app.charts.compare.looks import label_of, letters, look_of, marker
from app.charts.figure import Cell, Chart, layout, log_axis, note, table_of, vertical
from app.compare.plans import Plan

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
        _summary(curves, base, expected=expected),
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


def _summary(curves: Sequence[Curve], base: int, *, expected: bool) -> str:
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
