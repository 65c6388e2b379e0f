"""The charts of the lesson: pace on several GPUs, what a step reads, how batching shares it, one request in time."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from app.calc.accelerator import step_weight_bytes
from app.calc.broadcast import scalar
from app.calc.evaluate import Evaluation
from app.calc.memory.cache import kv_bytes_per_sequence
from app.calc.quantity import quantity, significant
from app.web.figure import (
    BatchSeries,
    Chart,
    Table,
    Values,
    axis,
    batch_series,
    layout,
    legend_above,
    linear_axis,
    log_axis,
    note,
    plain,
    table_of,
    vertical,
)

ROW_PX, FRAME_PX = 30, 120


@dataclass(frozen=True, slots=True)
class CardPace:
    """A card with what one user gets on as many of it as the scenario has. `holds` says that the weights find room."""

    name: str
    year: int
    pace_tokens_per_s: float
    bandwidth_bytes_per_s: float
    peak_flops_per_s: float
    compute: str
    holds: bool
    is_own: bool


def cards_chart(cards: Sequence[CardPace]) -> Chart:
    """Bars from the oldest card down to the newest; the reader's own has its colour, what is too small is hatched."""
    rows = list(reversed(cards))
    traces = [
        _bars("This card", "decode", "", [c for c in rows if c.is_own]),
        _bars("Other cards", "weights", "", [c for c in rows if not c.is_own and c.holds]),
        _bars("Too small for the weights", "outside", "/", [c for c in rows if not c.is_own and not c.holds]),
    ]
    figure = {
        "data": [trace for trace in traces if trace["x"]],
        "layout": layout(
            FRAME_PX + ROW_PX * len(rows),
            barmode="overlay",
            bargap=0.35,
            xaxis=linear_axis("One user, tokens/s", max(c.pace_tokens_per_s for c in rows), rangemode="tozero"),
            yaxis={
                "type": "category",
                "categoryorder": "array",
                "categoryarray": [plain(c.name) for c in rows],
                "automargin": True,
                "tickfont": {"color": "@ink"},
                "fixedrange": True,
            },
            margin={"l": 120, "r": 56, "t": 40, "b": 48},
        ),
    }
    return Chart(
        "cards",
        "One user on other cards",
        "What does a newer card give a single reader?",
        _summary(cards),
        figure,
        _table(cards),
    )


def _table(cards: Sequence[CardPace]) -> Table:
    table = [
        (
            f"{c.name}, this card" if c.is_own else c.name,
            c.year or "–",
            c.bandwidth_bytes_per_s,
            c.compute,
            c.peak_flops_per_s,
            c.peak_flops_per_s / c.bandwidth_bytes_per_s,
            c.pace_tokens_per_s,
            "yes" if c.holds else "no",
        )
        for c in cards
    ]
    columns = (
        "card",
        "year",
        "bandwidth (B/s)",
        "arithmetic in",
        "arithmetic (FLOP/s)",
        "ridge (FLOP/B)",
        "one user (tokens/s)",
        "holds the weights",
    )
    return table_of(columns, table)


def _bars(name: str, role: str, pattern: str, cards: Sequence[CardPace]) -> dict[str, Any]:
    return {
        "type": "bar",
        "orientation": "h",
        "name": name,
        "x": [c.pace_tokens_per_s for c in cards],
        "y": [plain(c.name) for c in cards],
        "text": [significant(c.pace_tokens_per_s, 3) for c in cards],
        "textposition": "outside",
        "cliponaxis": False,
        "textfont": {"color": "@ink"},
        "marker": {
            "color": f"@{role}",
            "line": {"color": "@surface", "width": 1},
            "pattern": {"shape": pattern, "fgcolor": "@hatch", "size": 6, "fillmode": "overlay"},
        },
        "hovertemplate": f"%{{y}}: %{{x:.4~g}} tokens/s ({name.lower()})<extra></extra>",
    }


def _summary(cards: Sequence[CardPace]) -> str:
    own = next(c for c in cards if c.is_own)
    fastest = max(cards, key=lambda c: c.pace_tokens_per_s)
    text = f"On {own.name} one user gets at most {significant(own.pace_tokens_per_s, 4)} tokens/s"
    if fastest is own:
        return f"{text}; none of the others shown gives more."
    times = significant(fastest.pace_tokens_per_s / own.pace_tokens_per_s, 3)
    bandwidth = significant(fastest.bandwidth_bytes_per_s / own.bandwidth_bytes_per_s, 3)
    return f"{text}, on {fastest.name} {times} times that, with {bandwidth} times the bandwidth."


HEIGHT_PX = 420
MOST_BEYOND = 16.0
"""How far beyond the ridge the axis reaches."""


def pace_chart(evaluation: Evaluation) -> Chart:
    """Two plots over one batch axis by the rule of thumb, weights alone: level and rising, then falling and level."""
    series = batch_series(evaluation)
    users = evaluation.measures.memory.replica_sequences
    each, all_ = 1 / series.weights_only_step_s, series.batch / series.weights_only_step_s
    top = float(min(series.batch[-1], max(2 * users, MOST_BEYOND * series.ridge_batch, 64)))
    shapes, labels = [], []
    if 1 < series.ridge_batch < top:
        shapes.append(vertical(series.ridge_batch, "ridge", "dot"))
        text = f"ridge: {significant(series.ridge_batch, 3)} users"
        labels.append(
            note(
                text, float(np.log10(series.ridge_batch)), 1.0, yref="paper", xanchor="right", yanchor="top", xshift=-5
            )
        )
    figure = {
        "data": [
            _line(series.batch, each, "y2", "decode", "Each user", "solid"),
            _line(series.batch, all_, "y", "rule", "All users", "dash"),
            _here(series, users, "y2", each),
            _here(series, users, "y", all_),
        ],
        "layout": layout(
            HEIGHT_PX,
            xaxis=log_axis("Users who share a step", 1, top, anchor="y2"),
            yaxis=linear_axis("All users, tokens/s", float(all_.max()), domain=[0.54, 1], rangemode="tozero"),
            yaxis2=linear_axis("Each user, tokens/s", float(each.max()), domain=[0, 0.44], rangemode="tozero"),
            shapes=shapes,
            annotations=labels,
        ),
    }
    rows = [(int(b), float(e), float(a)) for b, e, a in zip(series.batch, each, all_, strict=True) if b <= top]
    return Chart(
        "pace",
        "The pace of one user as others join",
        "From which batch on does one more user slow the others down?",
        _learn_pace_summary(series, each, users),
        figure,
        table_of(("users in a step", "each user (tokens/s)", "all users (tokens/s)"), rows),
    )


def _line(batch: Values, values: Values, axis_name: str, role: str, name: str, dash: str) -> dict[str, Any]:
    return {
        "type": "scatter",
        "mode": "lines",
        "name": name,
        "x": batch.tolist(),
        "y": values.tolist(),
        "yaxis": axis_name,
        "line": {"color": f"@{role}", "width": 2.5, "dash": dash},
        "hovertemplate": f"{name}, batch %{{x:,}}: %{{y:.4s}} tokens/s<extra></extra>",
    }


def _here(series: BatchSeries, users: int, axis_name: str, values: Values) -> dict[str, Any]:
    at = int(np.argmin(np.abs(series.batch - users)))
    return {
        "type": "scatter",
        "mode": "markers",
        "name": f"{users:,} users",
        "showlegend": axis_name == "y",
        "x": [float(series.batch[at])],
        "y": [float(values[at])],
        "yaxis": axis_name,
        "marker": {"color": "@overhead", "size": 12, "symbol": "circle", "line": {"color": "@surface", "width": 2}},
        "hovertemplate": "batch %{x:,}: %{y:.4s} tokens/s<extra></extra>",
    }


def _learn_pace_summary(series: BatchSeries, each: Values, users: int) -> str:
    first, ridge = float(each[0]), series.ridge_batch
    at = float(each[int(np.argmin(np.abs(series.batch - users)))])
    level = "keeps that" if at > 0.999 * first else f"has {significant(at, 3)} left"
    return (
        f"Alone a user gets {significant(first, 4)} tokens/s, and among {users:,} each {level}. Arithmetic takes as "
        f"long as the reading from {significant(ridge, 3)} users on; beyond it the total stays and each share shrinks."
    )


LEARN_READS_HEIGHT_PX = 360
_GB = 1e9


def reads_chart(evaluation: Evaluation) -> Chart:
    """Stacked bars over the number of users at full length; the bar of the scenario's own is among them."""
    deployment, users = evaluation.deployment, evaluation.measures.memory.replica_sequences
    plan, tokens = deployment.precision.weights, deployment.workload.total_tokens
    batches = sorted({1, 2, 4, 8, 16, 32, 64, 128, 256, users})
    batches = [batch for batch in batches if batch <= max(128, 2 * users)]
    one = scalar(kv_bytes_per_sequence(deployment.architecture, tokens, deployment.precision.kv_cache))
    read = np.asarray(
        step_weight_bytes(deployment.architecture, plan, np.array(batches, dtype=float)) + np.zeros(len(batches))
    )
    cache = one * np.array(batches, dtype=float)
    names = [f"{batch:,}" for batch in batches]
    highest = float((read + cache).max()) / _GB
    figure = {
        "data": [
            _bar("Weights, once for all", "weights", names, (read / _GB).tolist()),
            _bar("Cache, each user’s own", "cache", names, (cache / _GB).tolist()),
        ],
        "layout": layout(
            LEARN_READS_HEIGHT_PX,
            barmode="stack",
            bargap=0.3,
            xaxis=_users(tokens),
            yaxis=linear_axis("Read in one step, GB", highest, rangemode="tozero"),
            legend=legend_above(),
            margin={"l": 64, "r": 20, "t": 56, "b": 52},
        ),
    }
    rows = [
        (batch, float(w), float(c), float(c / w))
        for batch, w, c in zip(batches, read.tolist(), cache.tolist(), strict=True)
    ]
    return Chart(
        "reads",
        "What one step reads",
        "From how many users on is more cache read than weights?",
        _learn_reads_summary(users, tokens, float(read[batches.index(users)]), one),
        figure,
        table_of(("users", "weights (B)", "cache (B)", "cache ÷ weights"), rows),
    )


def _users(tokens: int) -> dict[str, Any]:
    """An axis of words: each bar stands for a number of users."""
    title = {"text": f"Users, {tokens:,} tokens each", "standoff": 8, "font": {"color": "@muted", "size": 12}}
    return {
        "type": "category",
        "title": title,
        "tickfont": {"color": "@muted"},
        "linecolor": "@axis",
        "automargin": True,
        "fixedrange": True,
    }


def _bar(name: str, role: str, names: list[str], values: list[float]) -> dict[str, Any]:
    return {
        "type": "bar",
        "name": name,
        "x": names,
        "y": values,
        "marker": {"color": f"@{role}", "line": {"color": "@surface", "width": 1}},
        "hovertemplate": f"%{{x}} users, {name.lower()}: %{{y:.4~g}} GB<extra></extra>",
    }


def _learn_reads_summary(users: int, tokens: int, weights: float, one: float) -> str:
    who = "One user" if users == 1 else f"{users:,} users"
    text = f"{who} with {tokens:,} tokens each make a step read {quantity(weights, 'B', 4)} of weights"
    if one <= 0:
        return f"{text} and no cache at all."
    cache = users * one
    text = f"{text} and {quantity(cache, 'B', 4)} of cache, {significant(cache / weights, 2)} times as much."
    return f"{text} From {math.ceil(weights / one):,} such users on the cache is the larger part."


LEARN_TIMELINE_HEIGHT_PX = 300
SHOWN_STEPS = 12
"""Tokens that the second look shows one by one."""
MOST_BEFORE = 8
"""Steps' worth of prefill that it shows before them, where the prefill is longer."""


def timeline_chart(evaluation: Evaluation) -> Chart:
    """Two looks at one request by the rule of thumb: all of it, and the moment when the first tokens come."""
    rule, workload = evaluation.rule_of_thumb, evaluation.deployment.workload
    prefill, step, tokens = rule.prefill_s, rule.decode_step_s, workload.output_tokens
    total = rule.total_latency_s
    shown = min(SHOWN_STEPS, tokens)
    start = max(0.0, prefill - MOST_BEFORE * step)
    whole, close = "All of it", "First tokens"
    figure = {
        "data": [
            _learn_timeline_bar("Prefill", "prefill", whole, 0.0, prefill, "x", show=True),
            _learn_timeline_bar("Decode", "decode", whole, prefill, total - prefill, "x", show=True),
            _learn_timeline_bar("Prefill", "prefill", close, start, prefill - start, "x2", show=False),
            *(
                _learn_timeline_bar("Decode", "decode", close, prefill + i * step, step, "x2", show=False)
                for i in range(shown)
            ),
        ],
        "layout": layout(
            LEARN_TIMELINE_HEIGHT_PX,
            barmode="overlay",
            bargap=0.35,
            xaxis=_clock("Seconds since the prompt arrived", 0.0, total, anchor="y"),
            xaxis2=_clock("The same, stretched", start, prefill + (shown + 0.5) * step, anchor="y2"),
            yaxis=_row([0.68, 1.0], "x"),
            yaxis2=_row([0.0, 0.32], "x2"),
            legend={"orientation": "h", "x": 0, "xanchor": "left", "y": 1.04, "yanchor": "bottom"},
            margin={"l": 88, "r": 20, "t": 40, "b": 48},
        ),
    }
    summary = (
        f"The prompt is read in {quantity(prefill, 's', 3)}, then a token comes every {quantity(step, 's', 3)}: "
        f"{significant(100 * (total - prefill) / total, 3)} % of the {quantity(total, 's', 3)} is writing."
    )
    return Chart(
        "timeline",
        "One request against the clock",
        "Which of the two waits is longer?",
        summary,
        figure,
        table_of(("what", "begins (s)", "ends (s)"), _rows(evaluation, shown)),
    )


def _rows(evaluation: Evaluation, shown: int) -> list[tuple[str, float, float]]:
    """The prefill, the first tokens one by one, and the last."""
    rule, tokens = evaluation.rule_of_thumb, evaluation.deployment.workload.output_tokens
    prefill, step, total = rule.prefill_s, rule.decode_step_s, rule.total_latency_s
    rows: list[tuple[str, float, float]] = [("prefill", 0.0, prefill)]
    rows += [(f"token {i + 1:,}", prefill + i * step, prefill + (i + 1) * step) for i in range(shown)]
    if tokens > shown:
        rows.append((f"token {tokens:,}, the last", total - step, total))
    return rows


def _learn_timeline_bar(
    name: str, role: str, row: str, start: float, length: float, at: str, *, show: bool
) -> dict[str, Any]:
    ends = quantity(start + length, "s", 3)
    return {
        "type": "bar",
        "orientation": "h",
        "name": name,
        "showlegend": show,
        "legendgroup": role,
        "base": [start],
        "x": [length],
        "y": [row],
        "xaxis": at,
        "yaxis": at.replace("x", "y"),
        "marker": {"color": f"@{role}", "line": {"color": "@surface", "width": 1.5}},
        "hovertemplate": f"{name}: {quantity(length, 's', 3)}, until {ends}<extra></extra>",
    }


def _clock(title: str, low: float, high: float, **more: Any) -> dict[str, Any]:
    return axis(title, range=[low, high], exponentformat="SI" if high < 1e15 else "e", ticksuffix="s", nticks=6, **more)


def _row(domain: list[float], anchor: str) -> dict[str, Any]:
    return {"automargin": True, "tickfont": {"color": "@ink"}, "fixedrange": True, "domain": domain, "anchor": anchor}
