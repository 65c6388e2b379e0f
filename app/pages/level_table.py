"""The table of levels: the same quantities by rule of thumb, at the ceiling and as expected."""

from dataclasses import dataclass

from app.calc.evaluation import Evaluation
from app.calc.notation import quantity, significant
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
    rule, measures = evaluation.rule_of_thumb, evaluation.measures
    held, served = measures.memory, measures.serving

    def time(value: float | None) -> str | None:
        return None if value is None else quantity(value, "s", DIGITS)

    expected_step, each = measures.decode_s.mid, evaluation.deployment.tokens_per_step
    return [
        Level(
            "Prefill of one prompt",
            time(rule.prefill_s),
            time(measures.prefill.ceiling_s),
            time(measures.prefill_s.mid),
            _prefill_gap(evaluation),
        ),
        Level(
            "Decode step, weights alone",
            time(rule.decode_step_s),
            None,
            None,
            "what one reading of the weights takes, however many users share it",
        ),
        Level(
            "Decode step with the cache",
            time(rule.kv_step_s),
            time(measures.decode.ceiling_s),
            time(expected_step),
            "the ceiling gathers the embedding instead of reading it, and stands half-way through the answers; a "
            "server adds what the chart of the gap shows",
        ),
        Level(
            "Tokens a second in decode, all users",
            significant(rule.kv_tokens_per_s, DIGITS),
            significant(held.running_sequences * each / measures.decode.ceiling_s, DIGITS),
            None if expected_step is None else significant(held.served_sequences * each / expected_step, DIGITS),
            "users ÷ step, at each level" if each == 1 else f"users × {significant(each, DIGITS)} tokens ÷ step",
        ),
        Level(
            "Whole answer",
            time(rule.total_latency_s),
            time(served.total_latency_s.ceiling),
            time(served.total_latency_s.mid),
            "the rule of thumb leaves the cache out of each step; on a server other users’ prefills come between",
        ),
        Level(
            "Tokens of cache",
            f"{rule.kv_capacity_tokens:,}",
            f"{held.kv_pool_tokens:,}" if has_tokens(evaluation) else None,
            None,
            _capacity_gap(evaluation),
        ),
        Level(
            "Users at full length",
            f"{rule.kv_capacity_users:,}",
            f"{held.max_concurrency:,}",
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
