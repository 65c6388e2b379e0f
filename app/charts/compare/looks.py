"""How plans are told apart in a chart: by letter, marker and dash as well as by colour."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from app.calc.evaluation import Evaluation
from app.charts.figure import note
from app.charts.plain import plain
from app.compare.plans import Plan

MOST_NAME = 40


@dataclass(frozen=True, slots=True)
class Look:
    """The colour role, the marker and the dash of one plan."""

    role: str
    symbol: str
    dash: str


LOOKS = (
    Look("plana", "circle", "solid"),
    Look("planb", "square", "dash"),
    Look("planc", "diamond", "dot"),
    Look("pland", "triangle-up", "dashdot"),
)


def look_of(plan: Plan) -> Look:
    """The look of a plan, by its place."""
    return LOOKS[plan.position]


def label_of(plan: Plan) -> str:
    """Letter and name as a literal, short enough for a legend."""
    cut = plan.name if len(plan.name) <= MOST_NAME else f"{plan.name[: MOST_NAME - 1]}…"
    return f"{plan.letter} · {plain(cut)}"


def letters(plans: Sequence[Plan]) -> str:
    """A, B and C."""
    named = [plan.letter for plan in plans]
    return named[0] if len(named) == 1 else f"{', '.join(named[:-1])} and {named[-1]}"


def marker(plan: Plan, size: int, *, is_open: bool = False) -> dict[str, Any]:
    """The marker of a plan; an open one shows the surface through."""
    look = look_of(plan)
    if is_open:
        line = {"color": f"@{look.role}", "width": 2.5}
        return {"color": "@surface", "size": size, "symbol": look.symbol, "line": line}
    line = {"color": "@surface", "width": 1.5}
    return {"color": f"@{look.role}", "size": size, "symbol": look.symbol, "line": line}


def evaluations_of(plans: Sequence[Plan]) -> list[Evaluation]:
    """What the charts draw from."""
    return [plan.answer.evaluation for plan in plans]


def rows_axis(plans: Sequence[Plan]) -> dict[str, Any]:
    """A numbered axis with a row for each plan, the first at the top, called by its letter."""
    return {
        "tickmode": "array",
        "tickvals": list(range(len(plans))),
        "ticktext": [plan.letter for plan in plans],
        "tickfont": {"color": "@ink", "size": 13},
        "range": [len(plans) - 0.55, -0.75],
        "showgrid": False,
        "zeroline": False,
        "fixedrange": True,
    }


def row_title(plan: Plan, row: int, text: str) -> dict[str, Any]:
    """The name of a plan and a figure above its bar."""
    font = {"color": "@ink", "size": 12}
    words = f"{plain(plan.name if len(plan.name) <= MOST_NAME else plan.name[: MOST_NAME - 1] + '…')}: {text}"
    return note(words, 0, row - 0.33, xref="paper", xanchor="left", yanchor="bottom", font=font, bgcolor="@clear")
