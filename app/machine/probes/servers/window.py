"""The last seconds of a server: what it counted from scrape to scrape, kept small, begun anew when the server was."""

from collections import deque
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import TypeVar

from app.machine.probes.reading import Absence
from app.machine.probes.servers.adapter import Selector
from app.machine.probes.servers.tally import Observed, Tally, merged, observed_between

K = TypeVar("K", bound=Hashable)


@dataclass(frozen=True, slots=True)
class Growth:
    """By how much the series of a counter grew together, and how many of them were there to be compared."""

    total: float = 0.0
    series: int = 0

    @property
    def mean(self) -> float:
        """The growth of one series; zero where there is none."""
        return self.total / self.series if self.series else 0.0


def growth(before: Mapping[K, float], after: Mapping[K, float]) -> Growth | None:
    """The growth of the series that both scrapes have; None if one of them fell, so that it was set back between.

    A series that appears counts from the value that it is first seen with, for nobody knows when it came by it; what
    a series that vanished counted last is lost.
    """
    total, series = 0.0, 0
    for key in after.keys() & before.keys():
        step = after[key] - before[key]
        if step < 0:
            return None
        total += step
        series += 1
    return Growth(total, series)


WINDOW_S = 15.0
"""So long that a 99th percentile has something to stand on, so short that the page follows a change of load."""

MOST_STEPS = 60
GAP_S = 60.0
"""Scrapes further apart than this are not compared: the mean of so long a time says nothing of the present."""


@dataclass(frozen=True, slots=True)
class _Step:
    """What was counted from one scrape to the next."""

    ended_at_s: float
    seconds: float
    counters: Mapping[Selector, Growth]
    histograms: Mapping[Selector, Observed]


class Window:
    """The growth of counters and histograms over the steps between the scrapes of the last `WINDOW_S` seconds.

    Of the scrapes themselves only the newest is kept. When any count has fallen, the server began anew: what was
    before is forgotten, and the new counts are where the next step starts.
    """

    def __init__(self) -> None:
        self._steps: deque[_Step] = deque(maxlen=MOST_STEPS)
        self._newest: Tally | None = None
        self._scraped_at_s = 0.0
        self._absence: Absence | None = Absence.NEEDS_TWO_SAMPLES

    @property
    def absence(self) -> Absence | None:
        """Why there is nothing to measure by yet; None where there is."""
        return self._absence

    @property
    def seconds(self) -> float | None:
        """The time between the oldest and the newest scrape that are compared."""
        return sum(step.seconds for step in self._steps) or None

    def add(self, tally: Tally, at_s: float) -> None:
        """Takes in the scrape of the instant `at_s` (monotonic, seconds)."""
        before, seconds = self._newest, at_s - self._scraped_at_s
        self._newest, self._scraped_at_s = tally, at_s
        if before is None or not 0 < seconds <= GAP_S:
            self._begin_anew(Absence.NEEDS_TWO_SAMPLES)
        elif (step := _step(before, tally, at_s, seconds)) is None:
            self._begin_anew(Absence.COUNTER_RESET)
        else:
            self._absence = None
            self._steps.append(step)
            while len(self._steps) > 1 and self._steps[0].ended_at_s - self._steps[0].seconds < at_s - WINDOW_S:
                self._steps.popleft()

    def growths(self, selector: Selector) -> list[tuple[Growth, float]]:
        """The growth of a counter in each step that has it, with the seconds of the step."""
        return [(step.counters[selector], step.seconds) for step in self._steps if selector in step.counters]

    def observed(self, selector: Selector) -> Observed | None:
        """All that a histogram observed in the window; None where no step has it."""
        parts = [step.histograms[selector] for step in self._steps if selector in step.histograms]
        return merged(parts) if parts else None

    def _begin_anew(self, absence: Absence) -> None:
        self._steps.clear()
        self._absence = absence


def _step(before: Tally, after: Tally, at_s: float, seconds: float) -> _Step | None:
    """What was counted between two scrapes; None if anything fell, or the process is another one."""
    if None not in (started := (before.started_at_s, after.started_at_s)) and started[0] != started[1]:
        return None
    counters: dict[Selector, Growth] = {}
    histograms: dict[Selector, Observed] = {}
    for selector in after.counters.keys() & before.counters.keys():
        grown = growth(before.counters[selector], after.counters[selector])
        if grown is None:
            return None
        counters[selector] = grown
    for selector in after.histograms.keys() & before.histograms.keys():
        old, new = before.histograms[selector], after.histograms[selector]
        parts: list[Observed] = []
        for key in new.keys() & old.keys():
            if (part := observed_between(old[key], new[key])) is None:
                return None
            parts.append(part)
        if parts:
            histograms[selector] = merged(parts)
    return _Step(at_s, seconds, counters, histograms)
