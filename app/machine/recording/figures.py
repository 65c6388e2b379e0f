"""What is kept of a round of readings, numbers by name; and the same as series and as CSV."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import chain, count
from typing import Any

from app.checkpoint.text import csv_text
from app.machine.probes.accelerator import CardReadings, MigInstance
from app.machine.probes.reading import units_of
from app.machine.probes.servers.readings import ServerReadings
from app.machine.probes.snapshot import HostReadings, ProbeSnapshot
from app.store.samples import Sample, Samples

CARD_FIGURES = (
    "memory_used_bytes",
    "memory_total_bytes",
    "dram_activity_percent",
    "tensor_activity_percent",
    "gpu_utilization_percent",
    "power_draw_w",
    "temperature_c",
    "sm_clock_mhz",
)
INSTANCE_FIGURES = CARD_FIGURES[:4]
HOST_FIGURES = ("cpu_percent", "memory_available_bytes")
SERVER_FIGURES = (
    "running",
    "waiting",
    "kv_cache_usage",
    "output_tokens_per_s",
    "prompt_tokens_per_s",
    "ttft_p50_s",
    "ttft_p99_s",
    "itl_p50_s",
    "itl_p99_s",
    "flops_per_s",
    "bytes_per_s",
)
UNITS: dict[str, str] = {
    name: units_of(kind)[name]
    for kind, names in (
        (CardReadings, CARD_FIGURES),
        (HostReadings, HOST_FIGURES),
        (ServerReadings, SERVER_FIGURES),
    )
    for name in names
}
"""The unit of each figure, "" where it is a count or a share, in the order in which figures are shown."""


def samples_of(snapshots: Iterable[ProbeSnapshot]) -> tuple[Sample, ...]:
    """A sample of each source that was read just now and has any of the figures.

    Sources are "nvidia/0" for a card, by the driver's order, "nvidia/0/1" for an instance on it, "host", and "server-1"
    for the first server of the round, whatever the operator calls it. An absent source, and one whose snapshot is an
    earlier one, gives nothing: what was not measured is not recorded.
    """
    numbers = count(1)
    named = [
        (f"server-{next(numbers)}" if snapshot.kind == "server" else snapshot.source, snapshot)
        for snapshot in snapshots
    ]
    return tuple(
        Sample(snapshot.taken_at, source, figures)
        for name, snapshot in named
        if snapshot.state == "ok" and snapshot.missed_polls == 0
        for source, figures in _parts_of(name, snapshot)
        if figures
    )


def _parts_of(name: str, snapshot: ProbeSnapshot) -> Iterator[tuple[str, dict[str, float]]]:
    for card in snapshot.cards:
        yield f"{name}/{card.index}", _present(card, CARD_FIGURES)
        for instance in card.mig_instances:
            yield f"{name}/{card.index}/{instance.index}", _present(instance, INSTANCE_FIGURES)
    if snapshot.host is not None:
        yield name, _present(snapshot.host, HOST_FIGURES)
    if snapshot.server is not None:
        yield name, _present(snapshot.server, SERVER_FIGURES)


def _present(
    readings: CardReadings | MigInstance | HostReadings | ServerReadings, names: Iterable[str]
) -> dict[str, float]:
    values: dict[str, Any] = {name: getattr(readings, name).value for name in names}
    return {name: value for name, value in values.items() if value is not None}


GAP_INTERVALS = 3
MOST_POINTS = 600
_ORDER = {name: place for place, name in enumerate(UNITS)}


@dataclass(frozen=True, slots=True)
class Series:
    """The values of one figure of one source in `unit`, by time; None where the line is broken."""

    source: str
    figure: str
    unit: str
    times: tuple[datetime, ...]
    values: tuple[float | None, ...]


@dataclass(slots=True)
class _Line:
    times: list[datetime] = field(default_factory=list)
    values: list[float | None] = field(default_factory=list)

    def add(self, moment: datetime, value: float, interval: timedelta) -> None:
        if self.times and moment - self.times[-1] > GAP_INTERVALS * interval:
            self.times.append(self.times[-1] + interval)
            self.values.append(None)
        self.times.append(moment)
        self.values.append(value)


def recorded_series(
    samples: Samples,
    start: datetime,
    end: datetime,
    every_s: float,
    source: str | None = None,
    most_points: int = MOST_POINTS,
) -> tuple[Series, ...]:
    """The lines of what was recorded from `start` to before `end`, every `every_s` seconds, thinned to `most_points`.

    Raises:
        StoreError: as in `Samples`.
    """
    slice_s = (end - start).total_seconds() / max(most_points - 1, 1)
    return series_of(samples.between(start, end, source, most_points), max(every_s, slice_s))


def series_of(samples: Iterable[Sample], interval_s: float) -> tuple[Series, ...]:
    """The lines of samples in order of their times, by source and then in the order of the figures.

    A line is broken where its figure is missing for more than three times `interval_s`, the seconds that lie between
    two samples where nothing is amiss.
    """
    interval = timedelta(seconds=interval_s)
    lines: dict[tuple[str, str], _Line] = {}
    for sample in samples:
        for figure, value in sample.figures.items():
            lines.setdefault((sample.source, figure), _Line()).add(sample.taken_at, value, interval)
    return tuple(
        Series(source, figure, UNITS.get(figure, ""), tuple(line.times), tuple(line.values))
        for (source, figure), line in sorted(lines.items(), key=_place)
    )


def _place(item: tuple[tuple[str, str], _Line]) -> tuple[str, int, str]:
    (source, figure), _ = item
    return source, _ORDER.get(figure, len(_ORDER)), figure


COLUMNS = ("taken_at", "source", "figure", "value", "unit")
LONGEST_WINDOW = timedelta(days=7)


def csv_pieces(samples: Samples, start: datetime, end: datetime) -> Iterator[str]:
    """The text of what was recorded from `start` to before `end`: a header, then a line for each figure.

    The first rows are read at once, so that a store that fails says so before anything was sent.

    Raises:
        ValueError: the window is empty or longer than `LONGEST_WINDOW`.
        StoreError: as in `Samples`; later ones come out of the iterator.
    """
    if not timedelta(0) < end - start <= LONGEST_WINDOW:
        raise ValueError(f"A download covers at most {LONGEST_WINDOW.days} days, and more than none.")
    batches = samples.stream(start, end)
    first = next(batches, ())
    return chain((csv_text([COLUMNS]),), (csv_text(_lines_of(batch)) for batch in chain((first,), batches)))


def _lines_of(batch: Iterable[Sample]) -> Iterator[tuple[str | float, ...]]:
    for sample in batch:
        taken_at = sample.taken_at.isoformat(timespec="milliseconds")
        for figure, value in sample.figures.items():
            yield taken_at, sample.source, figure, value, UNITS.get(figure, "")
