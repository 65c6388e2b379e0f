"""Ways of using the same GPUs: how fast each user's tokens come, against what each GPU yields."""

from itertools import cycle
from typing import Any

from app.calc.doors.door import Door
from app.calc.evaluation import Evaluation
from app.calc.notation import quantity
from app.charts.doors.variants import HEIGHT_PX, name_of, numbers, refused_chart
from app.charts.figure import Cell, Chart, layout, legend_above, linear_axis, table_of

TITLE, QUESTION = "A token’s time against each GPU’s yield", "Which split serves whom?"
MARGIN = 1.1
"""Room beyond the farthest point."""
_SYMBOLS = ("circle", "square", "diamond", "triangle-up", "cross", "x", "triangle-down", "star")


def parallelism_chart(door: Door, evaluation: Evaluation) -> Chart:
    """A point a way: further right each GPU yields more, further down each user waits less."""
    if door.variants is None:
        return refused_chart(door, TITLE, QUESTION)
    rows, tpot = door.variants.rows, numbers(door.variants, "TPOT")
    yields, rates = numbers(door.variants, "Throughput of a GPU"), numbers(door.variants, "Throughput,")
    points = [
        (name_of(row), 1e3 * t, y, row.is_here)
        for row, t, y in zip(rows, tpot, yields, strict=True)
        if t is not None and y is not None
    ]
    longest = max((t for _, t, _, _ in points), default=1.0)
    most = max((y for _, _, y, _ in points), default=1.0)
    figure = {
        "data": [_point(point, symbol) for point, symbol in zip(points, cycle(_SYMBOLS))],
        "layout": layout(
            HEIGHT_PX,
            legend=legend_above(),
            margin={"l": 64, "r": 20, "t": 96, "b": 48},
            xaxis=linear_axis("Output tokens a second of each GPU", most, range=[0, MARGIN * most]),
            yaxis=linear_axis("Time per output token, ms", longest, range=[0, MARGIN * longest]),
        ),
    }
    cells: list[tuple[Cell, ...]] = [
        (name_of(row), *("" if v[at] is None else v[at] or 0.0 for v in (tpot, yields, rates)), row.note)
        for at, row in enumerate(rows)
    ]
    headings = (
        "way",
        "time per output token (s)",
        "throughput of each GPU (tokens/s)",
        "throughput (tokens/s)",
        "note",
    )
    summary = _summary(points, evaluation)
    return Chart(f"door-{door.id}", TITLE, QUESTION, summary, figure, table_of(headings, cells))


def _point(point: tuple[str, float, float, bool], symbol: str) -> dict[str, Any]:
    """Ways lie close together: each has a sign of its own, named in the legend; the scenario's is filled."""
    label, time_ms, rate, is_here = point
    role = "decode" if is_here else "cache"
    return {
        "type": "scatter",
        "mode": "markers",
        "name": label,
        "x": [rate],
        "y": [time_ms],
        "marker": {
            "color": f"@{role}",
            "size": 12,
            "symbol": symbol if is_here else f"{symbol}-open",
            "line": {"color": f"@{role}", "width": 2},
        },
        "hovertemplate": f"{label}: %{{y:.4~g}} ms a token, %{{x:,.4~g}} tokens/s of each GPU<extra></extra>",
    }


def _summary(points: list[tuple[str, float, float, bool]], evaluation: Evaluation) -> str:
    name = evaluation.deployment.architecture.name
    if not points:
        return f"No way of using these GPUs holds {name}."
    quick, most = min(points, key=lambda p: p[1]), max(points, key=lambda p: p[2])
    return (
        f"Of {len(points):,} ways to serve {name}, {quick[0]} is fastest for a user, a token in "
        f"{quantity(quick[1] / 1e3, 's', 3)}; {most[0]} yields most of each GPU, {quantity(most[2], 'tokens/s', 3)}."
    )
