"""The ceiling of a phase: its operators timed one by one at the vendor's peak, and summed."""

from collections.abc import Iterable
from dataclasses import dataclass

from app.calc.accelerator import Accelerator, Bound, time_s
from app.calc.broadcast import Quantity, maximum, scalar
from app.calc.model.layers.parts import OperatorName
from app.calc.time.operators import Operator


@dataclass(frozen=True, slots=True)
class OperatorCost:
    """One operator of a phase, all layers together, on one GPU. Times are ceilings: no server is faster.

    `link_bytes` go to other GPUs in one direction; an operator of that kind touches no memory here.
    """

    name: OperatorName
    flops: float
    bytes: float
    time_s: float
    compute_s: float
    bound: Bound
    link_bytes: float = 0.0

    @property
    def intensity_flops_per_byte(self) -> float:
        """FLOP for each byte moved; 0 for an operator that moves none."""
        return self.flops / self.bytes if self.bytes else 0.0


@dataclass(frozen=True, slots=True)
class PhaseCost:
    """A phase on one GPU. `ceiling_s` sums the operators' times.

    `overlapped_s` is the most lenient floor: all arithmetic of the phase against all its bytes, as if every operator
    could run beside every other.
    """

    flops: float
    bytes: float
    ceiling_s: float
    overlapped_s: float
    compute_s: float
    bound: Bound
    operators: tuple[OperatorCost, ...]

    @property
    def intensity_flops_per_byte(self) -> float:
        """FLOP for each byte moved, over the whole phase."""
        return self.flops / self.bytes


def ceiling_s(operators: Iterable[Operator], accelerator: Accelerator) -> Quantity:
    """Least time of a phase: Σ max(FLOP ÷ peak, bytes ÷ bandwidth) over its operators. Broadcasts.

    Worked number: a decode step of Llama-3.1-8B (bf16, H100 SXM, 4,096 tokens) is 4.64 ms at batch 1, 14.74 ms at 64.
    """
    total: Quantity = 0.0
    for op in operators:
        if op.name is OperatorName.ALL_REDUCE:
            total = total + link_s(op.link_bytes, accelerator)
        else:
            total = total + time_s(op.flops, op.bytes, accelerator.peak(op.dtype), accelerator.bandwidth_bytes_per_s)
    return total


def link_s(link_bytes: Quantity, accelerator: Accelerator) -> Quantity:
    """Least time of bytes over the link in one direction; nothing where the link is unknown, which keeps the floor."""
    link = accelerator.link_bytes_per_s_one_way
    return link_bytes / link if link else 0.0 * link_bytes


def overlapped_s(operators: Iterable[Operator], accelerator: Accelerator) -> Quantity:
    """The more lenient floor: max(Σ FLOP ÷ peak, Σ bytes ÷ bandwidth, Σ link bytes ÷ link). Broadcasts."""
    compute: Quantity = 0.0
    moved: Quantity = 0.0
    linked: Quantity = 0.0
    for op in operators:
        compute = compute + op.flops / accelerator.peak(op.dtype)
        moved, linked = moved + op.bytes, linked + link_s(op.link_bytes, accelerator)
    return maximum(maximum(compute, moved / accelerator.bandwidth_bytes_per_s), linked)


def phase_cost(operators: list[Operator], accelerator: Accelerator) -> PhaseCost:
    """Totals of one phase and its operators by name; scalars only.

    The phase is bound by compute, or by the link, when operators so bound take more than half of its time.
    """
    bandwidth = accelerator.bandwidth_bytes_per_s
    rows: dict[OperatorName, list[float]] = {}  # FLOP, bytes, time, compute time, link bytes
    compute_bound_s = 0.0
    for op in operators:
        flops, moved, linked = scalar(op.flops), scalar(op.bytes), scalar(op.link_bytes)
        compute, transfer = flops / accelerator.peak(op.dtype), moved / bandwidth
        took = max(compute, transfer) + (scalar(link_s(linked, accelerator)) if linked else 0.0)
        if compute > transfer:
            compute_bound_s += took
        name = OperatorName.DRAFT if op.is_drafting and op.name is not OperatorName.ALL_REDUCE else op.name
        row = rows.setdefault(name, [0.0] * 5)  # another group of layers may have it too, or the last norm
        for column, value in enumerate((flops, moved, took, compute, linked)):
            row[column] += value
    costs = [_operator_cost(name, rows[name], bandwidth) for name in OperatorName if name in rows]
    total_s, compute_s = sum(c.time_s for c in costs), sum(c.compute_s for c in costs)
    moved, link_time_s = sum(c.bytes for c in costs), sum(c.time_s for c in costs if c.bound is Bound.INTERCONNECT)
    return PhaseCost(
        flops=sum(c.flops for c in costs),
        bytes=moved,
        ceiling_s=total_s,
        overlapped_s=max(compute_s, moved / bandwidth, link_time_s),
        compute_s=compute_s,
        bound=_bound(total_s, compute_bound_s, link_time_s),
        operators=tuple(costs),
    )


def _operator_cost(name: OperatorName, row: list[float], bandwidth: float) -> OperatorCost:
    flops, moved, took, compute, linked = row
    side = Bound.COMPUTE if compute > moved / bandwidth else Bound.MEMORY_BANDWIDTH
    return OperatorCost(name, flops, moved, took, compute, Bound.INTERCONNECT if linked else side, linked)


def _bound(total_s: float, compute_bound_s: float, link_s: float) -> Bound:
    if compute_bound_s > total_s / 2:
        return Bound.COMPUTE
    return Bound.INTERCONNECT if link_s > total_s / 2 else Bound.MEMORY_BANDWIDTH
