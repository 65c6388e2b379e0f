"""How long the conversations may be, against how many of them: what memory allows."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from app.calc.deployment import Deployment
from app.calc.evaluate import Evaluation
from app.calc.memory.engines.ideal import IdealPolicy
from app.calc.memory.engines.parts import MOST_CONCURRENT, MOST_TOKENS, Given
from app.calc.memory.rank import RankMemory, rank_memories
from app.web.figure import Cell, Chart, layout, log_axis, note, table_of, vertical

LEAST_TOP = 131_072
POINTS = 33
HEIGHT_PX = 444
CORNERS = (1, 2, 3, 4, 6, 8, 12, 16)
"""Sequences of a rank at which the longest context is looked up: so few make wider steps than the contexts."""
Point = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Frontier:
    """Sequences of the whole deployment that fit at each of `contexts`: by the engine's rules, and at best."""

    contexts: tuple[int, ...]
    low: tuple[int, ...]
    mid: tuple[int, ...]
    high: tuple[int, ...]
    ideal: tuple[int, ...]
    corners: tuple[tuple[Point, ...], ...]
    is_exact: bool


def frontier(evaluation: Evaluation) -> Frontier:
    """About 35 contexts, evenly apart on a log scale, and those that the scenario names.

    Exact at each: whole sequences, as the engine's plan counts them. The ideal engine has the whole card, for weights
    and cache alone: nothing gets more out of it.
    """
    deployment, held = evaluation.deployment, evaluation.measures.memory
    total, limit = deployment.workload.total_tokens, deployment.architecture.max_position
    named = [n for n in (total, limit, deployment.engine.max_model_len) if n]
    top = min(MOST_TOKENS, max(LEAST_TOP, 2 * max(named)))
    spaced = np.rint(np.geomspace(min(256, *named), top, POINTS)).astype(int).tolist()
    contexts = sorted({*spaced, *named})
    low, mid, high = (_fitting(deployment, held.ranks, side, contexts) for side in range(3))
    alone = _ideal(deployment)
    ideal = rank_memories(alone)
    return Frontier(
        contexts=tuple(contexts),
        low=low,
        mid=mid,
        high=high,
        ideal=_fitting(alone, ideal, 1, contexts),
        corners=(*(_corners(deployment, held.ranks, side) for side in range(3)), _corners(alone, ideal, 1)),
        is_exact=low == high,
    )


def _ideal(deployment: Deployment) -> Deployment:
    """Weights as they were measured, if they were; nothing else is taken off."""
    given = Given(weights=deployment.engine.given.weights)
    engine = replace(
        deployment.engine,
        policy=IdealPolicy(),
        memory_utilization=1.0,
        given=given,
        reserved_tokens=None,
    )
    return replace(deployment, engine=engine)


def _fitting(
    deployment: Deployment, ranks: Sequence[RankMemory], side: int, contexts: Sequence[int]
) -> tuple[int, ...]:
    engines = deployment.replicas * deployment.split.data
    return tuple(
        min(MOST_CONCURRENT, engines * min(rank.fitting(deployment, rank.pool.sides[side], tokens) for rank in ranks))
        for tokens in contexts
    )


def _corners(deployment: Deployment, ranks: Sequence[RankMemory], side: int) -> tuple[Point, ...]:
    """The longest contexts of a few sequences a rank."""
    engines, found = deployment.replicas * deployment.split.data, []
    for sequences in CORNERS:
        limits = [rank.longest(deployment, rank.pool.sides[side], sequences) for rank in ranks]
        longest = min((limit for limit in limits if limit is not None), default=0)
        if longest >= 1:
            found.append((sequences * engines, longest))
    return tuple(found)


def frontier_chart(evaluation: Evaluation) -> Chart:
    """Log-log: contexts up, sequences to the right; the engine's room with its band, under the ideal engine's line."""
    deployment, found = evaluation.deployment, frontier(evaluation)
    here = (asked(evaluation), deployment.workload.total_tokens)
    left = _drawn(found.contexts, found.mid, found.corners[1])
    ideal = _drawn(found.contexts, found.ideal, found.corners[3])
    most = max([here[0], *(x for x, _ in (*left, *ideal)), *found.high])
    bottom, top = found.contexts[0], max(here[1], found.contexts[-1])
    traces = [
        *_band(found),
        _line(ideal, "Ideal engine, whole card", "roof", "solid", 1.75),
        _line(left, "This engine", "decode", "solid" if found.is_exact else "dot", 2.75),
        _here(here),
    ]
    shapes, labels = _limits(deployment, most)
    figure = {
        "data": [trace for trace in traces if trace["x"]],
        "layout": layout(
            HEIGHT_PX,
            xaxis=log_axis("Sequences at a time", 0.85, max(2.0, 1.25 * most)),
            yaxis=log_axis("Tokens of each", bottom / 1.2, 1.4 * top),
            shapes=shapes,
            annotations=labels,
        ),
    }
    columns = (
        "context (tokens)",
        "sequences that fit",
        "at least, in eight of ten",
        "at most, in eight of ten",
        "ideal engine",
        "within the model’s limit",
    )
    limit = deployment.architecture.max_position or MOST_TOKENS
    rows: list[tuple[Cell, ...]] = [
        (tokens, mid, low, high, ideal_, "yes" if tokens <= limit else "no")
        for tokens, mid, low, high, ideal_ in zip(
            found.contexts, found.mid, found.low, found.high, found.ideal, strict=True
        )
    ]
    return Chart(
        "frontier",
        "Longest context against concurrency",
        "How many conversations, and how long may they get?",
        _summary(evaluation, found),
        figure,
        table_of(columns, rows),
    )


def asked(evaluation: Evaluation) -> int:
    """The sequences asked for; where as many as fit were asked for, those that run."""
    return evaluation.deployment.workload.concurrency or evaluation.measures.memory.running_sequences


def _drawn(contexts: Sequence[int], sequences: Sequence[int], corners: Sequence[Point]) -> list[Point]:
    """From the shortest context on, for each number of sequences the longest context that was looked at.

    Among the few only where it was looked up.
    """
    few = max((n for n, _ in corners), default=0)
    longest = dict(corners)
    for n, tokens in zip(sequences, contexts, strict=True):
        if n > few:
            longest[n] = max(tokens, longest.get(n, 0))
    start = [(sequences[0], contexts[0])] if sequences[0] > 0 else []
    return [*start, *sorted(longest.items(), reverse=True)]


def _band(found: Frontier) -> list[dict[str, Any]]:
    """The outline from the shortest context up the low side and down the high one."""
    low = _drawn(found.contexts, found.low, found.corners[0])
    high = _drawn(found.contexts, found.high, found.corners[2])
    if found.is_exact or not low:
        return []
    outline = [*low, *reversed(high)]
    return [
        {
            "type": "scatter",
            "mode": "lines",
            "name": "Eight cases of ten",
            "x": [x for x, _ in outline],
            "y": [y for _, y in outline],
            "fill": "toself",
            "fillcolor": "@band",
            "line": {"color": "@clear", "width": 0},
            "hoverinfo": "skip",
        }
    ]


def _line(points: Sequence[Point], name: str, role: str, dash: str, width: float) -> dict[str, Any]:
    return {
        "type": "scatter",
        "mode": "lines",
        "name": name,
        "x": [x for x, _ in points],
        "y": [y for _, y in points],
        "line": {"color": f"@{role}", "width": width, "dash": dash},
        "hovertemplate": f"{name}: %{{x:,}} of %{{y:,}} tokens<extra></extra>",
    }


def _here(point: Point) -> dict[str, Any]:
    return {
        "type": "scatter",
        "mode": "markers",
        "name": "This scenario",
        "x": [point[0]],
        "y": [point[1]],
        "marker": {"color": "@decode", "size": 12, "symbol": "circle", "line": {"color": "@surface", "width": 2}},
        "hovertemplate": "this scenario: %{x:,} of %{y:,} tokens<extra></extra>",
    }


def _limits(deployment: Deployment, most: int) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Lines of what is set apart from memory: the model's limit, the longest sequence served, sequences at a time."""
    shapes, labels = [], []
    model, served = deployment.architecture.max_position, deployment.engine.max_model_len
    for tokens, words, role, anchor in (
        (model, "model’s limit", "muted", "bottom"),
        (served if served != model else None, "longest served", "limit", "top"),
    ):
        if tokens:
            shapes.append(_across(tokens, role))
            labels.append(
                note(f"{words} {tokens:,}", 1, math.log10(tokens), xref="paper", xanchor="right", yanchor=anchor)
            )
    cap = deployment.engine.max_num_seqs
    at_most = None if cap is None else cap * deployment.replicas * deployment.split.data
    if at_most is not None and at_most <= most:
        shapes.append(vertical(at_most, "limit"))
        words = f"at most {at_most:,} at a time"
        labels.append(note(words, math.log10(at_most), 0, yref="paper", xanchor="right", yanchor="bottom", xshift=-4))
    return shapes, labels


def _across(y: float, role: str) -> dict[str, Any]:
    return {
        "type": "line",
        "xref": "paper",
        "x0": 0,
        "x1": 1,
        "y0": y,
        "y1": y,
        "line": {"color": f"@{role}", "width": 1.5, "dash": "dot" if role == "muted" else "dash"},
        "layer": "below",
    }


def _summary(evaluation: Evaluation, found: Frontier) -> str:
    tokens = evaluation.deployment.workload.total_tokens
    at = found.contexts.index(tokens)
    low, mid, high, ideal = found.low[at], found.mid[at], found.high[at], found.ideal[at]
    between = "" if low == high else f" ({low:,} to {high:,} in eight cases of ten)"
    room = f"there is room for {_sequences(mid)}{between}" if mid or high else "not one sequence fits"
    text = f"At {tokens:,} tokens each {room}; an ideal engine on the whole card would hold {ideal:,}."
    alone = dict(found.corners[1]).get(evaluation.deployment.replicas * evaluation.deployment.split.data)
    return f"{text} A sequence that has a GPU’s pool to itself could reach {alone:,} tokens." if alone else text


def _sequences(n: int) -> str:
    return f"{n:,} {'sequence' if n == 1 else 'sequences'}"
