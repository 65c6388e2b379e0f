"""All numbers of one deployment, without their derivations: what an evaluation, a lever and a comparison share."""

from dataclasses import dataclass

from app.calc.cost import Cost, cost
from app.calc.deployment import Deployment
from app.calc.memory import Memory, memory
from app.calc.operators import decode_operators, prefill_operators
from app.calc.phase import PhaseCost, phase_cost
from app.calc.serving import Serving, serving


@dataclass(frozen=True, slots=True)
class Measures:
    """Memory, the two phases, what users see, and what it costs."""

    memory: Memory
    prefill: PhaseCost
    decode: PhaseCost
    serving: Serving
    cost: Cost | None


def measure(deployment: Deployment) -> Measures:
    """The numbers of `deployment`. One that does not fit is measured all the same, as if it did.

    Raises:
        UnknownPeakError: the accelerator publishes no rate for a type that the precision needs.
    """
    workload, accelerator = deployment.workload, deployment.accelerator
    held = memory(deployment)
    batch, cached = replica_batch(deployment, held.running_sequences), workload.cached_prompt_tokens
    new = workload.prompt_tokens - cached
    prefill = phase_cost(prefill_operators(deployment, new, cached), accelerator)
    busy = prefill
    if deployment.split.data > 1:  # every rank prefills, and the experts work for all of them
        busy = phase_cost(prefill_operators(deployment, new, cached, min(batch, deployment.split.data)), accelerator)
    decode = phase_cost(decode_operators(deployment, batch, workload.mid_answer_tokens), accelerator)
    served = serving(deployment, held.running_sequences, batch, prefill, decode, busy.compute_s)
    return Measures(
        held, prefill, decode, served, cost(accelerator, served.output_tokens_per_s.ceiling, deployment.gpus)
    )


def replica_batch(deployment: Deployment, running: int) -> int:
    """Sequences of the least busy replica, at least one: no replica's step takes less, so times stay floors."""
    return max(1, running // deployment.replicas)
