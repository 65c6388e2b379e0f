"""What each kind of attention keeps of a token, and how many sequences then find room."""

from app.calc.doors.door import Door
from app.calc.evaluation import Evaluation
from app.calc.notation import quantity, significant
from app.charts.doors.variants import HEIGHT_PX, name_of, numbers, refused_chart
from app.charts.figure import Chart, layout, log_axis, table_of

TITLE, QUESTION = "Cache of a token by kind of attention", "What does it cost to remember?"


def attention_chart(door: Door, evaluation: Evaluation) -> Chart:
    """A point a kind on a log scale, the room beside it; kinds that are not told have none."""
    if door.variants is None:
        return refused_chart(door, TITLE, QUESTION)
    rows, kept = door.variants.rows, numbers(door.variants, "Cache a token")
    rooms, intensities = numbers(door.variants, "Room"), numbers(door.variants, "Attention in decode")
    drawn = [at for at, value in enumerate(kept) if value]
    sizes = [kept[at] or 1.0 for at in drawn]
    texts = [f"room for {int(rooms[at] or 0):,}" for at in drawn]
    low, high = min(sizes, default=1.0), max(sizes, default=10.0)
    figure = {
        "data": [
            {
                "type": "scatter",
                "mode": "markers+text",
                "name": "Cache that a token adds",
                "showlegend": False,
                "x": sizes,
                "y": [name_of(rows[at]).replace(" (", "<br>(") for at in drawn],
                "customdata": [quantity(kept[at] or 0.0, "B", 3) for at in drawn],
                "text": texts,
                "textposition": "top center",
                "textfont": {"color": "@ink", "size": 12},
                "cliponaxis": False,
                "marker": {
                    "color": ["@decode" if rows[at].is_here else "@cache" for at in drawn],
                    "size": 14,
                    "symbol": ["diamond" if rows[at].is_here else "circle" for at in drawn],
                    "line": {"color": "@surface", "width": 1},
                },
                "hovertemplate": "%{customdata} a token, %{text} sequences<extra></extra>",
            }
        ],
        "layout": layout(
            HEIGHT_PX,
            xaxis=log_axis("Cache that a token adds, B", low / 8, high * 8),
            yaxis={
                "automargin": True,
                "tickfont": {"color": "@ink"},
                "gridcolor": "@grid",
                "fixedrange": True,
                "autorange": "reversed",
            },
            margin={"l": 100, "r": 20, "t": 24, "b": 48},
        ),
    }
    cells = [
        (name_of(row), *("" if v[at] is None else v[at] or 0.0 for v in (kept, rooms, intensities)), row.note)
        for at, row in enumerate(rows)
    ]
    headings = ("attention", "cache a token (B)", "room (sequences)", "attention in decode (FLOP/B)", "note")
    return Chart(f"door-{door.id}", TITLE, QUESTION, _summary(door, evaluation), figure, table_of(headings, cells))


def _summary(door: Door, evaluation: Evaluation) -> str:
    assert door.variants is not None  # noqa: S101  # the caller has looked
    told = [
        (row.label, value, row.is_here)
        for row, value in zip(door.variants.rows, numbers(door.variants, "Cache a token"), strict=True)
        if value
    ]
    if not told:
        return "No layer keeps a row for each token."
    most, least = max(told, key=lambda entry: entry[1]), min(told, key=lambda entry: entry[1])
    text = (
        f"A token of {evaluation.deployment.architecture.name} would keep {quantity(most[1], 'B', 3)} as {most[0]} and "
        f"{quantity(least[1], 'B', 3)} as {least[0]}, {significant(most[1] / least[1], 3)} times less"
    )
    here = next((entry for entry in told if entry[2]), None)
    return f"{text}; here it is {here[0]}, {quantity(here[1], 'B', 3)}." if here else f"{text}."
