"""The memory of one GPU step by step, from the card down to the free cache: what the waterfall draws, as numbers."""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from app.calc.engines.parts import Interval, Overhead, Part
from app.calc.memory import Memory
from app.calc.notation import significant
from app.calc.rank_memory import RankMemory

PART_WORDS = {
    Part.DRIVER: "Driver’s part",
    Part.ACTIVATION: "Activations",
    Part.NON_FRAMEWORK: "Non-framework",
    Part.GRAPHS: "CUDA graphs",
}

MISSING = "Missing"


class Kind(StrEnum):
    """How a step is known, or what it is: a total, a fact or formula, assumed, given, outside the share, missing."""

    TOTAL = "total"
    KNOWN = "known"
    ASSUMED = "assumed"
    GIVEN = "given"
    OUTSIDE = "outside"
    MISSING = "missing"


@dataclass(frozen=True, slots=True)
class Step:
    """One bar from `start` to `end`, in bytes; `end` is most likely, and in eight cases of ten between low and high.

    A total starts at 0. `is_aside` marks what is drawn beside the chain: it takes nothing from the steps below it.
    """

    name: str
    start: float
    end: Interval
    kind: Kind
    role: str
    is_aside: bool = False

    @property
    def bytes(self) -> float:
        """Its size."""
        return abs(self.end.mid - self.start)

    @property
    def sizes(self) -> tuple[float, float]:
        """Its size at the least and at the most."""
        sides = sorted(abs(side - self.start) for side in (self.end.low, self.end.high))
        return sides[0], sides[1]


def memory_steps(held: Memory) -> list[Step]:
    """The steps of the tightest GPU. Below 0 is what is missing."""
    rank = held.tightest
    steps = [_total("Card", rank.capacity_bytes)]
    steps += _given_pool(rank) if rank.is_pool_given else list(_divided(rank))
    pool, cache = rank.pool.mid, held.cache_bytes
    if pool <= 0:
        # A pool that was given ends at 0, however far the weights go beyond the card.
        missing = rank.pool if pool < 0 else Interval.exactly(min(0.0, steps[-1].end.mid))
        steps.append(Step(MISSING, 0.0, missing, Kind.MISSING, "limit"))
        return steps
    kind = Kind.GIVEN if rank.is_pool_given else Kind.TOTAL if rank.pool.is_exact else Kind.ASSUMED
    steps.append(Step("Cache pool", 0.0, rank.pool, kind, "cache"))
    left = pool - cache
    used = "Cache in use" if left >= 0 else "Cache asked for"
    steps.append(Step(used, pool, Interval.exactly(left), Kind.KNOWN, "cache"))
    if left < 0:
        steps.append(Step(MISSING, 0.0, Interval.exactly(left), Kind.MISSING, "limit"))
    else:
        steps.append(Step("Cache free", 0.0, Interval.exactly(left), Kind.TOTAL, "free"))
    return steps


def _total(name: str, size: float) -> Step:
    return Step(name, 0.0, Interval.exactly(size), Kind.TOTAL, "axis")


def _given_pool(rank: RankMemory) -> list[Step]:
    """A measured pool: nothing is divided, so everything that is neither weights nor pool is one step."""
    weights = _taken("Weights", rank.capacity_bytes, rank.weights, _weights_kind(rank), "weights")
    rest = weights.end.mid - max(0.0, rank.pool.mid)
    if rest <= 0:
        return [weights]
    return [weights, _taken("All else", weights.end.mid, Interval.exactly(rest), Kind.OUTSIDE, "outside")]


def _divided(rank: RankMemory) -> Iterator[Step]:
    """As the engine divides it: what it takes before its share, the share, weights, what is charged."""
    at, share, settings = rank.seen_bytes, rank.budget_bytes, rank.rank.settings
    if rank.seen_bytes < rank.capacity_bytes:
        yield _taken(
            PART_WORDS[Part.DRIVER],
            rank.capacity_bytes,
            Interval.exactly(rank.capacity_bytes - at),
            _driver_kind(rank),
            "overhead",
        )
        yield _total("Seen by the engine", at)
    charged = {o.part: o for o in rank.overheads if o.is_charged and o.part is not Part.DRIVER}
    aside = [o for o in rank.overheads if not o.is_charged and o.part is not Part.DRIVER and o.bytes.mid > 0]
    # SGLang takes its share of what is free before loading: what stands there already comes first.
    before = Part.NON_FRAMEWORK in charged and rank.held_back_bytes < charged[Part.NON_FRAMEWORK].bytes.mid / 2
    if before:
        step = _overhead(charged.pop(Part.NON_FRAMEWORK), at)
        yield step
        at = step.end.mid
    if share < at:
        yield _taken("Outside the share", at, Interval.exactly(at - share), Kind.OUTSIDE, "outside")
        yield from _beside(aside, share)
        aside, at = [], share
        yield _total(f"Share, {significant(settings.utilization, 3)}", share)
    weights = _taken("Weights", at, rank.weights, _weights_kind(rank), "weights")
    yield weights
    at = weights.end.mid
    for overhead in charged.values():
        if overhead.bytes.high <= 0:
            continue
        step = _overhead(overhead, at)
        yield step
        at = step.end.mid
    left = at - rank.pool.mid
    if left > 1:  # TensorRT-LLM leaves a fraction of what is free
        yield _taken("Left free", at, Interval.exactly(left), Kind.OUTSIDE, "outside")
    yield from _beside(aside, rank.pool.mid)


def _beside(aside: list[Overhead], floor: float) -> Iterator[Step]:
    """What is not charged, drawn from the floor of the room that it has to find."""
    for overhead in aside:
        low, mid, high = overhead.bytes.sides
        yield Step(
            PART_WORDS[overhead.part],
            floor,
            Interval(floor + low, floor + mid, floor + high),
            Kind.GIVEN if overhead.is_given else Kind.ASSUMED,
            "outside",
            is_aside=True,
        )
        floor += mid


def _overhead(overhead: Overhead, start: float) -> Step:
    kind = Kind.GIVEN if overhead.is_given else Kind.ASSUMED
    return _taken(PART_WORDS[overhead.part], start, overhead.bytes, kind, "overhead")


def _taken(name: str, start: float, size: Interval, kind: Kind, role: str) -> Step:
    return Step(name, start, Interval(start - size.high, start - size.mid, start - size.low), kind, role)


def _weights_kind(rank: RankMemory) -> Kind:
    return Kind.GIVEN if rank.rank.settings.given.weights is not None else Kind.KNOWN


def _driver_kind(rank: RankMemory) -> Kind:
    return Kind.GIVEN if rank.rank.settings.given.total_memory is not None else Kind.KNOWN
