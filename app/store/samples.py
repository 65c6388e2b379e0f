"""The recorded readings: added round by round, thinned for charts, streamed for downloads, pruned; and the time span
for which people asked for them.
"""

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Engine, Integer, Select, and_, cast, delete, func, literal, select, tuple_, union
from sqlalchemy.dialects.sqlite import insert

from app.store.database import read, write
from app.store.errors import UnstorableError
from app.store.tables import (
    FIGURES_MAX_CHARS,
    ONLY_ID,
    SOURCE_MAX_CHARS,
    LiveSample,
    RecorderRow,
    UtcText,
    fitting_json,
)

MOST_ROWS = 1_000_000
PRUNE_BATCH_ROWS = 2_000
STREAM_BATCH_ROWS = 500
DAY_S = 86_400

_SOURCE = re.compile(r"[a-z][a-z0-9/-]*")
_FIGURE = re.compile(r"[a-z][a-z0-9_]{0,63}")
_COLUMNS = (LiveSample.taken_at, LiveSample.source, LiveSample.figures)


@dataclass(frozen=True, slots=True)
class Sample:
    """Numbers of one source at one instant, by the names of their readings, which end in their units."""

    taken_at: datetime
    source: str
    figures: Mapping[str, float]

    def columns(self) -> dict[str, object]:
        """The values of the columns of the same names.

        Raises:
            UnstorableError: the instant has no zone, the source is no short plain word, or a figure no finite number.
        """
        if self.taken_at.tzinfo is None:
            raise UnstorableError("taken_at must have a time zone.")
        if len(self.source) > SOURCE_MAX_CHARS or not _SOURCE.fullmatch(self.source):
            raise UnstorableError("source must be a short word of small letters, digits, - and /.")
        for name, value in self.figures.items():
            if not _FIGURE.fullmatch(name) or not _is_finite(value):
                raise UnstorableError("figures must be finite numbers under the plain names of their readings.")
        figures = fitting_json("figures", self.figures, FIGURES_MAX_CHARS)
        return {"taken_at": self.taken_at, "source": self.source, "figures": figures}


class Samples:
    """The repository of recorded readings: never more than `most_rows`, the newest.

    Every method may raise StoreBusyError, StoreUnavailableError or CorruptStoreError; then nothing was changed.
    """

    def __init__(self, engine: Engine, most_rows: int = MOST_ROWS) -> None:
        self._engine, self._most_rows = engine, most_rows

    def add(self, samples: Sequence[Sample]) -> None:
        """All of them are in the database, or none; what a source is known to have said at an instant stays.

        Raises:
            UnstorableError: as in `Sample.columns`.
        """
        rows = [sample.columns() for sample in samples]
        if not rows:
            return
        with write(self._engine) as session:
            session.execute(insert(LiveSample).on_conflict_do_nothing(), rows)
            # A new row's number is one above the highest, so these are the oldest, found without counting.
            newest = select(func.max(LiveSample.id)).scalar_subquery()
            session.execute(delete(LiveSample).where(LiveSample.id <= newest - self._most_rows))

    def between(
        self, start: datetime, end: datetime, source: str | None = None, most_points: int = 2_000
    ) -> tuple[Sample, ...]:
        """What was recorded from `start` to before `end`, in order, with at most `most_points` (2 or more) a source.

        The time is cut into equal slices, and of each the last sample of every source is kept; beside these, the very
        first of each.
        """
        slices = max(most_points - 1, 1)
        slice_days = max((end - start).total_seconds(), 1e-6) / DAY_S / slices
        days = func.julianday(LiveSample.taken_at) - func.julianday(literal(start, UtcText))
        number = func.min(cast(days / slice_days, Integer), slices - 1)
        during = _during(start, end, source)
        lasts = select(LiveSample.source, func.max(LiveSample.taken_at).label("taken_at")).where(*during)
        firsts = select(LiveSample.source, func.min(LiveSample.taken_at)).where(*during)
        kept = union(lasts.group_by(LiveSample.source, number), firsts.group_by(LiveSample.source)).subquery()
        chosen = select(*_COLUMNS).join(
            kept, and_(LiveSample.taken_at == kept.c.taken_at, LiveSample.source == kept.c.source)
        )
        return self._read(chosen.order_by(LiveSample.taken_at, LiveSample.source))

    def stream(self, start: datetime, end: datetime) -> Iterator[tuple[Sample, ...]]:
        """All that was recorded from `start` to before `end`, in order, in batches.

        Each batch is read in a transaction of its own, so that a slow reader holds nothing up.
        """
        chosen = select(*_COLUMNS).order_by(LiveSample.taken_at, LiveSample.source).limit(STREAM_BATCH_ROWS)
        batch = self._read(chosen.where(*_during(start, end)))
        while batch:
            yield batch
            last = batch[-1]
            # For the second condition alone, SQLite would go through the whole window again.
            behind = tuple_(LiveSample.taken_at, LiveSample.source) > tuple_(
                literal(last.taken_at, UtcText), literal(last.source)
            )
            batch = self._read(chosen.where(*_during(last.taken_at, end), behind))

    def sources(self) -> tuple[str, ...]:
        """Every source of which something is recorded, in order of their names."""
        with read(self._engine) as session:
            return tuple(session.scalars(select(LiveSample.source).distinct().order_by(LiveSample.source)))

    def count(self) -> int:
        """How many rows there are."""
        with read(self._engine) as session:
            return session.scalar(select(func.count()).select_from(LiveSample)) or 0

    def prune(self, before: datetime) -> int:
        """How many rows were deleted: those from before this moment."""
        old = select(LiveSample.id).where(LiveSample.taken_at < before)
        deleted = 0
        # A reader asks first: mostly there is nothing to do, and then no writer has to wait.
        while self._has(old):
            with write(self._engine) as session:
                ids = session.scalars(old.limit(PRUNE_BATCH_ROWS)).all()
                session.execute(delete(LiveSample).where(LiveSample.id.in_(ids)))
            deleted += len(ids)
        return deleted

    def _has(self, rows: Select[int]) -> bool:
        with read(self._engine) as session:
            return session.scalar(rows.limit(1)) is not None

    def _read(self, chosen: Select[datetime, str, str]) -> tuple[Sample, ...]:
        with read(self._engine) as session:
            rows = session.execute(chosen).all()
        return tuple(Sample(taken_at, source, json.loads(figures)) for taken_at, source, figures in rows)


def _during(start: datetime, end: datetime, source: str | None = None) -> tuple[Any, ...]:
    times = (LiveSample.taken_at >= start, LiveSample.taken_at < end)
    return times if source is None else (*times, LiveSample.source == source)


def _is_finite(value: float) -> bool:
    try:
        return not isinstance(value, bool) and math.isfinite(value)
    except (OverflowError, TypeError):  # An integer beyond every float; or no number at all.
        return False


@dataclass(frozen=True, slots=True)
class Span:
    """Recording was asked for at `since` and goes on until `until` (both UTC)."""

    since: datetime
    until: datetime


class RecorderSpan:
    """The repository of that row. A span that is over is none.

    Every method may raise StoreBusyError, StoreUnavailableError or CorruptStoreError; then nothing was changed.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def current(self, now: datetime) -> Span | None:
        """The span that `now` lies in."""
        with read(self._engine) as session:
            return _span_of(session.get(RecorderRow, ONLY_ID), now)

    def start(self, until: datetime, now: datetime) -> Span:
        """The span from now on; one that is under way goes on, and ends at the new moment."""
        with write(self._engine) as session:
            running = _span_of(session.get(RecorderRow, ONLY_ID), now)
            span = Span(running.since if running else now, until)
            session.merge(RecorderRow(id=ONLY_ID, since=span.since, until=span.until))
        return span

    def stop(self) -> None:
        """Nobody asks for recording any more."""
        with write(self._engine) as session:
            session.merge(RecorderRow(id=ONLY_ID, since=None, until=None))


def _span_of(row: RecorderRow | None, now: datetime) -> Span | None:
    if row is None or row.since is None or row.until is None or row.until <= now:
        return None
    return Span(row.since, row.until)
