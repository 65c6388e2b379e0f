"""The charts of the workbench, in their order, by id."""

from collections.abc import Callable, Mapping

from app.calc.evaluation import Evaluation
from app.charts.batch_chart import batch_chart
from app.charts.context_chart import context_chart
from app.charts.figure import Chart
from app.charts.frontier_chart import frontier_chart
from app.charts.gap_chart import gap_chart
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


def all_charts(evaluation: Evaluation, *, binary: bool = False) -> list[Chart]:
    """Every chart of one evaluation; sizes in GiB where `binary`."""
    return [make(evaluation, binary) for make in CHARTS.values()]
