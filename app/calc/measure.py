"""All numbers of one deployment, without their derivations: what an evaluation, a lever and a comparison share."""

from dataclasses import dataclass, replace

from app.calc.cost import Cost, cost
from app.calc.deployment import Deployment
from app.calc.expected.answer import Ceilings, Crowd, Expected, expect
from app.calc.memory import Memory, memory
from app.calc.operators import decode_operators, prefill_operators
from app.calc.phase import PhaseCost, phase_cost
from app.calc.serving import Estimate, Serving, serving


@dataclass(frozen=True, slots=True)
class Measures:
    """Memory, the two phases, what users see, and what it costs.

    `prefill` and `decode` are ceilings, operator by operator; `prefill_s`, `decode_s` and `serving` have what is
    expected beside them, as far as the deployment is calibrated.
    """

    memory: Memory
    prefill: PhaseCost
    decode: PhaseCost
    prefill_s: Estimate
    decode_s: Estimate
    serving: Serving
    cost: Cost | None
    expected: Expected | None


def measure(deployment: Deployment) -> Measures:
    """The numbers of `deployment`. Ceilings of one that does not fit are told as if it did; what is expected has as
    many sequences run at a time as find room.

    Raises:
        UnknownPeakError: the accelerator publishes no rate for a type that the precision needs.
    """
    workload, accelerator = deployment.workload, deployment.accelerator
    held = memory(deployment)
    running = held.running_sequences
    batch, cached = replica_batch(deployment, running), workload.cached_prompt_tokens
    new = workload.prompt_tokens - cached
    prompt_operators = prefill_operators(deployment, new, cached)
    step_operators = decode_operators(deployment, batch, workload.mid_answer_tokens)
    prefill, decode = phase_cost(prompt_operators, accelerator), phase_cost(step_operators, accelerator)
    busy = prefill
    if deployment.split.data > 1:  # every rank prefills, and the experts work for all of them
        busy = phase_cost(prefill_operators(deployment, new, cached, min(batch, deployment.split.data)), accelerator)
    ceilings = serving(deployment, running, batch, prefill, decode, busy.compute_s)
    expected = None
    if deployment.calibration is not None:
        found = Ceilings(prefill, decode, decode, ceilings, prompt_operators, step_operators)
        expected = _expected(deployment, held, found)
    served = expected.serving if expected else ceilings
    return Measures(
        memory=held,
        prefill=prefill,
        decode=decode,
        prefill_s=expected.prefill if expected else Estimate(prefill.ceiling_s),
        decode_s=expected.decode if expected else Estimate(decode.ceiling_s),
        serving=served,
        cost=cost(accelerator, served.output_tokens_per_s.best_known, deployment.gpus),
        expected=expected,
    )


def _expected(deployment: Deployment, held: Memory, ceilings: Ceilings) -> Expected | None:
    """What is expected of those who find room, who may be fewer than were asked for."""
    served = replica_batch(deployment, held.served_sequences)
    if held.served_sequences != held.running_sequences:
        operators = decode_operators(deployment, served, deployment.workload.mid_answer_tokens)
        cost_of_crowd = phase_cost(operators, deployment.accelerator)
        ceilings = replace(ceilings, step_of_crowd=cost_of_crowd, step_operators=operators)
    return expect(deployment, Crowd(held.served_sequences, served, held.max_concurrency), ceilings)


def replica_batch(deployment: Deployment, running: int) -> int:
    """Sequences of the least busy replica, at least one: no replica's step takes less, so times stay floors."""
    return max(1, running // deployment.replicas)
