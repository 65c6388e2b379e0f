"""How large an overhead is taken to be: laws with an interval and their evidence; what was measured comes first."""

from dataclasses import dataclass, replace

from app.calc.engines.parts import Interval, Overhead, Part, Rank, WeightSpread
from app.calc.units import GIB

GIVEN = "Given with the scenario; what was measured beats what is assumed."


@dataclass(frozen=True, slots=True)
class Law:
    """`factor` × what the physics says + `fixed_gib` + `per_gpu_gib` for each GPU that takes part.

    Eight of ten logs lie between `low` and `high` times that. `n` logs stand behind it, and `{n}` in the evidence.
    """

    fixed_gib: float
    low: float
    high: float
    evidence: str
    factor: float = 1.0
    per_gpu_gib: float = 0.0
    n: int = 0

    @property
    def words(self) -> str:
        """The evidence with the count of its logs."""
        return self.evidence.replace("{n}", str(self.n))

    def interval(self, physical_bytes: float = 0.0, scale: float = 1.0, gpus: int = 0) -> Interval:
        """The interval in bytes."""
        mid = scale * (self.factor * physical_bytes + (self.fixed_gib + gpus * self.per_gpu_gib) * GIB)
        return Interval(mid * self.low, mid, mid * self.high)


@dataclass(frozen=True, slots=True)
class OverheadLaws:
    """The laws of one engine; one without `graphs` captures none.

    Non-framework memory grows with the first peer: collectives keep their buffers. They are small where peers have no
    fabric of their own between them (`over_bus`). `sharing` stands for it where the engine reckons with what is free
    and the machine's other programs hold a part of the same memory.
    """

    activation: Law
    alone: Law
    with_peers: Law
    weights: WeightSpread
    graphs: Law | None = None
    sharing: Law | None = None
    over_bus: Law | None = None

    def non_framework(self, given: float | None, rank: Rank) -> Overhead:
        """That of a GPU alone, of one among several, or of one whose memory is the machine's."""
        gpus = rank.split.gpus
        law = self.alone if gpus == 1 else self.with_peers
        if gpus > 1 and rank.is_bus_linked and self.over_bus is not None:
            law = self.over_bus
        if rank.shares_memory and self.sharing is not None:
            law = self.sharing
        if given is not None:
            return Overhead(Part.NON_FRAMEWORK, Interval.exactly(given), True, True, GIVEN)
        return Overhead(Part.NON_FRAMEWORK, law.interval(gpus=gpus), False, True, law.words)


def found(
    part: Part,
    given: float | None,
    law: Law,
    physical_bytes: float = 0.0,
    least_bytes: float | None = None,
    *,
    scale: float = 1.0,
    is_charged: bool = True,
) -> Overhead:
    """The overhead: as given, or as the law has it; `least_bytes` is the physics where it may be less than usual."""
    if given is not None:
        return Overhead(part, Interval.exactly(given), True, is_charged, GIVEN)
    assumed = law.interval(physical_bytes, scale)
    if least_bytes is not None:
        assumed = replace(assumed, low=min(assumed.low, law.interval(least_bytes, scale).low))
    return Overhead(part, assumed, False, is_charged, law.words)
