"""What guessing gains over a growing batch, for several acceptances, and where it stops paying."""

from typing import Any

import numpy as np

from app.calc.doors.door import Door
from app.calc.doors.speculative import usual_speculation
from app.calc.evaluation import Evaluation
from app.calc.measure import replica_batch
from app.calc.notation import significant
from app.calc.techniques.paying import Paying, Values, paying
from app.calc.techniques.speculation import expected_tokens
from app.charts.doors.variants import refused_chart
from app.charts.figure import Cell, Chart, layout, linear_axis, log_axis, note, table_of, vertical

TITLE, QUESTION = "Gain of guessing by batch", "At which batch does it stop paying?"
HEIGHT_PX = 420
RATES = ((0.5, "rule", "dash"), (0.7, "cache", "dashdot"), (0.9, "state", "longdash"))
_ROOM = 1.1


def speculative_chart(door: Door, evaluation: Evaluation) -> Chart:
    """How many times sooner a token comes: as asked at both levels, other acceptances as best known; a line at 1."""
    here = evaluation.deployment
    guessing = here if here.speculation is not None else usual_speculation(here)
    if door.refused is not None or guessing.speculation is None:
        return refused_chart(door, TITLE, QUESTION)
    curve, k = paying(guessing), guessing.speculation.draft_tokens
    others = [(rate, role, dash, curve.at(float(expected_tokens(rate, k)))) for rate, role, dash in RATES]
    ceiling = curve.plain_s / curve.guessed_s
    words = f"{significant(curve.tokens_per_step, 3)} tokens a step"
    data = [_line(curve.batch, ceiling, f"As asked, {words}: ceiling", "decode", "solid")]
    if curve.expected_guessed_s is not None:
        data.append(_line(curve.batch, curve.gain, f"As asked, {words}: expected", "overhead", "dot", 3.0))
    data += [
        _line(c.batch, c.gain, f"{round(100 * rate)} % accepted", role, dash, 1.75) for rate, role, dash, c in others
    ]
    every = [value for line in data for value in line["y"]]
    last, users = float(curve.batch[-1]), _batch(evaluation)
    figure = {
        "data": data,
        "layout": layout(
            HEIGHT_PX,
            xaxis=log_axis("Sequences in a step (batch)", 1, last),
            yaxis=linear_axis("Times sooner", max(every), range=[0, _ROOM * max(*every, 1.0)]),
            shapes=[_level(last), *([vertical(users, "ridge", "dot")] if 1 <= users <= last else [])],
            annotations=[
                note("no gain", float(np.log10(last)), 1.0, xanchor="right", yanchor="bottom"),
                *([_here(users)] if 1 <= users <= last else []),
            ],
            margin={"l": 64, "r": 20, "t": 76, "b": 48},
        ),
    }
    cells: list[tuple[Cell, ...]] = [
        (f"{batch:,.0f}", *(float(gain) for gain in gains))
        for batch, *gains in zip(curve.batch, ceiling, curve.gain, *(c.gain for *_, c in others), strict=True)
    ]
    headings = (
        "batch",
        "as asked, ceiling (times)",
        "as asked, best known (times)",
        *(f"{round(100 * rate)} % accepted, best known (times)" for rate, *_ in RATES),
    )
    return Chart(f"door-{door.id}", TITLE, QUESTION, _summary(curve, others), figure, table_of(headings, cells))


def _batch(evaluation: Evaluation) -> float:
    return float(replica_batch(evaluation.deployment, evaluation.measures.memory.running_sequences))


def _line(batch: Values, gain: Values, name: str, role: str, dash: str, width: float = 2.5) -> dict[str, Any]:
    return {
        "type": "scatter",
        "mode": "lines",
        "name": name,
        "x": batch.tolist(),
        "y": gain.tolist(),
        "line": {"color": f"@{role}", "width": width, "dash": dash},
        "hovertemplate": f"{name}, batch %{{x:,}}: %{{y:.3~g}} times<extra></extra>",
    }


def _level(last: float) -> dict[str, Any]:
    """Where a token comes no sooner and no later."""
    line = {"color": "@limit", "width": 1.5, "dash": "dash"}
    return {"type": "line", "x0": 1, "x1": last, "y0": 1, "y1": 1, "line": line, "layer": "below"}


def _here(batch: float) -> dict[str, Any]:
    place = {"xanchor": "left", "yanchor": "bottom", "xshift": 4}
    return note(f"this scenario: {batch:,.0f}", float(np.log10(batch)), 0.02, yref="paper", **place)


def _summary(curve: Paying, others: list[tuple[float, str, str, Paying]]) -> str:
    tokens = significant(curve.tokens_per_step, 3)
    text = (
        f"With {tokens} tokens a step one user’s token comes {significant(float(curve.gain[0]), 3)} times sooner; "
        f"{_stop(curve)}"
    )
    stops = [_stop(other) for *_, other in others]
    if len({*stops, _stop(curve)}) == 1:
        return f"{text}, at each acceptance that is drawn."
    told = [f"at {round(100 * rate)} % acceptance {stop}" for (rate, *_), stop in zip(others, stops, strict=True)]
    return f"{text}; {', '.join(told)}."


def _stop(curve: Paying) -> str:
    stops = curve.stops_at
    if stops is None:
        return "it pays at every batch looked at"
    return "it pays at no batch" if stops <= 1 else f"it pays up to about {significant(stops, 2)}"
