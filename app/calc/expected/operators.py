"""The expected time of each operator, for a reader who wants to add them up by hand."""

from collections.abc import Iterable
from dataclasses import dataclass

from app.calc.broadcast import scalar
from app.calc.deployment import Deployment
from app.calc.expected.answer import Expected
from app.calc.expected.passes import LINKED, prompt_sides, smooth_max, step_sides
from app.calc.expected.pieces import Piece, timed
from app.calc.expected.reach import Efficiency, Kind
from app.calc.expected.timing import slope_of, wires


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
        """Floors of all calls."""
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
