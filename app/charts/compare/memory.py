"""One GPU of each plan, filled part by part up to its capacity and, where more is asked, beyond it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from app.calc.evaluation import Evaluation
from app.calc.notation import quantity
from app.charts.compare.looks import letters, row_title, rows_axis
from app.charts.figure import Chart, Table, layout, legend_above, linear_axis, table_of
from app.compare.plans import Plan

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
