"""What is read off the numbers of both sides: figures in one order, what did not shrink, ratios in words."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

from app.calc.deployment import Deployment
from app.calc.derivation import Explanation, Term
from app.calc.measure import Measures, measure
from app.calc.memory.capacity import Memory
from app.calc.model.parameters import count_parameters, weight_bytes
from app.calc.optimize.optimization import Asked, Better, Figure, Level, Quantity, Row
from app.calc.quantity import significant
from app.calc.time.serving import Estimate
from app.calc.verdict import State, state_of

DOES_NOT_FIT = "does not fit: told as if it did"
UNSHRUNK = 0.9
"""A part of a token's time that keeps so much of itself did not shrink."""
ALIKE = 0.005
"""Two numbers that differ by less are called equal."""
_CAUSES = MappingProxyType(
    {
        "calls_s": "kernel launches",
        "collectives_s": "collectives between GPUs",
        "host_s": "the host",
        "interference_s": "prompts of other requests",
        "efficiency_s": "what kernels miss of the peak",
    }
)


@dataclass(frozen=True, slots=True)
class Side:
    """One state of a scenario, and its numbers."""

    deployment: Deployment
    measures: Measures

    @property
    def fits(self) -> bool:
        """Whether memory holds what is asked."""
        return state_of(self.deployment, self.measures) is not State.DOES_NOT_FIT

    @property
    def note(self) -> str:
        """What memory does not hold of it, for a table; empty where it holds all."""
        if self.fits:
            return ""
        room = self.measures.memory.max_concurrency
        return f"room for {room:,} at a time, the others wait" if room else DOES_NOT_FIT

    @property
    def tokens_per_s(self) -> float:
        """Output tokens a second, as expected; at the ceiling where nothing is."""
        return self.measures.serving.output_tokens_per_s.best_known

    @property
    def tokens_per_s_per_gpu(self) -> float:
        """The same of each GPU."""
        return self.tokens_per_s / self.deployment.gpus

    @property
    def ttft_s(self) -> float | None:
        """Time to first token as expected, None where it grows without end; the ceiling where nothing is expected."""
        ttft = self.measures.serving.ttft_s
        return ttft.mid if self.measures.expected else ttft.ceiling

    @property
    def tpot_s(self) -> float:
        """Time per output token, as expected; at the ceiling where nothing is."""
        return self.measures.serving.tpot_s.best_known


def side_of(asked: Asked, deployment: Deployment) -> Side:
    """The side that `deployment` is; the scenario's own numbers are not worked out again."""
    return Side(deployment, asked.measures if deployment == asked.deployment else measure(deployment))


TTFT = Quantity("ttft", "Time to first token (TTFT)", "s", better=Better.LOWER)
TPOT = Quantity("tpot", "Time per output token (TPOT)", "s", better=Better.LOWER)
THROUGHPUT = Quantity("throughput", "Output tokens a second", "tokens/s", better=Better.HIGHER)
CAPACITY = Quantity("capacity", "Sequences that find room", "", better=Better.HIGHER)

ROOM_COLUMN = Quantity("capacity", "Room", "sequences", read=lambda side: float(side.measures.memory.max_concurrency))
TPOT_CEILING = Quantity("tpot_ceiling", "TPOT, ceiling", "s", read=lambda side: side.measures.serving.tpot_s.ceiling)
TPOT_EXPECTED = Quantity("tpot_expected", "TPOT, expected", "s", read=lambda side: side.measures.serving.tpot_s.mid)


def figure(of: Quantity, both: Iterable[float | None], level: Level | None = None) -> Figure:
    """A figure of two numbers, the first without the optimization."""
    before, after = both
    return Figure(of, before, after, level or of.level)


def figures(quantities: Iterable[Quantity], off: Side, on: Side) -> list[Figure]:
    """What each quantity reads off both sides."""
    return [figure(of, (of.read(off), of.read(on))) for of in quantities]


def row(columns: Sequence[Quantity], label: str, side: Side, *, is_here: bool, note: str | None = None) -> Row:
    """A variant's numbers, column by column; its note says where it does not fit, unless another is given."""
    return Row(label, tuple(column.read(side) for column in columns), is_here, side.note if note is None else note)


def at_levels(of: Quantity, before: Estimate, after: Estimate) -> tuple[Figure, ...]:
    """The ceiling, and what is expected where it is known of either side."""
    ceiling = Figure(of, before.ceiling, after.ceiling, Level.CEILING)
    if before.mid is None and after.mid is None:
        return (ceiling,)
    return ceiling, Figure(of, before.mid, after.mid, Level.EXPECTED)


def served_figures(before: Side, after: Side) -> tuple[Figure, ...]:
    """Capacity, times and throughput of both sides."""
    first, second = before.measures.serving, after.measures.serving
    held = before.measures.memory, after.measures.memory
    level = Level.EXACT if all(map(_is_exact, held)) else Level.EXPECTED
    return (
        figure(CAPACITY, (float(one.max_concurrency) for one in held), level),
        *at_levels(TTFT, first.ttft_s, second.ttft_s),
        *at_levels(TPOT, first.tpot_s, second.tpot_s),
        *at_levels(THROUGHPUT, first.output_tokens_per_s, second.output_tokens_per_s),
    )


def _is_exact(held: Memory) -> bool:
    low, high = held.max_concurrency_interval
    return low == high


def throughput_at_capacity(side: Side) -> float | None:
    """Output tokens a second with as many sequences as memory holds; None where it does not hold one."""
    if not side.measures.memory.max_concurrency:
        return None
    workload = replace(side.deployment.workload, concurrency=None)
    return measure(replace(side.deployment, workload=workload)).serving.output_tokens_per_s.best_known


def loaded_weight_bytes(deployment: Deployment) -> float:
    """Bytes of everything that is loaded, scales included."""
    return weight_bytes(count_parameters(deployment.architecture), deployment.precision.weights)


def unshrunk(before: Side, after: Side) -> tuple[str, float] | None:
    """The largest part of a token's time beside its ceiling that is on both sides alike: its name, seconds after.

    None where nothing is expected, or every part shrank too.
    """
    first, second = before.measures.expected, after.measures.expected
    if first is None or second is None:
        return None
    found = [
        (name, getattr(second.causes, key))
        for key, name in _CAUSES.items()
        if getattr(second.causes, key) > UNSHRUNK * max(0.0, getattr(first.causes, key))
    ]
    name, seconds = max(found, key=lambda part: float(part[1]), default=("", 0.0))
    return (name, seconds) if seconds > 0 else None


def same_crowd(before: Side, after: Side) -> bool:
    """Whether as many sequences run on both sides: only then are their steps the same work."""
    return before.measures.memory.served_sequences == after.measures.memory.served_sequences


def best_level(measures: Measures) -> str:
    """What the best known numbers are, for a heading: expected, or the ceiling where nothing is calibrated."""
    return Level.EXPECTED if measures.expected is not None else Level.CEILING


def times(ratio: float) -> str:
    """A ratio of 1 or more, in three digits: "1.43 times"; "once" is not said."""
    return f"{significant(ratio, 3)} times"


def less(before: float, after: float) -> str:
    """How much smaller something got, in words: "2 times less"; "1.2 times as much" where it grew."""
    if not before or not after or abs(before / after - 1) < ALIKE:
        return "as much as before"
    return f"{times(before / after)} less" if before > after else f"{times(after / before)} as much"


def shrinks(before: float, after: float) -> str:
    """The same as a verb: "shrinks 2 times", "hardly shrinks", "grows 1.2 times"."""
    if not before or not after or abs(before / after - 1) < ALIKE:
        return "hardly shrinks"
    return f"shrinks {times(before / after)}" if before > after else f"grows {times(after / before)}"


def change_of_time(what: str, before_s: float, after_s: float) -> str:
    """How a time changes, in words: sooner, later or alike."""
    if not before_s or not after_s:
        return f"{what} alike"
    gain = before_s / after_s
    if abs(gain - 1) < ALIKE:
        return f"{what} as before"
    return f"{what} {times(gain)} sooner" if gain > 1 else f"{what} {times(1 / gain)} later"


def working(
    id_: str, label: str, formula: str, terms: Iterable[tuple[str, str, float, str]], result: tuple[float, str, str]
) -> Explanation:
    """An explanation; `terms` are symbol, label, value and unit, `result` value, unit and source."""
    value, unit, source = result
    # The prefix is part of the JSON of version 1.
    return Explanation(f"doors.{id_}", label, formula, tuple(Term(*term) for term in terms), value, unit, source)
