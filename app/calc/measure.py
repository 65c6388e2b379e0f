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
    batch, cached = held.running_sequences, workload.cached_prompt_tokens
    prefill = phase_cost(prefill_operators(deployment, workload.prompt_tokens - cached, cached), accelerator)
    decode = phase_cost(decode_operators(deployment, batch, workload.mid_answer_tokens), accelerator)
    served = serving(workload, batch, prefill, decode)
    return Measures(
        held, prefill, decode, served, cost(accelerator, served.output_tokens_per_s.ceiling, deployment.tensor_parallel)
    )
