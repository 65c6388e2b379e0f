"""The table of levels: the same quantities by rule of thumb, at the ceiling and as expected."""

from dataclasses import dataclass

from app.calc.evaluation import Evaluation
from app.calc.notation import quantity, significant
from app.calc.output import Form
from app.calc.outputs import output_at
from app.pages.metrics import DIGITS, has_tokens


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
