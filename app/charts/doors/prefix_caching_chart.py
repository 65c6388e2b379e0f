"""The first token and the room by what a prompt shares, one panel each over the same rows."""

from typing import Any

from app.calc.doors.door import Door, Row
from app.calc.evaluation import Evaluation
from app.calc.notation import quantity
from app.charts.doors.variants import name_of, numbers, refused_chart
from app.charts.figure import Cell, Chart, layout, linear_axis, table_of

TITLE, QUESTION = "First token and room by what is shared", "What does a common prefix save?"
HEIGHT_PX = 460


def prefix_caching_chart(door: Door, evaluation: Evaluation) -> Chart:
    """A bar of TTFT and a bar of room for each preset."""
    if door.variants is None:
        return refused_chart(door, TITLE, QUESTION)
    rows = door.variants.rows
    ttft, room = numbers(door.variants, "TTFT"), numbers(door.variants, "Room")
    found, shared = numbers(door.variants, "Found"), numbers(door.variants, "Shared by all")
    first_ms = [None if value is None else 1e3 * value for value in ttft]
    names = {"automargin": True, "tickfont": {"color": "@ink"}, "fixedrange": True, "autorange": "reversed"}
    figure = {
        "data": [
            _bars("First token", "prefill", first_ms, rows, "y", [quantity(v or 0.0, "s", 3) for v in ttft]),
            _bars("Room", "cache", room, rows, "y2", [f"{v or 0:,.0f} sequences" for v in room]),
        ],
        "layout": layout(
            HEIGHT_PX,
            bargap=0.35,
            showlegend=False,
            xaxis=linear_axis(
                "Time to first token, ms",
                max((v or 0.0 for v in first_ms), default=1.0),
                rangemode="tozero",
                anchor="y",
            ),
            xaxis2=linear_axis(
                "Sequences that find room", max((v or 0.0 for v in room), default=1.0), rangemode="tozero", anchor="y2"
            ),
            yaxis={**names, "domain": [0.6, 1]},
            yaxis2={**names, "domain": [0, 0.4]},
            margin={"l": 130, "r": 20, "t": 16, "b": 48},
        ),
    }
    cells: list[tuple[Cell, ...]] = [
        (name_of(row), *("" if v[at] is None else v[at] or 0.0 for v in (found, shared, ttft, room)), row.note)
        for at, row in enumerate(rows)
    ]
    headings = (
        "prompts",
        "found (% of the prompt)",
        "shared by all (tokens)",
        "time to first token (s)",
        "find room (sequences)",
        "note",
    )
    summary = _summary(rows, ttft, room, evaluation)
    return Chart(f"door-{door.id}", TITLE, QUESTION, summary, figure, table_of(headings, cells))


def _bars(
    name: str, role: str, values: list[float | None], rows: tuple[Row, ...], axis: str, texts: list[str]
) -> dict[str, Any]:
    return {
        "type": "bar",
        "orientation": "h",
        "name": name,
        "x": values,
        "y": [name_of(row).replace(" (", "<br>(") for row in rows],
        "xaxis": axis.replace("y", "x"),
        "yaxis": axis,
        "customdata": texts,
        "marker": {"color": f"@{role}", "line": {"color": "@surface", "width": 1}},
        "hovertemplate": f"%{{y}}, {name.lower()}: %{{customdata}}<extra></extra>",
    }


def _summary(rows: tuple[Row, ...], ttft: list[float | None], room: list[float | None], evaluation: Evaluation) -> str:
    told = [(row.label, t, r or 0.0) for row, t, r in zip(rows, ttft, room, strict=True) if t is not None]
    if not told:
        return f"No first token of {evaluation.deployment.architecture.name} is told here: nothing keeps up with them."
    first, quickest = told[0], min(told, key=lambda entry: entry[1])
    return (
        f"With {first[0]} a first token takes {quantity(first[1], 's', 3)} and {first[2]:,.0f} sequences find room; "
        f"with {quickest[0]} in common, {quantity(quickest[1], 's', 3)} and {quickest[2]:,.0f}."
    )
