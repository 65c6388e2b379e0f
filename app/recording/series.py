"""Recorded samples as lines of a chart: one for each figure of each source, broken where nothing was recorded."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from app.recording.figures import UNITS
from app.store.samples import Sample, Samples

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
