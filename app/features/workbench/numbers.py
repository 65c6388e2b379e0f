"""The six numbers at the top of an answer: words and figures, ready to show.

The table of levels: the same quantities by rule of thumb, at the ceiling and as expected.
"""

from dataclasses import dataclass

from app.calc.derivation import Explanation
from app.calc.evaluate import Evaluation
from app.calc.output import Form
from app.calc.outputs import output_at
from app.calc.quantity import quantity, significant
from app.calc.time.phase import OperatorCost
from app.calc.time.serving import Estimate

DIGITS = 3
CEILING = ("ceiling", "ceiling: nothing is faster")
CASES = "in eight cases of ten"


@dataclass(frozen=True, slots=True)
class Metric:
    """One number with its scope and its working.

    `level` says what kind of figure it is, `basis` the same in words; `interval` stands where one is claimed.
    """

    id: str
    label: str
    value: str
    unit: str
    scope: str
    level: str
    basis: str
    beside: str
    explanations: tuple[Explanation, ...]
    operators: tuple[OperatorCost, ...] = ()
    interval: str = ""


def metrics(evaluation: Evaluation, *, binary: bool) -> list[Metric]:
    """Memory, room, first token, pace, whole answer, throughput."""
    by_id = {explanation.id: explanation for explanation in evaluation.explanations}
    held, served, workload = evaluation.measures.memory, evaluation.measures.serving, evaluation.deployment.workload
    users, level = held.running_sequences, _capacity_level(evaluation)

    def metric(
        id_: str,
        path: str,
        text: str,
        beside: str,
        explained: tuple[str, ...],
        level: tuple[str, str] = CEILING,
        operators: tuple[OperatorCost, ...] = (),
        interval: str = "",
        scope: str = "",
    ) -> Metric:
        output, (value, _, unit) = output_at(path), text.partition(" ")
        found = tuple(by_id[key] for key in explained if key in by_id)
        scope = scope or output.scope.value
        return Metric(id_, output.label, value, unit, scope, *level, beside, found, operators, interval)

    def written(value: float, unit: str) -> str:
        return quantity(value, unit, DIGITS, binary=binary)

    return [
        metric(
            "memory",
            "memory.needed_bytes",
            written(held.needed_bytes, "B"),
            f"of {written(held.per_gpu.capacity_bytes, 'B')}; weights {written(held.per_gpu.weights_bytes, 'B')}",
            (
                "memory.needed_bytes",
                "memory.per_gpu.weights_bytes",
                "memory.gpu_bytes_per_sequence",
                "memory.kv_bytes_per_sequence",
            ),
            level,
            interval=_needed_interval(evaluation, binary=binary),
        ),
        metric(
            "room",
            "memory.max_concurrency",
            f"{held.max_concurrency:,} {'sequence' if held.max_concurrency == 1 else 'sequences'}",
            f"of {workload.total_tokens:,} tokens; pool of {_pool(evaluation, binary=binary)}{_of_each(evaluation)}",
            (
                "memory.max_concurrency",
                "memory.per_gpu.kv_pool_bytes",
                "memory.kv_bytes_per_token",
                "memory.kv_pool_tokens",
                "memory.max_context_tokens",
            ),
            level,
            interval=_room_interval(evaluation),
            scope="per GPU" if evaluation.deployment.gpus == 1 else f"all {evaluation.deployment.gpus:,} GPUs",
        ),
        metric(
            "ttft",
            "serving.ttft_s",
            written(served.ttft_s.best_known, "s"),
            f"{_at_best(served.ttft_s, 's')}{_target(served.ttft_s, workload.slo_ttft_s)}",
            (
                "serving.ttft_s.mid",
                "prefill.expected_s.mid",
                "serving.ttft_s.ceiling",
                "prefill.ceiling_s",
                "prefill.flops",
                "prefill.bytes",
                "prefill.intensity_flops_per_byte",
            ),
            _level(evaluation, served.ttft_s),
            operators=evaluation.measures.prefill.operators,
            interval=_interval(served.ttft_s, "s"),
        ),
        metric(
            "tpot",
            "serving.tpot_s",
            written(served.tpot_s.best_known, "s"),
            f"{significant(served.output_tokens_per_s_per_user.best_known, DIGITS)} tokens/s while it streams, "
            f"{_at_best(served.tpot_s, 's')}; {written(served.tpot_inclusive_s.best_known, 's')} with the first token "
            f"in it{_target(served.tpot_s, workload.slo_tpot_s)}",
            (
                "serving.tpot_s.mid",
                "decode.expected_s.mid",
                "serving.output_tokens_per_s_per_user.mid",
                "serving.tpot_inclusive_s.mid",
                "serving.tpot_s.ceiling",
                "decode.ceiling_s",
                "decode.flops",
                "decode.bytes",
                "decode.intensity_flops_per_byte",
                "serving.output_tokens_per_s_per_user.ceiling",
                "serving.tpot_inclusive_s.ceiling",
            ),
            _level(evaluation, served.tpot_s),
            operators=evaluation.measures.decode.operators,
            interval=_interval(served.tpot_s, "s"),
        ),
        metric(
            "latency",
            "serving.total_latency_s",
            written(served.total_latency_s.best_known, "s"),
            f"{workload.output_tokens:,} tokens; {_at_best(served.total_latency_s, 's')}",
            ("serving.total_latency_s.mid", "serving.total_latency_s.ceiling"),
            _level(evaluation, served.total_latency_s),
            interval=_interval(served.total_latency_s, "s"),
        ),
        metric(
            "throughput",
            "serving.output_tokens_per_s",
            f"{significant(served.output_tokens_per_s.best_known, DIGITS)} tokens/s",
            f"{_price(evaluation)}; {_at_best(served.output_tokens_per_s, 'tokens/s')}",
            (
                "serving.output_tokens_per_s.mid",
                "serving.total_tokens_per_s.mid",
                "serving.output_tokens_per_s.ceiling",
                "serving.total_tokens_per_s.ceiling",
                "cost.usd_per_million_output_tokens",
                "cost.joules_per_output_token",
            ),
            _level(evaluation, served.output_tokens_per_s),
            interval=_interval(served.output_tokens_per_s, "tokens/s"),
            scope="all users" if users > 1 else "one user",
        ),
    ]


def _level(evaluation: Evaluation, estimate: Estimate) -> tuple[str, str]:
    """What kind of figure stands in front: what is expected, or the ceiling where nothing is."""
    if estimate.mid is None:
        return CEILING
    expected = evaluation.measures.expected
    own = evaluation.deployment.own_calibration
    if own is not None and (own.prefill if estimate is evaluation.measures.serving.ttft_s else own.decode) is not None:
        return "estimate", "expected, by a calibration of your own"
    if expected is not None and not expected.is_seen:
        return "estimate", "expected; this pair was not measured"
    return "estimate", "expected of a server"


def _at_best(estimate: Estimate, unit: str) -> str:
    return f"at best {quantity(estimate.ceiling, unit, DIGITS)}" if estimate.mid is not None else "at the vendor’s peak"


def _interval(estimate: Estimate, unit: str) -> str:
    if estimate.low is None or estimate.high is None:
        return "" if estimate.mid is None else "no interval claimed"
    return f"{quantity(estimate.low, unit, DIGITS)} to {quantity(estimate.high, unit, DIGITS)} {CASES}"


def _capacity_level(evaluation: Evaluation) -> tuple[str, str]:
    """What kind of figure the memory is: the most that fits, an estimate, or what a measurement leaves to divide."""
    rank, policy = evaluation.measures.memory.tightest, evaluation.deployment.engine.policy
    if rank.is_pool_given:
        return "measured", "from the measured pool"
    if policy.sees_all:
        return "capacity", "ideal engine: none fits more"
    if rank.pool.is_exact:
        return "measured", f"measured parts, {policy.name}’s rules"
    return "estimate", f"estimate, {policy.name}’s rules"


def _needed_interval(evaluation: Evaluation, *, binary: bool) -> str:
    """What is in use where the parts that are assumed turn out small, or large."""
    held = evaluation.measures.memory
    pool = held.tightest.pool
    if pool.is_exact:
        return ""
    low, high = (max(0.0, held.needed_bytes + pool.mid - side) for side in (pool.high, pool.low))
    return f"{quantity(low, 'B', DIGITS, binary=binary)} to {quantity(high, 'B', DIGITS, binary=binary)} {CASES}"


def _room_interval(evaluation: Evaluation) -> str:
    low, high = evaluation.measures.memory.max_concurrency_interval
    return "" if low == high else f"{low:,} to {high:,} {CASES}"


def has_tokens(evaluation: Evaluation) -> bool:
    """False where an engine counts whole slots at its longest context, of which none fits: that is no empty pool."""
    held = evaluation.measures.memory
    return held.kv_pool_tokens > 0 or held.max_concurrency == 0


def _pool(evaluation: Evaluation, *, binary: bool) -> str:
    held = evaluation.measures.memory
    if has_tokens(evaluation):
        return f"{held.kv_pool_tokens:,} tokens"
    return quantity(held.per_gpu.kv_pool_bytes, "B", DIGITS, binary=binary)


def _of_each(evaluation: Evaluation) -> str:
    """The pool is that of one engine: of a data-parallel rank, or of a replica."""
    deployment = evaluation.deployment
    if deployment.split.data > 1:
        return " on each data rank"
    return " on each replica" if deployment.replicas > 1 else ""


def _target(estimate: Estimate, target_s: float | None) -> str:
    """A ceiling can rule a target out; what is expected says how likely it is to be met."""
    if target_s is None:
        return ""
    if estimate.ceiling > target_s:
        said = "out of reach"
    elif estimate.mid is None:
        said = "not ruled out"
    elif estimate.high is not None and estimate.high <= target_s:
        said = "met, most likely"
    elif estimate.low is not None and estimate.low > target_s:
        said = "missed, most likely"
    else:
        said = "met, more likely than not" if estimate.mid <= target_s else "missed, more likely than not"
    return f"; target {quantity(target_s, 's', DIGITS)}: {said}"


def _price(evaluation: Evaluation) -> str:
    measures = evaluation.measures
    cost, held = measures.cost, measures.memory
    users = held.running_sequences if measures.expected is None else held.served_sequences
    output = evaluation.deployment.workload.output_tokens
    working = f"{users:,} × {output:,} tokens ÷ {quantity(measures.serving.residency_s, 's', DIGITS)}"
    if cost is not None and cost.usd_per_million_output_tokens is not None:
        return f"{working}; ${significant(cost.usd_per_million_output_tokens, DIGITS)} a million"
    return working


@dataclass(frozen=True, slots=True)
class Level:
    """One quantity at each level of answer; None where that level has none."""

    label: str
    rule_of_thumb: str | None
    ceiling: str | None
    expected: str | None
    gap: str


def levels(evaluation: Evaluation, *, binary: bool) -> list[Level]:
    """The same quantities by rule of thumb, at the ceiling and as expected, and what makes the gap."""
    measures, each = evaluation.measures, evaluation.deployment.tokens_per_step
    held, served, step_s, expected_s = (
        measures.memory,
        measures.serving,
        measures.decode.ceiling_s,
        measures.decode_s.mid,
    )

    def row(path: str, rule: str, ceiling: float | None, expected: float | None, gap: str) -> Level:
        output = output_at(path)

        def told(value: float | None) -> str | None:
            if value is None:
                return None
            return f"{value:,}" if output.form is Form.COUNT else quantity(value, output.unit, DIGITS, binary=binary)

        return Level(output.label, told(getattr(evaluation.rule_of_thumb, rule)), told(ceiling), told(expected), gap)

    return [
        row(
            "prefill.expected_s",
            "prefill_s",
            measures.prefill.ceiling_s,
            measures.prefill_s.mid,
            _prefill_gap(evaluation),
        ),
        row(
            "rule_of_thumb.decode_step_s",
            "decode_step_s",
            None,
            None,
            "what one reading of the weights takes, however many users share it",
        ),
        row(
            "decode.expected_s",
            "kv_step_s",
            step_s,
            expected_s,
            "the ceiling gathers the embedding instead of reading it, and stands half-way through the answers; a "
            "server adds what the chart of the gap shows",
        ),
        row(
            "rule_of_thumb.kv_tokens_per_s",
            "kv_tokens_per_s",
            held.running_sequences * each / step_s,
            None if expected_s is None else held.served_sequences * each / expected_s,
            "users ÷ step, at each level" if each == 1 else f"users × {significant(each, DIGITS)} tokens ÷ step",
        ),
        row(
            "serving.total_latency_s",
            "total_latency_s",
            served.total_latency_s.ceiling,
            served.total_latency_s.mid,
            "the rule of thumb leaves the cache out of each step; on a server other users’ prefills come between",
        ),
        row(
            "memory.kv_pool_tokens",
            "kv_capacity_tokens",
            held.kv_pool_tokens if has_tokens(evaluation) else None,
            None,
            _capacity_gap(evaluation),
        ),
        row(
            "memory.max_concurrency",
            "kv_capacity_users",
            held.max_concurrency,
            None,
            "tokens of cache ÷ tokens of a sequence",
        ),
    ]


def _capacity_gap(evaluation: Evaluation) -> str:
    gap = "the box’s memory against what the engine leaves of what it sees, in whole blocks"
    if evaluation.deployment.gpus == 1:
        return gap
    return f"{gap}; the rule adds the GPUs up as if nothing were copied to each"


def _prefill_gap(evaluation: Evaluation) -> str:
    saved = evaluation.deployment.workload.cached_prompt_tokens
    hit = f"; {saved:,} prompt tokens come from the prefix cache" if saved else ""
    return f"the head runs once and the embedding is gathered; attention is added{hit}"
