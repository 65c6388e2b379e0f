"""One quantity of every plan in a row: what is best, and how each stands to the baseline."""

from dataclasses import dataclass
from enum import StrEnum
from math import isclose

from app.calc.output import Better

SAME = 1e-9  # relative


class Level(StrEnum):
    """What kind of figure stands in a row."""

    EXPECTED = "expected"
    CEILING = "ceiling"
    CAPACITY = "capacity"
    INPUT = "input"


class Verdict(StrEnum):
    """How a value stands to the baseline's."""

    BASELINE = "baseline"
    SAME = "same"
    BETTER = "better"
    WORSE = "worse"
    DIFFERENT = "different"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Value:
    """A number with the interval that is claimed for it; None where there is none."""

    mid: float | None
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True)
class Row:
    """One quantity of every plan. `fitting` says which plans fit: one that does not is never called the best."""

    id: str
    label: str
    scope: str
    unit: str
    level: Level
    better: Better
    values: tuple[Value, ...]
    fitting: tuple[bool, ...]

    @property
    def is_equal(self) -> bool:
        """True where all plans have the same number."""
        return all(_same(value.mid, self.values[0].mid) for value in self.values)

    @property
    def best(self) -> tuple[int, ...]:
        """The plans with the best value; none where all are alike, or nothing is better or worse."""
        known = [(i, v.mid) for i, v in enumerate(self.values) if v.mid is not None and self.fitting[i]]
        if self.better is Better.NEITHER or len(known) < 2 or self.is_equal:
            return ()
        top = (max if self.better is Better.HIGHER else min)(mid for _, mid in known)
        return tuple(i for i, mid in known if _same(mid, top))

    def ratio(self, index: int, base: int) -> float | None:
        """The value of a plan ÷ the baseline's; None where one of them is missing or the baseline's is nothing."""
        mid, reference = self.values[index].mid, self.values[base].mid
        return None if mid is None or not reference else mid / reference

    def verdict(self, index: int, base: int) -> Verdict:
        """How a plan stands to the baseline. Where one of them does not fit, no time or rate of it is called better."""
        mid, reference = self.values[index].mid, self.values[base].mid
        if index == base:
            return Verdict.BASELINE
        if mid is None or reference is None:
            return Verdict.UNKNOWN
        if _same(mid, reference):
            return Verdict.SAME
        told_as_if = self.level in (Level.EXPECTED, Level.CEILING) and not (self.fitting[index] and self.fitting[base])
        if self.better is Better.NEITHER or told_as_if:
            return Verdict.DIFFERENT
        return Verdict.BETTER if (mid > reference) is (self.better is Better.HIGHER) else Verdict.WORSE


def _same(one: float | None, other: float | None) -> bool:
    if one is None or other is None:
        return one is other
    return isclose(one, other, rel_tol=SAME)
