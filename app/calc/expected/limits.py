"""What the time of an answer goes to: bytes, arithmetic, the link, or what no peak shortens."""

from dataclasses import dataclass

from app.calc.broadcast import scalar
from app.calc.deployment import Deployment
from app.calc.expected.answer import Expected
from app.calc.expected.operators import OperatorTime, prompt_operators, step_operators
from app.calc.expected.passes import LINKED


@dataclass(frozen=True, slots=True)
class Spent:
    """Seconds of one request's stay, by what bounds them. An operator counts whole for its longer side."""

    memory_s: float
    compute_s: float
    link_s: float
    overhead_s: float

    def plus(self, other: "Spent", times: float = 1.0) -> "Spent":
        """This, and the other so many times."""
        return Spent(
            self.memory_s + times * other.memory_s,
            self.compute_s + times * other.compute_s,
            self.link_s + times * other.link_s,
            self.overhead_s + times * other.overhead_s,
        )


def spent(deployment: Deployment, expected: Expected) -> Spent:
    """Where the stay of a request goes: its steps, its prefill, the host, and the others' prefills, which are
    arithmetic and volume over the link: a busy machine reads the weights anyway.
    """
    n = deployment.workload.output_tokens
    steps = n / deployment.tokens_per_step
    step = _of(step_operators(deployment, expected))
    met = scalar(expected.stay.wait_s) + n * scalar(expected.stay.interference_s)
    host = steps * scalar(expected.step.host_s) + scalar(expected.efficiency.request_s)
    own = prompt_operators(deployment, expected)
    volume, marginal = sum(time.time_s for time in own if time.kind in LINKED), scalar(expected.prompt.marginal_s)
    linked = met * min(1.0, volume / marginal) if marginal else 0.0
    pool = expected.pool
    if pool is not None and pool.link_per_s < pool.prefill_per_s:
        linked = met  # the links of the prefill pool, not its arithmetic, keep prompts waiting
    return Spent(0.0, met - linked, linked + expected.link_wait_s, host).plus(step, steps).plus(_of(own))


def _of(times: list[OperatorTime]) -> Spent:
    memory = compute = link = overhead = 0.0
    for time in times:
        if time.kind in LINKED:
            link += time.time_s + time.calls_s
            continue
        overhead += time.calls_s
        if time.flops_s > time.bytes_s:
            compute += time.time_s
        else:
            memory += time.time_s
    return Spent(memory, compute, link, overhead)
