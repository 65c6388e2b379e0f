"""How much of the room that a sequence takes holds tokens, by how the room is set aside."""

from typing import Any

from app.calc.doors.door import Door, Row
from app.calc.evaluation import Evaluation
from app.calc.notation import significant
from app.charts.doors.variants import HEIGHT_PX, name_of, numbers, refused_chart
from app.charts.figure import Chart, layout, legend_above, linear_axis, table_of

TITLE, QUESTION = "What a sequence’s room holds", "How much of what is set aside is ever used?"
WHOLE = 100.0


def paging_chart(door: Door, evaluation: Evaluation) -> Chart:
    """A bar of 100 % for each way to set room aside: tokens, and what stays empty."""
    if door.variants is None:
        return refused_chart(door, TITLE, QUESTION)
    rows = door.variants.rows
    aside, used, room = (
        [value or 0.0 for value in numbers(door.variants, heading)] for heading in ("Set aside", "Used", "Room")
    )
    figure = {
        "data": [
            _bars("Holds tokens", "decode", used, rows, [f"{significant(u, 3)} % used" for u in used]),
            _bars(
                "Set aside and empty",
                "outside",
                [WHOLE - u for u in used],
                rows,
                [f"{significant(WHOLE - u, 3)} % empty, room for {r:,.0f}" for u, r in zip(used, room, strict=True)],
            ),
        ],
        "layout": layout(
            HEIGHT_PX,
            barmode="stack",
            bargap=0.4,
            xaxis=linear_axis("Share of a sequence’s room, %", WHOLE, range=[0, WHOLE]),
            yaxis={"automargin": True, "tickfont": {"color": "@ink"}, "fixedrange": True, "autorange": "reversed"},
            legend=legend_above(),
            margin={"l": 120, "r": 20, "t": 48, "b": 48},
        ),
    }
    cells = [(name_of(row), a, u, WHOLE - u, r, row.note) for row, a, u, r in zip(rows, aside, used, room, strict=True)]
    headings = ("room", "set aside (tokens)", "holds tokens (%)", "empty (%)", "find room (sequences)", "note")
    summary = _summary(rows, used, room, evaluation)
    return Chart(f"door-{door.id}", TITLE, QUESTION, summary, figure, table_of(headings, cells))


def _bars(name: str, role: str, values: list[float], rows: tuple[Row, ...], texts: list[str]) -> dict[str, Any]:
    return {
        "type": "bar",
        "orientation": "h",
        "name": name,
        "x": values,
        "y": [name_of(row).replace(" (", "<br>(") for row in rows],
        "customdata": texts,
        "marker": {"color": f"@{role}", "line": {"color": "@surface", "width": 1}},
        "hovertemplate": "%{y}: %{customdata}<extra></extra>",
    }


def _summary(rows: tuple[Row, ...], used: list[float], room: list[float], evaluation: Evaluation) -> str:
    most = max(range(len(rows)), key=used.__getitem__)
    least = min(range(len(rows)), key=used.__getitem__)
    return (
        f"Of {evaluation.deployment.architecture.name}’s cache {significant(used[most], 3)} % holds tokens as "
        f"{rows[most].label}, and {significant(used[least], 3)} % with {rows[least].label}; "
        f"{room[most]:,.0f} and {room[least]:,.0f} sequences find room."
    )
