"""What the charts of doors read off a table of variants, and what they draw of a door that is not told."""

from app.calc.doors.door import Door, Row, Variants
from app.charts.figure import Chart, layout, table_of

HEIGHT_PX = 380
HERE = "this scenario"


def numbers(variants: Variants, heading: str) -> list[float | None]:
    """The column whose heading starts so, one number a row; None everywhere where there is no such column."""
    at = next((place for place, (name, _) in enumerate(variants.columns) if name.startswith(heading)), None)
    return [None if at is None else row.values[at] for row in variants.rows]


def name_of(row: Row) -> str:
    """The row's name, with a sign at the scenario's own that is not a colour."""
    return f"{row.label} ({HERE})" if row.is_here else row.label


def refused_chart(door: Door, title: str, question: str) -> Chart:
    """A chart without marks, of a door that says why it is not told."""
    reason = door.refused or "There is nothing to compare."
    figure = {"data": [], "layout": layout(HEIGHT_PX)}
    return Chart(f"door-{door.id}", title, question, reason, figure, table_of(("not told",), ((reason,),)))
