"""The numbers of plans in rows: the same rows for all, the expected and the ceiling each in a row of its own.

Only like stands beside like: an expected value is never measured against another plan's ceiling.
"""

from collections.abc import Callable, Mapping, Sequence

from app.calc.cost import joules_per_token, usd_per_million_tokens
from app.calc.evaluation import Evaluation
from app.calc.output import Face, Output
from app.calc.outputs import shown_on
from app.calc.serving import Estimate, scaled
from app.calc.verdict import State
from app.compare.rows import Level, Row, Value


def result_rows(evaluations: Sequence[Evaluation]) -> list[Row]:
    """Every row, whatever the plans are; what none of them has is left out."""
    fitting = tuple(e.verdict.state is not State.DOES_NOT_FIT for e in evaluations)
    rows = list[Row]()
    for output in shown_on(Face.COMPARE):
        of = _WITH_SIDES.get(output.path, output.of)
        found = [of(evaluation) for evaluation in evaluations]
        for level in _levels(output, found):
            values = tuple(_at(value, level) for value in found)
            names = (output.key, output.label, output.scope.value, output.unit.value)
            rows.append(Row(*names, level, output.better, values, fitting))
    return [row for row in rows if any(value.mid is not None for value in row.values)]


def _levels(output: Output, found: Sequence[object]) -> tuple[Level, ...]:
    if any(isinstance(value, Estimate) for value in found):
        return Level.EXPECTED, Level.CEILING
    return (_KNOWN.get(output.path, Level.CAPACITY),)


def _at(value: object, level: Level) -> Value:
    if isinstance(value, Value):
        return value
    if isinstance(value, Estimate):
        return Value(value.mid, value.low, value.high) if level is Level.EXPECTED else Value(value.ceiling)
    return Value(value if isinstance(value, int | float) else None)


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


def _max_concurrency(evaluation: Evaluation) -> Value:
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


_WITH_SIDES: Mapping[str, Callable[[Evaluation], Value | Estimate | None]] = {
    "memory.max_concurrency": _max_concurrency,
    "memory.needed_bytes": _needed,
    "memory.per_gpu.kv_pool_bytes": _pool,
    "cost.usd_per_million_output_tokens": _usd_per_million,
    "cost.joules_per_output_token": _joules_per_token,
}
"""Numbers that the document tells at one level, with what follows for them from the sides of what they are made of."""
_KNOWN = {"cost.usd_per_hour": Level.INPUT, "deployment.gpus": Level.INPUT}
