"""The longest pause of a stream and the first token of a prompt, over the token budget of a step."""

from math import ceil, log2
from typing import Any

import numpy as np

from app.calc.doors.door import Door
from app.calc.evaluation import Evaluation
from app.calc.notation import quantity
from app.calc.techniques.chunked import Chunked, chunked
from app.charts.doors.variants import refused_chart
from app.charts.figure import Cell, Chart, layout, log_axis, note, table_of, vertical

TITLE, QUESTION = "Pause and first token by token budget", "How small a step is worth it?"
HEIGHT_PX = 420
LEAST, MOST, POINTS = 64, 16_384, 21
_SPREAD = 1.5
"""Room above and below the curves."""


def chunked_prefill_chart(door: Door, evaluation: Evaluation) -> Chart:
    """Two quantities at two levels, both axes logarithmic; a line at the scenario's own budget."""
    if door.refused is not None:
        return refused_chart(door, TITLE, QUESTION)
    deployment, measures = evaluation.deployment, evaluation.measures
    budget = deployment.engine.step_tokens
    steps = [chunked(deployment, measures, int(tokens)) for tokens in _budgets(evaluation)]
    whole = chunked(deployment, measures, None)
    lines = [
        _line("Pause, ceiling", "decode", "solid", steps, [s.pause_ceiling_s for s in steps]),
        _line("First token, ceiling", "prefill", "solid", steps, [s.first_ceiling_s for s in steps]),
    ]
    if whole.pause_s is not None:
        lines += [
            _line("Pause, expected", "decode", "dot", steps, [s.best_pause_s for s in steps]),
            _line("First token, expected", "prefill", "dot", steps, [s.best_first_s for s in steps]),
        ]
    every = [value for line in lines for value in line["y"]]
    low, high = min(every) / _SPREAD, max(every) * _SPREAD
    first, last = steps[0].budget_tokens, steps[-1].budget_tokens
    figure = {
        "data": lines,
        "layout": layout(
            HEIGHT_PX,
            xaxis=log_axis("Token budget of a step", first, last),
            yaxis=log_axis("Time, ms", low, high),
            shapes=[vertical(budget, "ridge", "dot")],
            annotations=[
                note(
                    f"budget here: {budget:,}",
                    float(np.log10(budget)),
                    0.02,
                    yref="paper",
                    xanchor="right",
                    yanchor="bottom",
                    xshift=-4,
                )
            ],
            margin={"l": 64, "r": 20, "t": 56, "b": 48},
        ),
    }
    cells = [_cells(f"{s.budget_tokens:,}", s) for s in steps] + [_cells("whole prompt", whole)]
    headings = (
        "token budget",
        "chunks",
        "longest pause, ceiling (s)",
        "longest pause, expected (s)",
        "first token, ceiling (s)",
        "first token, expected (s)",
    )
    return Chart(f"door-{door.id}", TITLE, QUESTION, _summary(steps, whole), figure, table_of(headings, cells))


def _budgets(evaluation: Evaluation) -> list[float]:
    """From what leaves room beside those that decode to what holds a whole prompt; the scenario's own is among them."""
    batch, budget = evaluation.measures.memory.rank_sequences, evaluation.deployment.engine.step_tokens
    low = max(LEAST, 2 ** ceil(log2(batch + 2)))
    high = max(MOST, 4 * low, budget)
    found = np.rint(np.geomspace(low, high, POINTS))
    return [float(tokens) for tokens in np.unique([*found, budget]) if tokens >= min(low, budget)]


def _line(name: str, role: str, dash: str, steps: list[Chunked], values: list[float]) -> dict[str, Any]:
    return {
        "type": "scatter",
        "mode": "lines",
        "name": name,
        "x": [s.budget_tokens for s in steps],
        "y": [1e3 * value for value in values],
        "customdata": [quantity(value, "s", 3) for value in values],
        "line": {"color": f"@{role}", "width": 2.5, "dash": dash},
        "hovertemplate": f"{name}, %{{x:,}} tokens a step: %{{customdata}}<extra></extra>",
    }


def _cells(name: str, s: Chunked) -> tuple[Cell, ...]:
    pause, first = ("" if value is None else value for value in (s.pause_s, s.first_s))
    return name, s.chunks, s.pause_ceiling_s, pause, s.first_ceiling_s, first


def _summary(steps: list[Chunked], whole: Chunked) -> str:
    least, most = steps[0], steps[-1]
    return (
        f"In steps of {least.budget_tokens:,} tokens a stream pauses for {quantity(least.best_pause_s, 's', 3)} at "
        f"most and the prompt’s first token takes {quantity(least.best_first_s, 's', 3)}; in steps of "
        f"{most.budget_tokens:,}, {quantity(most.best_pause_s, 's', 3)} and {quantity(most.best_first_s, 's', 3)}. "
        f"Prefilled whole: {quantity(whole.best_pause_s, 's', 3)} and {quantity(whole.best_first_s, 's', 3)}."
    )
