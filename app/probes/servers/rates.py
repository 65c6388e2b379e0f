"""From counters to what they counted: growth between two scrapes, and the sign that a server began anew."""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import TypeVar

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
