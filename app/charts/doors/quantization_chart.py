"""What narrower numbers save: bytes of a step and time of a token by format, as shares of 16 bits everywhere."""

from typing import Any

from app.calc.doors.door import Door, Row
from app.calc.evaluation import Evaluation
from app.calc.notation import quantity, significant
from app.charts.doors.variants import HEIGHT_PX, name_of, numbers, refused_chart
from app.charts.figure import Chart, layout, legend_above, linear_axis, table_of

TITLE, QUESTION = "Bytes and time by format", "How much of what the bits save becomes time?"
ROW_PX, FRAME_PX = 64, 130
_SERIES = (
    ("Weights", "Weights", "weights", "B"),
    ("Read in a step", "Read in a step", "ffn", "B"),
    ("TPOT, ceiling", "TPOT, ceiling", "roof", "s"),
    ("TPOT, expected", "TPOT, expected", "decode", "s"),
)


def quantization_chart(door: Door, evaluation: Evaluation) -> Chart:
    """Grouped bars, 16 bits everywhere being 100 %; the first row of the door's variants is the yardstick."""
    if door.variants is None:
        return refused_chart(door, TITLE, QUESTION)
    rows, series = door.variants.rows, []
    for heading, name, role, unit in _SERIES:
        values = numbers(door.variants, heading)
        if values[0]:
            series.append((name, role, unit, values))
    highest = max(100 * (value or 0.0) / (values[0] or 1.0) for _, _, _, values in series for value in values)
    figure = {
        "data": [_bars(name, role, unit, values, rows) for name, role, unit, values in series],
        "layout": layout(
            max(HEIGHT_PX, FRAME_PX + ROW_PX * len(rows)),
            barmode="group",
            bargap=0.3,
            xaxis=linear_axis("Share of 16 bits, %", highest, rangemode="tozero"),
            yaxis={"automargin": True, "tickfont": {"color": "@ink"}, "fixedrange": True, "autorange": "reversed"},
            legend=legend_above(),
            margin={"l": 90, "r": 20, "t": 72, "b": 48},
        ),
    }
    cells = [
        (name_of(row), *(_cell(values[at]) for _, _, _, values in series), row.note) for at, row in enumerate(rows)
    ]
    headings = ("format", *(f"{name} ({unit})" for name, _, unit, _ in series), "note")
    return Chart(f"door-{door.id}", TITLE, QUESTION, _summary(door, evaluation), figure, table_of(headings, cells))


def _cell(value: float | None) -> float | str:
    return "" if value is None else value


def _bars(name: str, role: str, unit: str, values: list[float | None], rows: tuple[Row, ...]) -> dict[str, Any]:
    first = values[0] or 1.0
    return {
        "type": "bar",
        "name": name,
        "orientation": "h",
        "y": [name_of(row).replace(" (", "<br>(") for row in rows],
        "x": [None if value is None else 100 * value / first for value in values],
        "customdata": ["" if value is None else quantity(value, unit, 3) for value in values],
        "marker": {"color": f"@{role}", "line": {"color": "@surface", "width": 1}},
        "hovertemplate": f"{name}: %{{customdata}}, %{{x:.3~g}} % of 16 bits<extra></extra>",
    }


def _summary(door: Door, evaluation: Evaluation) -> str:
    """The format with the fewest bytes a step, and what becomes of its time."""
    assert door.variants is not None  # noqa: S101  # the caller has looked
    read = [value or 0.0 for value in numbers(door.variants, "Read in a step")]
    timed = numbers(door.variants, "TPOT, expected")
    if timed[0] is None:
        timed = numbers(door.variants, "TPOT, ceiling")
    at = min(range(len(read)), key=read.__getitem__)
    row, took, first = door.variants.rows[at], timed[at], timed[0]
    text = (
        f"{row.label} reads least: {quantity(read[at], 'B', 3)} in a step of "
        f"{evaluation.deployment.architecture.name}, {significant(100 * read[at] / read[0], 3)} % of 16 bits"
    )
    if took is None or not first:
        return f"{text}."
    return f"{text}; a token takes {quantity(took, 's', 3)}, {significant(100 * took / first, 3)} %."
