"""The numbers of plans in rows: the same rows for all, the expected and the ceiling each in a row of its own.

Only like stands beside like: an expected value is never measured against another plan's ceiling.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from app.calc.cost import joules_per_token, usd_per_million_tokens
from app.calc.evaluation import Evaluation
from app.calc.serving import Estimate
from app.calc.verdict import State
from app.compare.rows import Better, Level, Row, Value


@dataclass(frozen=True, slots=True)
class _Quantity:
    """What a row, or a pair of rows, is made of: an estimate has a ceiling and an expected value."""

    id: str
    label: str
    scope: str
    unit: str
    better: Better
    of: Callable[[Evaluation], Estimate | None]


@dataclass(frozen=True, slots=True)
class _Fact:
    """A row that has one level only."""

    id: str
    label: str
    scope: str
    unit: str
    level: Level
    better: Better
    of: Callable[[Evaluation], Value]


def result_rows(evaluations: Sequence[Evaluation]) -> list[Row]:
    """Every row, whatever the plans are; what none of them has is left out."""
    fitting = tuple(e.verdict.state is not State.DOES_NOT_FIT for e in evaluations)
    rows = list[Row]()
    for item in _ROWS:
        if isinstance(item, _Fact):
            values = tuple(item.of(e) for e in evaluations)
            rows.append(Row(item.id, item.label, item.scope, item.unit, item.level, item.better, values, fitting))
            continue
        found = [item.of(e) for e in evaluations]
        for level in (Level.EXPECTED, Level.CEILING):
            values = tuple(_at(estimate, level) for estimate in found)
            rows.append(Row(item.id, item.label, item.scope, item.unit, level, item.better, values, fitting))
    return [row for row in rows if any(value.mid is not None for value in row.values)]


def _at(estimate: Estimate | None, level: Level) -> Value:
    if estimate is None:
        return Value(None)
    return Value(estimate.mid, estimate.low, estimate.high) if level is Level.EXPECTED else Value(estimate.ceiling)


def scaled(estimate: Estimate, change: Callable[[float], float]) -> Estimate:
    """The estimate of what follows from another one; where more of that makes less of this, the sides change places."""
    low, mid, high = (None if side is None else change(side) for side in (estimate.low, estimate.mid, estimate.high))
    if low is not None and high is not None and low > high:
        low, high = high, low
    return Estimate(change(estimate.ceiling), low, mid, high)


def tokens_per_s_per_gpu(evaluation: Evaluation) -> Estimate:
    """Output tokens a second of all users ÷ all GPUs."""
    gpus = evaluation.deployment.gpus
    return scaled(evaluation.measures.serving.output_tokens_per_s, lambda rate: rate / gpus)


def _usd_per_million(evaluation: Evaluation) -> Estimate | None:
    cost = evaluation.measures.cost
    if cost is None or cost.usd_per_hour is None:
        return None
    price, rate = cost.usd_per_hour, evaluation.measures.serving.output_tokens_per_s
    return scaled(rate, lambda tokens_per_s: float(usd_per_million_tokens(price, tokens_per_s)))


def _joules_per_token(evaluation: Evaluation) -> Estimate | None:
    cost, rate = evaluation.measures.cost, evaluation.measures.serving.output_tokens_per_s
    if cost is None or cost.joules_per_output_token is None:
        return None
    power = cost.joules_per_output_token * rate.best_known  # of all GPUs, whichever they are
    return scaled(rate, lambda tokens_per_s: float(joules_per_token(power, tokens_per_s)))


def _room(evaluation: Evaluation) -> Value:
    held = evaluation.measures.memory
    low, high = held.max_concurrency_interval
    return Value(held.max_concurrency, *((None, None) if low == high else (low, high)))


def _needed(evaluation: Evaluation) -> Value:
    held = evaluation.measures.memory
    pool, needed = held.tightest.pool, held.needed_bytes
    if pool.is_exact:
        return Value(needed)
    return Value(needed, max(0.0, needed + pool.mid - pool.high), max(0.0, needed + pool.mid - pool.low))


def _pool(evaluation: Evaluation) -> Value:
    pool = evaluation.measures.memory.tightest.pool
    sides = [max(0.0, side) for side in (pool.mid, pool.low, pool.high)]
    return Value(sides[0], *((None, None) if pool.is_exact else sides[1:]))


_ROWS: tuple[_Quantity | _Fact, ...] = (
    _Fact("max_concurrency", "Room for", "all GPUs", "sequences", Level.CAPACITY, Better.HIGHER, _room),
    _Fact("needed_bytes", "Memory in use", "per GPU", "B", Level.CAPACITY, Better.NEITHER, _needed),
    _Fact("kv_pool_bytes", "Cache pool", "per GPU", "B", Level.CAPACITY, Better.HIGHER, _pool),
    _Quantity("ttft_s", "First token (TTFT)", "per user", "s", Better.LOWER, lambda e: e.measures.serving.ttft_s),
    _Quantity("tpot_s", "Each token (TPOT)", "per user", "s", Better.LOWER, lambda e: e.measures.serving.tpot_s),
    _Quantity(
        "output_tokens_per_s_per_user",
        "Pace of a stream",
        "per user",
        "tokens/s",
        Better.HIGHER,
        lambda e: e.measures.serving.output_tokens_per_s_per_user,
    ),
    _Quantity(
        "total_latency_s",
        "Whole answer",
        "per user",
        "s",
        Better.LOWER,
        lambda e: e.measures.serving.total_latency_s,
    ),
    _Quantity(
        "output_tokens_per_s",
        "Throughput",
        "all users",
        "tokens/s",
        Better.HIGHER,
        lambda e: e.measures.serving.output_tokens_per_s,
    ),
    _Quantity(
        "output_tokens_per_s_per_gpu", "Throughput of a GPU", "per GPU", "tokens/s", Better.HIGHER, tokens_per_s_per_gpu
    ),
    _Quantity(
        "usd_per_million_output_tokens", "Cost of a million tokens", "all GPUs", "$", Better.LOWER, _usd_per_million
    ),
    _Quantity("joules_per_output_token", "Energy of a token", "all GPUs", "J", Better.LOWER, _joules_per_token),
    _Fact(
        "usd_per_hour",
        "Price of an hour",
        "all GPUs",
        "$",
        Level.INPUT,
        Better.LOWER,
        lambda e: Value(None if e.measures.cost is None else e.measures.cost.usd_per_hour),
    ),
    _Fact("gpus", "GPUs", "in all", "", Level.INPUT, Better.NEITHER, lambda e: Value(e.deployment.gpus)),
    _Fact(
        "served_sequences",
        "Served at a time",
        "all GPUs",
        "sequences",
        Level.CAPACITY,
        Better.NEITHER,
        lambda e: Value(e.measures.memory.served_sequences),
    ),
)
