"""The same scenario on other cards: throughput beside bandwidth, both as multiples of this card."""

from typing import Any

from app.calc.doors.door import Door, Row
from app.calc.evaluation import Evaluation
from app.calc.notation import quantity, significant
from app.charts.doors.variants import HEIGHT_PX, name_of, numbers, refused_chart
from app.charts.figure import Cell, Chart, layout, legend_above, linear_axis, table_of
from app.charts.plain import plain

TITLE, QUESTION = "Other cards, as multiples of this one", "Does twice the bandwidth give twice the tokens?"
ROW_PX = 38
FRAME_PX = 130


def newer_card_chart(door: Door, evaluation: Evaluation) -> Chart:
    """A bar of throughput a card, and a mark where its bandwidth would put it."""
    if door.variants is None:
        return refused_chart(door, TITLE, QUESTION)
    rows, here = door.variants.rows, [row.is_here for row in door.variants.rows].index(True)
    columns = [[v or 0.0 for v in numbers(door.variants, heading)] for heading in ("Throughput,", "Bandwidth")]
    rates, bandwidths = ([value / values[here] for value in values] for values in columns)
    figure = {
        "data": [
            _bars("Throughput", rates, columns[0], rows),
            _marks("Bandwidth", bandwidths, columns[1], rows),
        ],
        "layout": layout(
            max(HEIGHT_PX, FRAME_PX + ROW_PX * len(rows)),
            bargap=0.35,
            xaxis=linear_axis("Times this card", max(*rates, *bandwidths), rangemode="tozero"),
            yaxis={"automargin": True, "tickfont": {"color": "@ink"}, "fixedrange": True, "autorange": "reversed"},
            legend=legend_above(),
            margin={"l": 110, "r": 20, "t": 48, "b": 48},
        ),
    }
    cells: list[tuple[Cell, ...]] = [
        (name_of(row), *(values[at] for values in (*columns, rates, bandwidths)), row.note)
        for at, row in enumerate(rows)
    ]
    headings = ("card", "throughput (tokens/s)", "bandwidth (B/s)", "throughput, times here", "bandwidth, times here")
    summary = _summary(rows, here, rates, bandwidths, evaluation)
    return Chart(f"door-{door.id}", TITLE, QUESTION, summary, figure, table_of((*headings, "note"), cells))


def _names(rows: tuple[Row, ...]) -> list[str]:
    """In two lines where a name says which of several it is, so that bars keep their width on a telephone."""
    names = (f"{plain(row.label)} (here)" if row.is_here else plain(row.label) for row in rows)
    return [name.replace(" (", "<br>(", 1) for name in names]


def _bars(name: str, ratios: list[float], values: list[float], rows: tuple[Row, ...]) -> dict[str, Any]:
    return {
        "type": "bar",
        "orientation": "h",
        "name": name,
        "x": ratios,
        "y": _names(rows),
        "customdata": [quantity(value, "tokens/s", 3) for value in values],
        "marker": {
            "color": ["@decode" if row.is_here else "@cache" for row in rows],
            "line": {"color": "@surface", "width": 1},
        },
        "hovertemplate": f"{name}: %{{customdata}}, %{{x:.3~g}} times here<extra></extra>",
    }


def _marks(name: str, ratios: list[float], values: list[float], rows: tuple[Row, ...]) -> dict[str, Any]:
    return {
        "type": "scatter",
        "mode": "markers",
        "name": name,
        "x": ratios,
        "y": _names(rows),
        "customdata": [quantity(value, "B/s", 3) for value in values],
        "marker": {"color": "@roof", "size": 11, "symbol": "diamond-open", "line": {"color": "@roof", "width": 2}},
        "hovertemplate": f"{name}: %{{customdata}}, %{{x:.3~g}} times here<extra></extra>",
    }


def _summary(
    rows: tuple[Row, ...], here: int, rates: list[float], bandwidths: list[float], evaluation: Evaluation
) -> str:
    best = max((at for at in range(len(rows)) if at != here), key=rates.__getitem__, default=here)
    wide = f"{significant(bandwidths[best], 3)} times the bandwidth of {rows[here].label}"
    return (
        f"{rows[best].label} has {wide} and serves "
        f"{evaluation.deployment.architecture.name} with {significant(rates[best], 3)} times its throughput."
    )
