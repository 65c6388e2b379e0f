"""The charts of the workbench, in their order, by id."""

from collections.abc import Callable, Mapping

from app.calc.evaluate import Evaluation
from app.calc.optimize.registry import SPECS
from app.features.optimizations.charts.gallery import PREFIX, optimization_chart
from app.features.workbench.charts.frontier import frontier_chart
from app.features.workbench.charts.goodput import goodput_chart
from app.features.workbench.charts.memory import memory_chart
from app.features.workbench.charts.roofline import roofline_chart
from app.features.workbench.charts.sweeps import batch_chart, context_chart
from app.features.workbench.charts.times import gap_chart, time_chart
from app.web.figure import Chart

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
GOODPUT = "goodput"
NAMES = frozenset({*CHARTS, GOODPUT, *(f"{PREFIX}{spec.id}" for spec in SPECS)})
"""Every chart of a scenario that can be asked for by its id."""


def all_charts(evaluation: Evaluation, *, binary: bool = False) -> list[Chart]:
    """Every chart of the workbench; sizes in GiB where `binary`. Goodput is drawn where a target is set."""
    charts = [make(evaluation, binary) for make in CHARTS.values()]
    return charts if evaluation.goodput is None else [*charts, goodput_chart(evaluation)]


def chart_named(name: str, evaluation: Evaluation, *, binary: bool = False) -> Chart | None:
    """The chart of that id, on the workbench or beside an optimization; None where the scenario has none such."""
    if name in CHARTS:
        return CHARTS[name](evaluation, binary)
    if name == GOODPUT:
        return None if evaluation.goodput is None else goodput_chart(evaluation)
    found = next((found for found in evaluation.optimizations if f"{PREFIX}{found.id}" == name), None)
    return None if found is None else optimization_chart(found, evaluation, binary=binary)
