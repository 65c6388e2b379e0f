"""Recorded readings at the edge: the window that is asked for, and the recorder where there is a database."""

import re
from datetime import UTC, datetime, timedelta
from typing import Final

from app.recording.figures import LONGEST_WINDOW, Series, recorded_series
from app.recording.recorder import Recorder
from app.refusal import Refusal
from app.settings import Settings
from app.web.problem import ProblemError, invalid
from app.web.services import Services

WINDOWS: Final = (1.0, 6.0, 24.0, 168.0)
"""Hours that are offered; the first is what is shown when none are asked for."""
MOST_HOURS: Final = LONGEST_WINDOW.total_seconds() / 3600
_HOURS = re.compile(r"[0-9]{1,6}(\.[0-9]{1,6})?")


def hours_of(text: str, settings: Settings) -> float:
    """The hours that a person typed; the first window where nothing was.

    Raises:
        ProblemError: 422, no number, none at all, or more than a download covers.
    """
    typed = text.strip()
    if not typed:
        return min(WINDOWS[0], settings.record_keep_hours)
    hours = float(typed) if _HOURS.fullmatch(typed) else 0.0
    if not 0 < hours <= MOST_HOURS:
        raise invalid([Refusal("hours", f"Must be a number of hours, more than 0 and at most {MOST_HOURS:g}.")])
    return hours


def recorded_lines(services: Services, hours: float) -> tuple[Series, ...]:
    """What was recorded in the last hours, as lines.

    Raises:
        StoreError: as in `Samples`.
    """
    end, settings = datetime.now(UTC), services.settings
    apart_s = max(settings.record_every_s, settings.server_interval_s)  # A server is read less often than a card.
    return recorded_series(services.samples, end - timedelta(hours=hours), end, apart_s)


def recorder_of(services: Services) -> Recorder:
    """The recorder.

    Raises:
        ProblemError: 503, there is no sound database to record to.
    """
    if services.recorder is None:
        raise ProblemError(503, "Nothing can be recorded: the database needs its operator.")
    return services.recorder
