"""A user's own calibration: how many times slower a benchmark of one's own ran than is expected without it.

The factor is that of a machine whose software is slower: each share of a peak is so many times smaller, each call,
latency and step of the host so many times longer. No share exceeds 1, so a factor below 1 brings times no nearer to
their ceilings than kernels at the vendor's peak would.
"""

from dataclasses import dataclass, replace

from app.calc.expected.calibration import Interval
from app.calc.expected.reach import Efficiency
from app.calc.notation import significant

TOO_FEW = "too few points of your own"
_SIDES = ("decode", "prefill")
_OF_PROMPTS = frozenset({"ttft", "prefill"})
_DIGITS = 3


@dataclass(frozen=True, slots=True)
class OwnFactor:
    """`factor` times slower, from so many `points` of a benchmark.

    Eight measurements of ten lie between `low` and `high` times what is then expected; None where too few were made.
    """

    factor: float
    points: int
    low: float | None = None
    high: float | None = None

    @property
    def interval(self) -> Interval | None:
        """Around the calibrated time; None where none is told."""
        return None if self.low is None or self.high is None else Interval(self.low, self.high, self.points)

    @property
    def counted(self) -> str:
        """The points in words."""
        return f"{self.points:,} {'point' if self.points == 1 else 'points'}"

    @property
    def words(self) -> str:
        """Factor and points."""
        return f"× {significant(self.factor, _DIGITS)} ({self.counted})"


@dataclass(frozen=True, slots=True)
class OwnCalibration:
    """The factors of decode and of prefill times by the user's `name` for them; None leaves a side as it was fitted."""

    name: str
    decode: OwnFactor | None = None
    prefill: OwnFactor | None = None

    @property
    def sides(self) -> dict[str, OwnFactor]:
        """The sides that are calibrated, by what they are called."""
        both = zip(_SIDES, (self.decode, self.prefill), strict=True)
        return {side: factor for side, factor in both if factor is not None}

    @property
    def is_whole(self) -> bool:
        """Whether both sides are calibrated."""
        return len(self.sides) == len(_SIDES)

    @property
    def words(self) -> str:
        """Name, factors and points."""
        told = ", ".join(f"{side} {factor.words}" for side, factor in self.sides.items())
        return f"«{self.name}»: {told}"

    def of_metric(self, metric: str) -> OwnFactor | None:
        """The factor of what a metric's time is made of: prompts, or decode steps."""
        return self.prefill if metric in _OF_PROMPTS else self.decode

    def named_for(self, *sides: str) -> str | None:
        """Name and points, as the source of a figure of these sides; None where none of them is calibrated."""
        found = {side: factor for side, factor in self.sides.items() if side in sides}
        if not found:
            return None
        if len(found) == 1:
            return f"your calibration «{self.name}», {next(iter(found.values())).counted}"
        counts = ", ".join(f"{side} {factor.counted}" for side, factor in found.items())
        return f"your calibration «{self.name}», {counts}"

    @property
    def notice(self) -> str:
        """What a reader must know where expected values are calibrated by it."""
        message = (
            f"The expected times are calibrated by {self.words}. That holds for what was measured: another model, "
            "accelerator, engine or load may be off by another factor."
        )
        if any(factor.factor < 1 for factor in self.sides.values()):
            message += " A kernel that is near the vendor’s peak gets no faster than that."
        return message

    def withheld(self, fitted: str | None) -> str | None:
        """Why an interval is not claimed, where one is not.

        Args:
            fitted: why none comes from published measurements; None where one does.
        """
        reasons = {"decode times": _reason(self.decode, fitted), "prompts": _reason(self.prefill, fitted)}
        if len(set(reasons.values())) == 1:
            return reasons["prompts"]
        return "; ".join(f"of {what}, {reason}" for what, reason in reasons.items() if reason is not None)


def _reason(factor: OwnFactor | None, fitted: str | None) -> str | None:
    if factor is None:
        return fitted
    return TOO_FEW if factor.interval is None else None


def calibrated(efficiency: Efficiency, own: OwnCalibration) -> Efficiency:
    """What a deployment reaches by a user's calibration. The host's part of a request belongs to its prompt."""
    steps = efficiency if own.decode is None else efficiency.slower(own.decode.factor)
    prompts = efficiency if own.prefill is None else efficiency.slower(own.prefill.factor)
    return replace(steps, request_s=prompts.request_s, of_prefill=prompts)
