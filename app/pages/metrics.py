"""The six numbers at the top of an answer, and the table of levels below them: words and figures, ready to show."""

from dataclasses import dataclass

from app.calc.evaluation import Evaluation
from app.calc.explanation import Explanation
from app.calc.notation import quantity, significant
from app.calc.phase import OperatorCost

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


@dataclass(frozen=True, slots=True)
class Level:
    """One quantity at each level of answer; None where that level has none."""

    label: str
    rule_of_thumb: str | None
    ceiling: str | None
    gap: str


def metrics(evaluation: Evaluation, *, binary: bool) -> list[Metric]:
    """Memory, room, first token, pace, whole answer, throughput."""
    by_id = {explanation.id: explanation for explanation in evaluation.explanations}
    held, served, workload = evaluation.measures.memory, evaluation.measures.serving, evaluation.deployment.workload
    users, level = held.running_sequences, _capacity_level(evaluation)

    def metric(
        id_: str,
        label: str,
        text: str,
        scope: str,
        beside: str,
        explained: tuple[str, ...],
        level: tuple[str, str] = CEILING,
        operators: tuple[OperatorCost, ...] = (),
        interval: str = "",
    ) -> Metric:
        value, _, unit = text.partition(" ")
        found = tuple(by_id[key] for key in explained if key in by_id)
        return Metric(id_, label, value, unit, scope, *level, beside, found, operators, interval)

    def written(value: float, unit: str) -> str:
        return quantity(value, unit, DIGITS, binary=binary)

    return [
        metric(
            "memory",
            "Memory in use",
            written(held.needed_bytes, "B"),
            "per GPU",
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
            "Room for",
            f"{held.max_concurrency:,} {'sequence' if held.max_concurrency == 1 else 'sequences'}",
            "per GPU" if evaluation.deployment.gpus == 1 else f"all {evaluation.deployment.gpus:,} GPUs",
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
        ),
        metric(
            "ttft",
            "First token (TTFT)",
            written(served.ttft_s.ceiling, "s"),
            "per user",
            f"prefill of {workload.prompt_tokens:,} tokens{_target(served.ttft_s.ceiling, workload.slo_ttft_s)}",
            (
                "serving.ttft_s.ceiling",
                "prefill.ceiling_s",
                "prefill.flops",
                "prefill.bytes",
                "prefill.intensity_flops_per_byte",
            ),
            operators=evaluation.measures.prefill.operators,
        ),
        metric(
            "tpot",
            "Each token (TPOT)",
            written(served.tpot_s.ceiling, "s"),
            "per user",
            f"{significant(served.output_tokens_per_s_per_user.ceiling, DIGITS)} tokens/s while it streams"
            f"{_target(served.tpot_s.ceiling, workload.slo_tpot_s)}",
            (
                "serving.tpot_s.ceiling",
                "decode.ceiling_s",
                "decode.flops",
                "decode.bytes",
                "decode.intensity_flops_per_byte",
                "serving.output_tokens_per_s_per_user.ceiling",
            ),
            operators=evaluation.measures.decode.operators,
        ),
        metric(
            "latency",
            "Whole answer",
            written(served.total_latency_s.ceiling, "s"),
            "per user",
            f"{workload.output_tokens:,} tokens",
            ("serving.total_latency_s.ceiling",),
        ),
        metric(
            "throughput",
            "Throughput",
            f"{significant(served.output_tokens_per_s.ceiling, DIGITS)} tokens/s",
            "all users" if users > 1 else "one user",
            _price(evaluation),
            (
                "serving.output_tokens_per_s.ceiling",
                "serving.total_tokens_per_s.ceiling",
                "cost.usd_per_million_output_tokens",
                "cost.joules_per_output_token",
            ),
        ),
    ]


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


def _has_tokens(evaluation: Evaluation) -> bool:
    """False where an engine counts whole slots at its longest context, of which none fits: that is no empty pool."""
    held = evaluation.measures.memory
    return held.kv_pool_tokens > 0 or held.max_concurrency == 0


def _pool(evaluation: Evaluation, *, binary: bool) -> str:
    held = evaluation.measures.memory
    if _has_tokens(evaluation):
        return f"{held.kv_pool_tokens:,} tokens"
    return quantity(held.per_gpu.kv_pool_bytes, "B", DIGITS, binary=binary)


def _of_each(evaluation: Evaluation) -> str:
    """The pool is that of one engine: of a data-parallel rank, or of a replica."""
    deployment = evaluation.deployment
    if deployment.split.data > 1:
        return " on each data rank"
    return " on each replica" if deployment.replicas > 1 else ""


def _target(ceiling_s: float, target_s: float | None) -> str:
    """What a ceiling can say of a target: it can rule it out, and cannot promise it."""
    if target_s is None:
        return ""
    said = "out of reach" if ceiling_s > target_s else "not ruled out"
    return f"; target {quantity(target_s, 's', DIGITS)}: {said}"


def _price(evaluation: Evaluation) -> str:
    cost, users = evaluation.measures.cost, evaluation.measures.memory.running_sequences
    output = evaluation.deployment.workload.output_tokens
    working = f"{users:,} × {output:,} tokens ÷ {quantity(evaluation.measures.serving.residency_s, 's', DIGITS)}"
    if cost is not None and cost.usd_per_million_output_tokens is not None:
        return f"{working}; ${significant(cost.usd_per_million_output_tokens, DIGITS)} a million"
    return working


def levels(evaluation: Evaluation, *, binary: bool) -> list[Level]:
    """The same quantities by rule of thumb and at the ceiling, and what makes the gap."""
    rule, measures = evaluation.rule_of_thumb, evaluation.measures
    held, served = measures.memory, measures.serving

    def time(value: float) -> str:
        return quantity(value, "s", DIGITS)

    return [
        Level(
            "Prefill of one prompt", time(rule.prefill_s), time(measures.prefill.ceiling_s), _prefill_gap(evaluation)
        ),
        Level(
            "Decode step, weights alone",
            time(rule.decode_step_s),
            None,
            "what one reading of the weights takes, however many users share it",
        ),
        Level(
            "Decode step with the cache",
            time(rule.kv_step_s),
            time(measures.decode.ceiling_s),
            "the ceiling gathers the embedding instead of reading it, and stands half-way through the answers",
        ),
        Level(
            "Tokens a second in decode, all users",
            significant(rule.kv_tokens_per_s, DIGITS),
            significant(held.running_sequences / measures.decode.ceiling_s, DIGITS),
            "users ÷ step, on both sides",
        ),
        Level(
            "Whole answer",
            time(rule.total_latency_s),
            time(served.total_latency_s.ceiling),
            "the rule of thumb leaves the cache out of each step",
        ),
        Level(
            "Tokens of cache",
            f"{rule.kv_capacity_tokens:,}",
            f"{held.kv_pool_tokens:,}" if _has_tokens(evaluation) else None,
            _capacity_gap(evaluation),
        ),
        Level(
            "Users at full length",
            f"{rule.kv_capacity_users:,}",
            f"{held.max_concurrency:,}",
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
