"""Ratios of prefill and decode instances: what each GPU yields, and the two times of a user."""

from typing import Any

from app.calc.doors.door import Door, Row
from app.calc.evaluation import Evaluation
from app.calc.notation import quantity, significant
from app.charts.doors.variants import name_of, numbers, refused_chart
from app.charts.figure import Cell, Chart, layout, linear_axis, table_of

TITLE, QUESTION = "Ratios of prefill to decode", "How many should prefill?"
HEIGHT_PX = 520
_PANELS = (
    ("For each GPU", "y", "Tokens/s a GPU", "decode", (0.72, 1.0), "tokens/s", 1.0),
    ("TTFT", "y2", "TTFT, ms", "prefill", (0.36, 0.64), "s", 1e3),
    ("TPOT", "y3", "TPOT, ms", "cache", (0.0, 0.28), "s", 1e3),
)
"""Heading of the variants, axis, its title, colour, where it stands, unit, and what it is drawn times."""


def disaggregation_chart(door: Door, evaluation: Evaluation) -> Chart:
    """Three panels over the ratios: a bar each."""
    if door.variants is None:
        return refused_chart(door, TITLE, QUESTION)
    rows, data, axes = door.variants.rows, [], {}
    for heading, axis, title, role, domain, unit, scale in _PANELS:
        values = numbers(door.variants, heading)
        drawn = [None if value is None else scale * value for value in values]
        data.append(_bars(heading, role, axis, drawn, rows, [quantity(v or 0.0, unit, 3) for v in values]))
        highest = max((value or 0.0 for value in drawn), default=1.0)
        axes[axis.replace("y", "yaxis")] = linear_axis(title, highest, domain=list(domain), rangemode="tozero")
    figure = {
        "data": data,
        "layout": layout(
            HEIGHT_PX,
            bargap=0.4,
            showlegend=False,
            xaxis={"automargin": True, "tickfont": {"color": "@ink"}, "fixedrange": True, "anchor": "y3"},
            margin={"l": 72, "r": 20, "t": 16, "b": 48},
            **axes,
        ),
    }
    told = [numbers(door.variants, heading) for heading, _ in door.variants.columns]
    cells: list[tuple[Cell, ...]] = [
        (name_of(row), *("" if v[at] is None else v[at] or 0.0 for v in told)) for at, row in enumerate(rows)
    ]
    headings = ("ratio", *(f"{heading.lower()} ({unit})" for heading, unit in door.variants.columns))
    return Chart(f"door-{door.id}", TITLE, QUESTION, _summary(door, evaluation), figure, table_of(headings, cells))


def _bars(
    name: str, role: str, axis: str, values: list[float | None], rows: tuple[Row, ...], texts: list[str]
) -> dict[str, Any]:
    return {
        "type": "bar",
        "name": name,
        "x": [name_of(row).replace(" (", "<br>(") for row in rows],
        "y": values,
        "yaxis": axis,
        "customdata": texts,
        "marker": {
            "color": [f"@{role}" if place else "@outside" for place in range(len(rows))],
            "line": {"color": "@surface", "width": 1},
        },
        "hovertemplate": f"%{{x}}, {name}: %{{customdata}}<extra></extra>",
    }


def _summary(door: Door, evaluation: Evaluation) -> str:
    assert door.variants is not None  # noqa: S101  # the caller has looked
    rows, each = door.variants.rows, [v or 0.0 for v in numbers(door.variants, "For each GPU")]
    best = max(range(1, len(rows)), key=each.__getitem__, default=0)
    name = evaluation.deployment.architecture.name
    if not best or not each[0]:
        return f"{rows[0].label} serve {name} with {significant(each[0], 3)} tokens/s of each GPU."
    return (
        f"Of the ratios {rows[best].label} yields most of each GPU: {significant(each[best], 3)} tokens/s of {name}, "
        f"{significant(each[best] / each[0], 3)} times the {significant(each[0], 3)} of the same GPUs together."
    )
