"""What users see: first token, pace, whole answer, and tokens a second, at the ceiling."""

from collections.abc import Callable
from dataclasses import dataclass

from app.calc.broadcast import Quantity, maximum, scalar
from app.calc.deployment import Deployment
from app.calc.time.phase import PhaseCost
from app.calc.time.rule_of_thumb import total_latency_s


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


def scaled(estimate: Estimate, change: Callable[[float], float]) -> Estimate:
    """The estimate of what follows from another one; where more of that makes less of this, the sides change places."""
    low, mid, high = (None if side is None else change(side) for side in (estimate.low, estimate.mid, estimate.high))
    if low is not None and high is not None and low > high:
        low, high = high, low
    return Estimate(change(estimate.ceiling), low, mid, high)


@dataclass(frozen=True, slots=True)
class Serving:
    """Seconds and tokens a second. Whole deployment, unless the name says a user.

    `tpot_s` is the time between tokens once they flow; `tpot_inclusive_s` the whole answer, first token and all,
    divided by its tokens: benchmarks report either under the same name. `residency_s` is how long a full batch occupies
    its GPUs, `stay_s` what it comes to where answers wait for nothing but the longest of a static batch.
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
    stay_s: Estimate


def residency_s(latency_s: Quantity, batch_compute_s: Quantity) -> Quantity:
    """Least time that a full batch of answers occupies a GPU: the longer of one answer and the arithmetic of them all.

    Sequences decode side by side, so one answer's latency covers all of them; but their prefills share one GPU, and
    however well they overlap with decoding, the arithmetic of the whole batch has to be done.
    """
    return maximum(latency_s, batch_compute_s)


def output_tokens_per_s(batch: Quantity, output_tokens: Quantity, residency: Quantity) -> Quantity:
    """Output tokens a second of a full batch, prefill included: B·n ÷ residency (Little's law)."""
    return batch * output_tokens / residency


def occupied_tokens(deployment: Deployment, batch: float) -> float:
    """Tokens for which a place of a batch is taken: those of an answer; in a static batch those of the longest one."""
    workload, split = deployment.workload, deployment.split
    if not deployment.engine.is_static:
        return float(workload.output_tokens)
    return workload.lengths.longest_of(max(1, round(batch / split.data)))


@dataclass(frozen=True, slots=True)
class PromptSide:
    """What happens before the first token: `prefill` of one prompt, and the arithmetic of one while every data-parallel
    rank has one; of a prefill pool the wait for the cache, and the requests a second that it gives.
    """

    prefill: PhaseCost
    compute_s: float
    link_wait_s: float = 0.0
    rate_per_s: float | None = None


def serving(deployment: Deployment, running: int, batch: int, prompts: PromptSide, decode: PhaseCost) -> Serving:
    """The six figures at their ceilings, for `running` sequences at a time, `batch` of them on a replica.

    Stages of a pipeline may all work on one prompt at a time, on different chunks of it: the first token is then there
    after one stage's share of the prefill, which nothing beats. A decoded token has to pass all of them. A step that
    checks guesses gives several tokens, and takes as much less for each.
    """
    workload, split = deployment.workload, deployment.split
    tokens, stages = workload.output_tokens, split.pipeline
    prompt_stages = (deployment.prefill_pool or deployment).split.pipeline
    ttft = prompts.prefill.ceiling_s / prompt_stages + prompts.link_wait_s
    tpot = decode.ceiling_s / deployment.tokens_per_step
    latency = scalar(total_latency_s(ttft, tpot, tokens))
    occupied = occupied_tokens(deployment, batch)
    stay = scalar(total_latency_s(ttft, tpot, occupied))
    on_rank = max(1.0, batch / split.data)
    passes = min(1.0, on_rank / stages)  # fewer sequences than stages leave some of them idle
    batch_compute = occupied / deployment.tokens_per_step * passes * decode.compute_s
    if prompts.rate_per_s is None:
        batch_compute += on_rank * prompts.compute_s / stages
    else:  # the pool cannot give more than this, however idle the others are
        batch_compute = max(batch_compute, running / prompts.rate_per_s)
    residency = scalar(residency_s(stay, batch_compute))
    throughput = scalar(output_tokens_per_s(running, tokens, residency))
    return Serving(
        ttft_s=Estimate(ttft),
        tpot_s=Estimate(tpot),
        tpot_inclusive_s=Estimate(latency / tokens),
        total_latency_s=Estimate(latency),
        output_tokens_per_s=Estimate(throughput),
        output_tokens_per_s_per_user=Estimate(1 / tpot),
        total_tokens_per_s=Estimate(throughput * workload.total_tokens / tokens),
        residency_s=residency,
        batch_compute_s=batch_compute,
        stay_s=Estimate(stay),
    )
