"""The charts of two optimizations that are curves of their own, not rows of variants: chunked prefill and guessing."""

from collections.abc import Sequence
from math import ceil, log2
from typing import Any

import numpy as np

from app.calc.evaluate import Evaluation
from app.calc.measure import replica_batch
from app.calc.optimize.optimization import Variants
from app.calc.optimize.speculative import usual_speculation
from app.calc.quantity import quantity, significant
from app.calc.time.break_even import Paying, paying
from app.calc.time.chunked_prefill import Chunked, chunked
from app.calc.time.speculation import expected_tokens
from app.web.figure import Cell, layout, linear_axis, log_axis, note, vertical

HEIGHT_PX = 420
LEAST, MOST, POINTS = 64, 16_384, 21
"""Token budgets that are drawn."""
RATES = ((0.5, "rule", "dash"), (0.7, "cache", "dashdot"), (0.9, "state", "longdash"))
"""Acceptances that are drawn, each with its colour and its dash."""
Drawn = tuple[dict[str, Any], Sequence[str], Sequence[Sequence[Cell]], str]


def _line(
    name: str, role: str, dash: str, x: Sequence[float], y: Sequence[float], hover: str, width: float = 2.5, **more: Any
) -> dict[str, Any]:
    return {
        "type": "scatter",
        "mode": "lines",
        "name": name,
        "x": x,
        "y": y,
        "line": {"color": f"@{role}", "width": width, "dash": dash},
        "hovertemplate": f"{name}, {hover}<extra></extra>",
    } | more


def chunked_prefill_drawing(variants: Variants, evaluation: Evaluation, binary: bool) -> Drawn:
    """Pause and first token at two levels over the budget of a step, on log axes; a line at the scenario's own."""
    deployment, measures = evaluation.deployment, evaluation.measures
    budget = deployment.engine.step_tokens
    steps = [chunked(deployment, measures, int(tokens)) for tokens in _budgets(evaluation)]
    whole, tokens = chunked(deployment, measures, None), [step.budget_tokens for step in steps]
    drawn = [
        ("Pause, ceiling", "decode", "solid", [s.pause_ceiling_s for s in steps]),
        ("First token, ceiling", "prefill", "solid", [s.first_ceiling_s for s in steps]),
    ]
    if whole.pause_s is not None:
        drawn += [
            ("Pause, expected", "decode", "dot", [s.best_pause_s for s in steps]),
            ("First token, expected", "prefill", "dot", [s.best_first_s for s in steps]),
        ]
    lines = [
        _line(
            name,
            role,
            dash,
            tokens,
            [1e3 * value for value in values],
            "%{x:,} tokens a step: %{customdata}",
            customdata=[quantity(value, "s", 3) for value in values],
        )
        for name, role, dash, values in drawn
    ]
    every, at = [value for line in lines for value in line["y"]], float(np.log10(budget))
    place = {"yref": "paper", "xanchor": "right", "yanchor": "bottom", "xshift": -4}
    figure = {
        "data": lines,
        "layout": layout(
            HEIGHT_PX,
            xaxis=log_axis("Token budget of a step", tokens[0], tokens[-1]),
            yaxis=log_axis("Time, ms", min(every) / 1.5, max(every) * 1.5),
            shapes=[vertical(budget, "ridge", "dot")],
            annotations=[note(f"budget here: {budget:,}", at, 0.02, **place)],
            margin={"l": 64, "r": 20, "t": 56, "b": 48},
        ),
    }
    cells = [_cells(f"{s.budget_tokens:,}", s) for s in steps] + [_cells("whole prompt", whole)]
    kinds = [f"{what}, {level} (s)" for what in ("longest pause", "first token") for level in ("ceiling", "expected")]
    least, most = steps[0], steps[-1]
    summary = (
        f"In steps of {least.budget_tokens:,} tokens a stream pauses for {quantity(least.best_pause_s, 's', 3)} at "
        f"most and the prompt’s first token takes {quantity(least.best_first_s, 's', 3)}; in steps of "
        f"{most.budget_tokens:,}, {quantity(most.best_pause_s, 's', 3)} and {quantity(most.best_first_s, 's', 3)}. "
        f"Prefilled whole: {quantity(whole.best_pause_s, 's', 3)} and {quantity(whole.best_first_s, 's', 3)}."
    )
    return figure, ("token budget", "chunks", *kinds), cells, summary


def _budgets(evaluation: Evaluation) -> list[float]:
    """From what leaves room beside those that decode to what holds a whole prompt; the scenario's own is among them."""
    batch, budget = evaluation.measures.memory.rank_sequences, evaluation.deployment.engine.step_tokens
    low = max(LEAST, 2 ** ceil(log2(batch + 2)))
    high = max(MOST, 4 * low, budget)
    found = np.rint(np.geomspace(low, high, POINTS))
    return [float(tokens) for tokens in np.unique([*found, budget]) if tokens >= min(low, budget)]


def _cells(name: str, s: Chunked) -> tuple[Cell, ...]:
    pause, first = ("" if value is None else value for value in (s.pause_s, s.first_s))
    return name, s.chunks, s.pause_ceiling_s, pause, s.first_ceiling_s, first


def speculative_drawing(variants: Variants, evaluation: Evaluation, binary: bool) -> Drawn:
    """How many times sooner a token comes: as asked at both levels, other acceptances as best known; a line at 1."""
    here = evaluation.deployment
    guessing = here if here.speculation is not None else usual_speculation(here)
    assert guessing.speculation is not None  # noqa: S101  # both have one
    curve, k = paying(guessing), guessing.speculation.draft_tokens
    others = [(f"{round(100 * rate)} %", curve.at(float(expected_tokens(rate, k)))) for rate, *_ in RATES]
    ceiling, words = curve.plain_s / curve.guessed_s, f"{significant(curve.tokens_per_step, 3)} tokens a step"
    drawn = [(f"As asked, {words}: ceiling", "decode", "solid", ceiling, 2.5)]
    if curve.expected_guessed_s is not None:
        drawn.append((f"As asked, {words}: expected", "overhead", "dot", curve.gain, 3.0))
    drawn += [
        (f"{rate} accepted", role, dash, other.gain, 1.75)
        for (rate, other), (_, role, dash) in zip(others, RATES, strict=True)
    ]
    x = curve.batch.tolist()
    data = [
        _line(name, role, dash, x, gain.tolist(), "batch %{x:,}: %{y:.3~g} times", width)
        for name, role, dash, gain, width in drawn
    ]
    every = [value for line in data for value in line["y"]]
    last, users = x[-1], float(replica_batch(here, evaluation.measures.memory.running_sequences))
    no_gain = {"type": "line", "x0": 1, "x1": last, "y0": 1, "y1": 1, "layer": "below"}
    shapes = [no_gain | {"line": {"color": "@limit", "width": 1.5, "dash": "dash"}}]
    notes = [note("no gain", float(np.log10(last)), 1.0, xanchor="right", yanchor="bottom")]
    if 1 <= users <= last:
        place = {"yref": "paper", "xanchor": "left", "yanchor": "bottom", "xshift": 4}
        shapes.append(vertical(users, "ridge", "dot"))
        notes.append(note(f"this scenario: {users:,.0f}", float(np.log10(users)), 0.02, **place))
    figure = {
        "data": data,
        "layout": layout(
            HEIGHT_PX,
            xaxis=log_axis("Sequences in a step (batch)", 1, last),
            yaxis=linear_axis("Times sooner", max(every), range=[0, 1.1 * max(*every, 1.0)]),
            shapes=shapes,
            annotations=notes,
            margin={"l": 64, "r": 20, "t": 76, "b": 48},
        ),
    }
    cells: list[tuple[Cell, ...]] = [
        (f"{batch:,.0f}", *(float(gain) for gain in gains))
        for batch, *gains in zip(curve.batch, ceiling, curve.gain, *(c.gain for _, c in others), strict=True)
    ]
    kinds = ("as asked, ceiling", "as asked, best known", *(f"{rate} accepted, best known" for rate, _ in others))
    text = f"With {words} one user’s token comes {significant(float(curve.gain[0]), 3)} times sooner; {_stop(curve)}"
    stops = [_stop(other) for _, other in others]
    if len({*stops, _stop(curve)}) == 1:
        text += ", at each acceptance that is drawn"
    else:
        each = [f"at {rate} acceptance {stop}" for (rate, _), stop in zip(others, stops, strict=True)]
        text += f"; {', '.join(each)}"
    return figure, ("batch", *(f"{kind} (times)" for kind in kinds)), cells, f"{text}."


def _stop(curve: Paying) -> str:
    stops = curve.stops_at
    if stops is None:
        return "it pays at every batch looked at"
    return "it pays at no batch" if stops <= 1 else f"it pays up to about {significant(stops, 2)}"
