"""What users see: first token, pace, whole answer, and tokens a second. Ceilings; expected values stand beside them."""

from dataclasses import dataclass

from app.calc.broadcast import Quantity, maximum, scalar
from app.calc.deployment import Workload
from app.calc.phase import PhaseCost
from app.calc.rule_of_thumb import total_latency_s


@dataclass(frozen=True, slots=True)
class Estimate:
    """One figure at three levels. `ceiling` cannot be beaten; the expected interval is None where none is claimed."""

    ceiling: float
    low: float | None = None
    mid: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True)
class Serving:
    """Seconds and tokens a second. Whole deployment, unless the name says a user."""

    ttft_s: Estimate
    tpot_s: Estimate
    total_latency_s: Estimate
    output_tokens_per_s: Estimate
    output_tokens_per_s_per_user: Estimate
    total_tokens_per_s: Estimate
    residency_s: float
    batch_compute_s: float


def residency_s(latency_s: Quantity, batch_compute_s: Quantity) -> Quantity:
    """Least time that a full batch of answers occupies a GPU: the longer of one answer and the arithmetic of them all.

    Sequences decode side by side, so one answer's latency covers all of them; but their prefills share one GPU, and
    however well they overlap with decoding, the arithmetic of the whole batch has to be done.
    """
    return maximum(latency_s, batch_compute_s)


def output_tokens_per_s(batch: Quantity, output_tokens: Quantity, residency: Quantity) -> Quantity:
    """Output tokens a second of a full batch, prefill included: B·n ÷ residency (Little's law)."""
    return batch * output_tokens / residency


def serving(workload: Workload, batch: int, prefill: PhaseCost, decode: PhaseCost) -> Serving:
    """The six figures at their ceilings, for `batch` sequences at a time."""
    tokens = workload.output_tokens
    latency = scalar(total_latency_s(prefill.ceiling_s, decode.ceiling_s, tokens))
    batch_compute = batch * prefill.compute_s + tokens * decode.compute_s
    residency = scalar(residency_s(latency, batch_compute))
    throughput = scalar(output_tokens_per_s(batch, tokens, residency))
    return Serving(
        ttft_s=Estimate(prefill.ceiling_s),
        tpot_s=Estimate(decode.ceiling_s),
        total_latency_s=Estimate(latency),
        output_tokens_per_s=Estimate(throughput),
        output_tokens_per_s_per_user=Estimate(1 / decode.ceiling_s),
        total_tokens_per_s=Estimate(throughput * workload.total_tokens / tokens),
        residency_s=residency,
        batch_compute_s=batch_compute,
    )
