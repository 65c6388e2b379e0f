"""Tokens a second in static and in continuous batches, by how the lengths of answers are spread."""

from typing import Any

from app.calc.doors.door import Door
from app.calc.evaluation import Evaluation
from app.calc.notation import significant
from app.charts.doors.variants import HEIGHT_PX, name_of, numbers, refused_chart
from app.charts.figure import Chart, layout, legend_above, linear_axis, table_of

TITLE, QUESTION = "Throughput by spread of the answers", "What does waiting for the longest answer cost?"


def batching_chart(door: Door, evaluation: Evaluation) -> Chart:
    """Two bars a spread: static batches, with the share of places that idle, and places filled as they fall free."""
    if door.variants is None:
        return refused_chart(door, TITLE, QUESTION)
    rows = door.variants.rows
    longest, idle, static, continuous, gain = (
        [value or 0.0 for value in numbers(door.variants, heading)]
        for heading in ("Longest of a batch", "Places idle", "Static", "Continuous", "Gain")
    )
    names = [
        f"{name_of(row).replace(' (', '<br>(')}<br>{significant(share, 3)} % idle"
        for row, share in zip(rows, idle, strict=True)
    ]
    figure = {
        "data": [
            _bars("Static", "outside", static, names, [f"{significant(share, 3)} % idle" for share in idle]),
            _bars("Continuous", "decode", continuous, names, [f"{significant(g, 3)} times static" for g in gain]),
        ],
        "layout": layout(
            HEIGHT_PX,
            barmode="group",
            bargap=0.3,
            xaxis={"automargin": True, "tickfont": {"color": "@ink"}, "fixedrange": True},
            yaxis=linear_axis("Output tokens a second", max(*static, *continuous), rangemode="tozero"),
            legend=legend_above(),
            margin={"l": 64, "r": 20, "t": 48, "b": 72},
        ),
    }
    cells = [
        (name_of(row), *values)
        for row, values in zip(rows, zip(longest, idle, static, continuous, gain, strict=True), strict=True)
    ]
    headings = (
        "answers",
        "longest of a batch (tokens)",
        "places idle (%)",
        "static (tokens/s)",
        "continuous (tokens/s)",
        "gain (times)",
    )
    worst = max(range(len(rows)), key=gain.__getitem__)
    users = evaluation.measures.memory.served_sequences
    summary = (
        f"With {rows[worst].label} lengths the longest of a static batch of {users:,} has "
        f"{significant(longest[worst], 3)} tokens and {significant(idle[worst], 3)} % of its places idle: filling "
        f"them gives {significant(gain[worst], 3)} times the tokens a second."
    )
    if gain[worst] <= 1:
        summary = (
            f"With {users:,} at a time nothing is gained by filling places as they fall free, however long answers are."
        )
    return Chart(f"door-{door.id}", TITLE, QUESTION, summary, figure, table_of(headings, cells))


def _bars(name: str, role: str, values: list[float], names: list[str], texts: list[str]) -> dict[str, Any]:
    return {
        "type": "bar",
        "name": name,
        "x": names,
        "y": values,
        "customdata": texts,
        "marker": {"color": f"@{role}", "line": {"color": "@surface", "width": 1}},
        "hovertemplate": f"{name}: %{{y:,.4~g}} tokens/s, %{{customdata}}<extra></extra>",
    }
