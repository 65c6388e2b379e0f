"""What users see: first token, pace, whole answer, and tokens a second, at the ceiling."""

from dataclasses import dataclass

from app.calc.broadcast import Quantity, maximum, scalar
from app.calc.deployment import Deployment
from app.calc.phase import PhaseCost
from app.calc.rule_of_thumb import total_latency_s


@dataclass(frozen=True, slots=True)
class Estimate:
    """One figure at three levels. `ceiling` cannot be beaten; the expected interval is None where none is claimed."""

    ceiling: float
    low: float | None = None
    mid: float | None = None
    high: float | None = None

    @property
    def best_known(self) -> float:
        """What is expected, or where nothing is the ceiling."""
        return self.ceiling if self.mid is None else self.mid


@dataclass(frozen=True, slots=True)
class Serving:
    """Seconds and tokens a second. Whole deployment, unless the name says a user.

    `tpot_s` is the time between tokens once they flow; `tpot_inclusive_s` the whole answer, first token and all,
    divided by its tokens: benchmarks report either under the same name.
    """

    ttft_s: Estimate
    tpot_s: Estimate
    tpot_inclusive_s: Estimate
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


def serving(
    deployment: Deployment, running: int, batch: int, prefill: PhaseCost, decode: PhaseCost, prefill_compute_s: float
) -> Serving:
    """The six figures at their ceilings, for `running` sequences at a time, `batch` of them on a replica.

    Stages of a pipeline may all work on one prompt at a time, on different chunks of it: the first token is then there
    after one stage's share of the prefill, which nothing beats. A decoded token has to pass all of them.
    `prefill_compute_s` is the arithmetic of a prefill while every data-parallel rank has one.
    """
    workload, split = deployment.workload, deployment.split
    tokens, stages = workload.output_tokens, split.pipeline
    ttft = prefill.ceiling_s / stages
    latency = scalar(total_latency_s(ttft, decode.ceiling_s, tokens))
    on_rank = max(1.0, batch / split.data)
    passes = min(1.0, on_rank / stages)  # fewer sequences than stages leave some of them idle
    batch_compute = on_rank * prefill_compute_s / stages + tokens * passes * decode.compute_s
    residency = scalar(residency_s(latency, batch_compute))
    throughput = scalar(output_tokens_per_s(running, tokens, residency))
    return Serving(
        ttft_s=Estimate(ttft),
        tpot_s=Estimate(decode.ceiling_s),
        tpot_inclusive_s=Estimate(latency / tokens),
        total_latency_s=Estimate(latency),
        output_tokens_per_s=Estimate(throughput),
        output_tokens_per_s_per_user=Estimate(1 / decode.ceiling_s),
        total_tokens_per_s=Estimate(throughput * workload.total_tokens / tokens),
        residency_s=residency,
        batch_compute_s=batch_compute,
    )
