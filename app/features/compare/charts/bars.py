"""How plans are told apart in a chart: by letter, marker and dash as well as by colour.

One GPU of each plan, filled part by part up to its capacity and, where more is asked, beyond it.

How long one answer takes on each plan: to the first token, and the tokens after it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from app.calc.evaluate import Evaluation
from app.calc.quantity import quantity, significant
from app.features.compare.plans import Plan
from app.web.figure import Chart, Table, layout, legend_above, linear_axis, note, plain, table_of

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


MOST_BEYOND = 2.0
"""How far beyond the largest card is drawn, in cards; a longer bar is cut, its size stands above it."""
PARTS = (
    ("Weights", "weights", ""),
    ("Engine and driver", "overhead", "."),
    ("Cache in use", "cache", ""),
    ("Cache to spare", "free", ""),
    ("Outside the engine’s share", "outside", ""),
    ("Cache without room", "limit", "x"),
)


@dataclass(frozen=True, slots=True)
class Filled:
    """Bytes of the tightest GPU in the order of `PARTS`; but for the last they sum to its capacity, where all fit."""

    capacity_bytes: float
    needed_bytes: float
    parts_bytes: tuple[float, ...]

    @property
    def missing_bytes(self) -> float:
        """Of the cache that is asked for, what finds no room."""
        return self.parts_bytes[-1]


def filled(evaluation: Evaluation) -> Filled:
    """How the memory of a GPU is taken."""
    held = evaluation.measures.memory
    card, rank = held.per_gpu, held.tightest
    cache = max(0.0, held.needed_bytes - rank.held_back_bytes - rank.weights.mid)
    used = min(cache, card.kv_pool_bytes)
    parts = (
        card.weights_bytes,
        card.activation_bytes + card.overhead_bytes,
        used,
        card.kv_pool_bytes - used,
        max(0.0, card.free_bytes),
        cache - used,
    )
    return Filled(card.capacity_bytes, held.needed_bytes, parts)


def memory(plans: Sequence[Plan], base: int, *, binary: bool) -> Chart:
    """Stacked bars, a row a plan; a line marks each card's capacity, and what finds no room is hatched."""
    found = [filled(plan.answer.evaluation) for plan in plans]
    scale, unit = (2.0**30, "GiB") if binary else (1e9, "GB")
    largest = max(one.capacity_bytes for one in found)
    longest = max(largest, *(sum(one.parts_bytes) for one in found))
    reach = min(1.03 * longest, (1 + MOST_BEYOND) * largest)

    def written(value: float) -> str:
        return quantity(value, "B", 3, binary=binary)

    rows = list(range(len(plans)))
    figure = {
        "data": [
            _bar(
                place,
                [one.parts_bytes[place] for one in found],
                rows,
                scale,
                [written(o.parts_bytes[place]) for o in found],
            )
            for place in range(len(PARTS))
            if any(one.parts_bytes[place] > 0 for one in found)
        ],
        "layout": layout(
            96 + 84 * len(plans),
            barmode="stack",
            xaxis=linear_axis(unit, longest / scale, range=[0, reach / scale]),
            yaxis=rows_axis(plans),
            shapes=[_capacity(row, one.capacity_bytes / scale) for row, one in zip(rows, found, strict=True)],
            annotations=[
                row_title(plan, row, f"{written(one.needed_bytes)} of {written(one.capacity_bytes)}")
                for row, (plan, one) in enumerate(zip(plans, found, strict=True))
            ],
            margin={"l": 28, "r": 20, "t": 64, "b": 44},
            legend=legend_above(),
        ),
    }
    summary, table = _summary(plans, found, binary=binary), _table(plans, found)
    return Chart("compare-memory", "Memory of a GPU", "What fills the card of each plan?", summary, figure, table)


def _table(plans: Sequence[Plan], found: Sequence[Filled]) -> Table:
    columns = ("plan", "capacity (B)", *(f"{name.lower()} (B)" for name, _, _ in PARTS))
    return table_of(columns, [(p.label, f.capacity_bytes, *f.parts_bytes) for p, f in zip(plans, found, strict=True)])


def _bar(
    place: int, sizes: Sequence[float], rows: Sequence[int], scale: float, written: Sequence[str]
) -> dict[str, Any]:
    name, role, pattern = PARTS[place]
    return {
        "type": "bar",
        "orientation": "h",
        "name": name,
        "x": [size / scale for size in sizes],
        "y": list(rows),
        "width": 0.44,
        "customdata": list(written),
        "marker": {
            "color": f"@{role}",
            "line": {"color": "@surface", "width": 1},
            "pattern": {"shape": pattern, "fgcolor": "@hatch", "size": 6, "fillmode": "overlay"},
        },
        "hovertemplate": f"{name}: %{{customdata}}<extra></extra>",
    }


def _capacity(row: int, x: float) -> dict[str, Any]:
    return {
        "type": "line",
        "x0": x,
        "x1": x,
        "y0": row - 0.3,
        "y1": row + 0.3,
        "line": {"color": "@ink", "width": 2.5},
        "layer": "above",
    }


def _summary(plans: Sequence[Plan], found: Sequence[Filled], *, binary: bool) -> str:
    def written(value: float) -> str:
        return quantity(value, "B", 3, binary=binary)

    told = []
    for plan, one in zip(plans, found, strict=True):
        spare = f"{written(one.parts_bytes[3])} to spare for cache"
        missing = f"{written(one.missing_bytes)} of cache without room"
        told.append(f"{plan.letter} has {missing if one.missing_bytes > 0 else spare}")
    over = [plan for plan, one in zip(plans, found, strict=True) if sum(one.parts_bytes[:2]) > one.capacity_bytes]
    beyond = f" Without any cache {letters(over)} would not fit." if over else ""
    return f"The thick line is the capacity of the card. {'; '.join(told)}.{beyond}"


TIME_PARTS = (("To the first token", "prefill", ""), ("Decode", "decode", ""), ("Waiting for a place", "outside", "/"))


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
            _time_bar(place, [one.parts_s[place] for one in found], rows)
            for place in range(len(TIME_PARTS))
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
    columns = ("plan", *(f"{name.lower()}, {words} (s)" for name, _, _ in TIME_PARTS), f"whole answer, {words} (s)")
    table = table_of(columns, [(p.label, *one.parts_s, one.total_s) for p, one in zip(plans, found, strict=True)])
    summary = _time_summary(plans, found, base, words)
    return Chart("compare-time", "Time of one answer", "Who waits, and for what?", summary, figure, table)


def _time_bar(place: int, times: Sequence[float], rows: Sequence[int]) -> dict[str, Any]:
    name, role, pattern = TIME_PARTS[place]
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


def _time_summary(plans: Sequence[Plan], found: Sequence[Stay], base: int, words: str) -> str:
    told = []
    for plan, one in zip(plans, found, strict=True):
        share = significant(100 * one.parts_s[0] / one.total_s, 2)
        told.append(f"{plan.letter} takes {quantity(one.total_s, 's', 3)}, {share} % of it to the first token")
    kind = "As expected of servers" if words == "expected" else "At the ceiling, which nothing beats"
    return f"{kind}: {'; '.join(told)}."
