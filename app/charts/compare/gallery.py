"""The charts of a comparison, in their order, by id."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from app.charts.compare.memory import memory
from app.charts.compare.roofline import roofline
from app.charts.compare.time import time
from app.charts.compare.tradeoff import tradeoff
from app.charts.figure import Chart
from app.compare.plans import Plan


class Maker(Protocol):
    """Draws plans, measured against the one at `base`."""

    def __call__(self, plans: Sequence[Plan], base: int, *, binary: bool) -> Chart:
        """The chart."""
        ...


COMPARED: Mapping[str, Maker] = {
    "compare-roofline": roofline,
    "compare-tradeoff": tradeoff,
    "compare-memory": memory,
    "compare-time": time,
}


def compared_charts(plans: Sequence[Plan], base: int, *, binary: bool) -> list[Chart]:
    """Every chart of the plans; sizes in GiB where `binary`."""
    return [make(plans, base, binary=binary) for make in COMPARED.values()]
