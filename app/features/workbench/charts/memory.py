"""The memory of one GPU step by step, from the card down to the free cache: what the waterfall draws, as numbers.

What fills the card: from all that it has down to what is still free, step by step.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise
from typing import Any

from app.calc.evaluate import Evaluation
from app.calc.memory.capacity import Memory
from app.calc.memory.engines.parts import Interval, Overhead, Part
from app.calc.memory.rank import RankMemory
from app.calc.quantity import quantity, significant
from app.web.figure import Cell, Chart, layout, linear_axis, note, table_of

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


HEIGHT_PX = 444
MOST_BELOW = 1.5
"""How far below 0 is drawn, in cards."""
# How a step is known is told by the look of its bar, and in words.
LOOKS = {
    Kind.TOTAL: ("", "what is left"),
    Kind.KNOWN: ("", "computed"),
    Kind.ASSUMED: (".", "assumed"),
    Kind.GIVEN: ("-", "given"),
    Kind.OUTSIDE: ("/", "outside"),
    Kind.MISSING: ("x", "missing"),
}
_FONT = {"color": "@ink", "size": 12}
_KEY = (Kind.KNOWN, Kind.ASSUMED, Kind.GIVEN, Kind.OUTSIDE, Kind.MISSING)


def memory_chart(evaluation: Evaluation, *, binary: bool = False) -> Chart:
    """A waterfall of the tightest GPU. Whiskers span eight logs of ten; what stands left of 0 is missing."""
    held = evaluation.measures.memory
    steps = memory_steps(held)
    scale, unit = (2.0**30, "GiB") if binary else (1e9, "GB")
    lowest = min(0.0, *(step.end.mid for step in steps))
    highest = max(step.start for step in steps) or held.per_gpu.capacity_bytes
    highest = max(highest, *(step.end.mid for step in steps))
    # A bar far beyond the card would make the card a line: it is cut, and its size stands beside it.
    lowest = max(lowest, -MOST_BELOW * highest)
    span = highest - lowest
    reach = [(lowest - 0.07 * span * (lowest < 0)) / scale, (highest + 0.02 * span) / scale]
    rows = range(len(steps))
    figure = {
        "data": [
            *(_bar(step, row, scale, binary) for row, step in zip(rows, steps, strict=True)),
            *_keys(steps),
        ],
        "layout": layout(
            HEIGHT_PX,
            barmode="overlay",
            xaxis=linear_axis(unit, max(-lowest, highest) / scale, range=reach),
            yaxis=_names(steps),
            shapes=[*_connectors(steps, scale), _zero(len(steps))],
            annotations=[
                note(_written(step, binary), 1, row, xref="paper", xanchor="left", xshift=8, font=_FONT)
                for row, step in zip(rows, steps, strict=True)
            ],
            margin={"l": 112, "r": 86, "t": 52, "b": 44},
            legend=_LEGEND,
        ),
    }
    return Chart(
        "memory",
        "Memory of a GPU, step by step",
        "What fills it, and how much is left?",
        _summary(evaluation, binary=binary),
        figure,
        table_of(_COLUMNS, _rows(held, steps)),
    )


_LEGEND = {
    "orientation": "h",
    "x": 0,
    "xanchor": "left",
    "y": 1.01,
    "yanchor": "bottom",
    "itemclick": False,
    "itemdoubleclick": False,
    "font": {"size": 12},
}
_COLUMNS = ("part", "bytes (B)", "at least (B)", "at most (B)", "share of the card", "how it is known")


def _rows(held: Memory, steps: Sequence[Step]) -> list[tuple[Cell, ...]]:
    """The steps, and the two limits that other tables refer to."""
    capacity = held.per_gpu.capacity_bytes
    found: list[tuple[Cell, ...]] = [
        (step.name, step.bytes, *step.sizes, step.bytes / capacity, _known(step)) for step in steps
    ]
    share = held.budget_bytes
    return [*found, ("Engine’s share", share, share, share, share / capacity, "what is left")]


def _known(step: Step) -> str:
    words = LOOKS[step.kind][1]
    return f"{words}, outside" if step.is_aside else words


def _names(steps: Sequence[Step]) -> dict[str, Any]:
    """A numbered axis whose labels name the steps, the first one at the top."""
    return {
        "tickmode": "array",
        "tickvals": list(range(len(steps))),
        "ticktext": [_label(step) for step in steps],
        "tickfont": _FONT,
        "range": [len(steps) - 0.5, -0.5],
        "showgrid": False,
        "zeroline": False,
        "automargin": True,
        "fixedrange": True,
    }


def _label(step: Step) -> str:
    return f"{step.name}, given" if step.kind is Kind.GIVEN else step.name


def _written(step: Step, binary: bool) -> str:
    """The size with its sign: a step down takes it away."""
    size = quantity(step.bytes, "B", 3, binary=binary)
    if step.is_aside:
        return f"({size})"
    return f"− {size}" if step.end.mid < step.start else size


def _bar(step: Step, row: int, scale: float, binary: bool) -> dict[str, Any]:
    pattern, words = LOOKS[step.kind]
    if step.is_aside:
        pattern = LOOKS[Kind.OUTSIDE][0]
    low, high = step.sizes
    size = quantity(step.bytes, "B", 4, binary=binary)
    between = ""
    if low != high:
        between = f", {quantity(low, 'B', 3, binary=binary)} to {quantity(high, 'B', 3, binary=binary)}"
    bar: dict[str, Any] = {
        "type": "bar",
        "orientation": "h",
        "name": step.name,
        "showlegend": False,
        "base": [step.start / scale],
        "x": [(step.end.mid - step.start) / scale],
        "y": [row],
        "width": 0.62,
        "marker": _marker(step.role, pattern),
        "hovertemplate": f"{step.name}: {size}{between} ({words})<extra></extra>",
    }
    if low != high:
        bar["error_x"] = {
            "type": "data",
            "symmetric": False,
            "array": [(step.end.high - step.end.mid) / scale],
            "arrayminus": [(step.end.mid - step.end.low) / scale],
            "color": "@ink",
            "thickness": 1,
            "width": 3,
        }
    return bar


def _marker(role: str, pattern: str) -> dict[str, Any]:
    return {
        "color": f"@{role}",
        "line": {"color": "@surface", "width": 1},
        "pattern": {"shape": pattern, "fgcolor": "@hatch", "size": 6, "fillmode": "overlay"},
    }


def _keys(steps: Sequence[Step]) -> list[dict[str, Any]]:
    """An entry of the legend for each way of knowing that is there."""
    roles = {Kind.KNOWN: "weights", Kind.ASSUMED: "overhead", Kind.GIVEN: "weights", Kind.OUTSIDE: "outside"}
    there = {step.kind for step in steps} | ({Kind.OUTSIDE} if any(step.is_aside for step in steps) else set())
    return [
        {
            "type": "bar",
            "orientation": "h",
            "name": LOOKS[kind][1],
            "x": [None],
            "y": [0],
            "marker": _marker(roles.get(kind, "limit"), LOOKS[kind][0]),
            "hoverinfo": "skip",
        }
        for kind in _KEY
        if kind in there
    ]


def _connectors(steps: Sequence[Step], scale: float) -> list[dict[str, Any]]:
    """A thin line from the end of each step to the next one of the chain."""
    chain = [(row, step) for row, step in enumerate(steps) if not step.is_aside]
    return [
        {
            "type": "line",
            "x0": step.end.mid / scale,
            "x1": step.end.mid / scale,
            "y0": row + 0.31,
            "y1": below - 0.31,
            "line": {"color": "@ridge", "width": 1, "dash": "dot"},
            "layer": "below",
        }
        for (row, step), (below, _) in pairwise(chain)
    ]


def _zero(rows: int) -> dict[str, Any]:
    return {
        "type": "line",
        "x0": 0,
        "x1": 0,
        "y0": -0.5,
        "y1": rows - 0.5,
        "line": {"color": "@limit", "width": 1.5},
        "layer": "above",
    }


def _summary(evaluation: Evaluation, *, binary: bool) -> str:
    held, name = evaluation.measures.memory, evaluation.deployment.accelerator.name

    def written(value: float) -> str:
        return quantity(value, "B", 3, binary=binary)

    rank, capacity = held.tightest, held.per_gpu.capacity_bytes
    cache = held.cache_bytes
    beside = rank.seen_bytes - rank.weights.mid - rank.pool.mid
    where = f"{name}, stage {rank.stage + 1} of {len(held.ranks)}" if len(held.ranks) > 1 else name
    text = f"{where}: of {written(capacity)}, weights take {written(held.per_gpu.weights_bytes)}"
    if rank.pool.mid <= 0:
        return f"{text}; {written(-min(rank.pool.mid, capacity - rank.weights.mid))} are missing before any cache."
    text += f" and all else {written(max(0.0, beside))}; the cache pool has {written(rank.pool.mid)}"
    if not rank.pool.is_exact:
        text += f" ({written(rank.pool.low)} to {written(rank.pool.high)} in eight cases of ten)"
    if cache > rank.pool.mid:
        return f"{text}, {written(cache - rank.pool.mid)} less than the {written(cache)} of cache that is asked for."
    return f"{text}, of which {written(cache)} are in use."
