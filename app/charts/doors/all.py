"""The chart of every door, by its id, in the order in which doors are told."""

from collections.abc import Callable, Mapping
from dataclasses import replace

from app.calc.doors.door import Door, DoorId
from app.calc.evaluation import Evaluation
from app.charts.doors.attention_chart import attention_chart
from app.charts.doors.batching_chart import batching_chart
from app.charts.doors.binary_sizes import in_binary, sizes_of
from app.charts.doors.chunked_prefill_chart import chunked_prefill_chart
from app.charts.doors.disaggregation_chart import disaggregation_chart
from app.charts.doors.newer_card_chart import newer_card_chart
from app.charts.doors.paging_chart import paging_chart
from app.charts.doors.parallelism_chart import parallelism_chart
from app.charts.doors.prefix_caching_chart import prefix_caching_chart
from app.charts.doors.quantization_chart import quantization_chart
from app.charts.doors.speculative_chart import speculative_chart
from app.charts.figure import Chart

DOOR_CHARTS: Mapping[DoorId, Callable[[Door, Evaluation], Chart]] = {
    DoorId.QUANTIZATION: quantization_chart,
    DoorId.ATTENTION: attention_chart,
    DoorId.PAGING: paging_chart,
    DoorId.BATCHING: batching_chart,
    DoorId.PREFIX_CACHING: prefix_caching_chart,
    DoorId.CHUNKED_PREFILL: chunked_prefill_chart,
    DoorId.SPECULATIVE: speculative_chart,
    DoorId.DISAGGREGATION: disaggregation_chart,
    DoorId.PARALLELISM: parallelism_chart,
    DoorId.NEWER_CARD: newer_card_chart,
}


def door_charts(evaluation: Evaluation) -> list[Chart]:
    """The chart of each door of a scenario."""
    return [chart_of(door, evaluation) for door in evaluation.doors]


def chart_of(door: Door, evaluation: Evaluation, *, binary: bool = False) -> Chart:
    """The chart of one door; its sentence says sizes in GiB where `binary`."""
    made = DOOR_CHARTS[door.id](door, evaluation)
    return replace(made, summary=in_binary(made.summary, sizes_of(door))) if binary else made
