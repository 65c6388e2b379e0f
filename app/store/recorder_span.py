"""From when until when people asked for the live readings to be recorded: one row, so that all processes agree."""

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Engine

from app.store.session import read, write
from app.store.tables import ONLY_ID, RecorderRow


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
