"""The expected time of each operator, for a reader who wants to add them up by hand.

What the time of an answer goes to: bytes, arithmetic, the link, or what no peak shortens.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from app.calc.broadcast import scalar
from app.calc.deployment import Deployment
from app.calc.time.expected.answer import Expected
from app.calc.time.expected.floors import Piece, timed
from app.calc.time.expected.passes import LINKED, prompt_sides, smooth_max, step_sides
from app.calc.time.expected.reached import Efficiency, Kind
from app.calc.time.expected.timing import slope_of, wires


@dataclass(frozen=True, slots=True)
class OperatorTime:
    """One operator of one group of layers: seconds of its bytes and of its FLOP at the shares that it reaches, both
    joined smoothly, and its calls. A collective has the seconds of its volume in `time_s`.
    """

    name: str
    kind: Kind
    bandwidth_share: float
    rate_share: float
    bytes_s: float
    flops_s: float
    time_s: float
    calls: float
    call_s: float

    @property
    def calls_s(self) -> float:
        return self.calls * self.call_s


def step_operators(deployment: Deployment, expected: Expected) -> list[OperatorTime]:
    """Those of one decode step, in the order they run."""
    return _times(deployment, expected.efficiency, expected.step.pieces, chunked=False)


def prompt_operators(deployment: Deployment, expected: Expected) -> list[OperatorTime]:
    """Those of one prefill on an idle replica, all chunks together."""
    return _times(deployment.prompt_side, expected.prompt_efficiency, expected.prompt_pieces, chunked=True)


def _times(
    deployment: Deployment, efficiency: Efficiency, found: Iterable[Piece], *, chunked: bool
) -> list[OperatorTime]:
    result, lines = [], wires(deployment)
    cached = deployment.workload.cached_prompt_tokens
    slope = slope_of(deployment, efficiency, deployment.workload.prompt_tokens - cached, cached)
    for piece in found:
        op = timed(piece, efficiency)
        reach = op.reach
        calls = piece.calls * (scalar(slope.chunks.count) if chunked else 1.0)
        moved = computed = 0.0
        if piece.kind in LINKED:
            link = scalar(lines.link_bytes_per_s)
            took = scalar(piece.link_bytes) / (scalar(reach.bandwidth) * link) if link else 0.0
        else:
            sides = prompt_sides(op, lines, slope)[:2] if chunked else step_sides(op, lines)
            moved, computed = scalar(sides[0]), scalar(sides[1])
            took = scalar(smooth_max(moved, computed))
        shares = scalar(reach.bandwidth), scalar(reach.rate)
        result.append(OperatorTime(piece.name, piece.kind, *shares, moved, computed, took, calls, scalar(reach.call_s)))
    return result


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
