"""The charts of the workbench, in their order, by id."""

from collections.abc import Callable, Mapping

from app.calc.evaluation import Evaluation
from app.charts.batch_chart import batch_chart
from app.charts.context_chart import context_chart
from app.charts.doors.all import DOOR_CHARTS, chart_of
from app.charts.figure import Chart
from app.charts.frontier_chart import frontier_chart
from app.charts.gap_chart import gap_chart
from app.charts.goodput_chart import goodput_chart
from app.charts.memory_chart import memory_chart
from app.charts.roofline_chart import roofline_chart
from app.charts.time_chart import time_chart

Maker = Callable[[Evaluation, bool], Chart]
CHARTS: Mapping[str, Maker] = {
    "gap": lambda evaluation, binary: gap_chart(evaluation),
    "roofline": lambda evaluation, binary: roofline_chart(evaluation),
    "batch": lambda evaluation, binary: batch_chart(evaluation),
    "memory": lambda evaluation, binary: memory_chart(evaluation, binary=binary),
    "frontier": lambda evaluation, binary: frontier_chart(evaluation),
    "time": lambda evaluation, binary: time_chart(evaluation),
    "context": lambda evaluation, binary: context_chart(evaluation, binary=binary),
}
GOODPUT, DOOR = "goodput", "door-"
NAMES = frozenset({*CHARTS, GOODPUT, *(f"{DOOR}{door}" for door in DOOR_CHARTS)})
"""Every chart of a scenario that can be asked for by its id."""


def all_charts(evaluation: Evaluation, *, binary: bool = False) -> list[Chart]:
    """Every chart of the workbench; sizes in GiB where `binary`. Goodput is drawn where a target is set."""
    charts = [make(evaluation, binary) for make in CHARTS.values()]
    return charts if evaluation.goodput is None else [*charts, goodput_chart(evaluation)]


def chart_named(name: str, evaluation: Evaluation, *, binary: bool = False) -> Chart | None:
    """The chart of that id, on the workbench or beside a door; None where the scenario has none such."""
    if name in CHARTS:
        return CHARTS[name](evaluation, binary)
    if name == GOODPUT:
        return None if evaluation.goodput is None else goodput_chart(evaluation)
    door = next((door for door in evaluation.doors if f"{DOOR}{door.id}" == name), None)
    return None if door is None else chart_of(door, evaluation, binary=binary)
