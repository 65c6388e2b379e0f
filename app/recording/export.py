"""Recorded readings as comma-separated values, in long form and piece by piece, however many there are."""

from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from itertools import chain

from app.csv_text import csv_text
from app.recording.figures import UNITS
from app.store.samples import Sample, Samples

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
