"""The operators of a pass sorted by the kernel that runs them, with the peak of their type.

One list for a page, a sweep and the fit: what a kernel reaches is put beside it (`timed`), never mixed in.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from types import MappingProxyType

from app.calc.broadcast import Quantity
from app.calc.deployment import Deployment
from app.calc.dtypes import Dtype
from app.calc.model.layers.parts import OperatorName
from app.calc.time.expected.passes import Timed
from app.calc.time.expected.reached import Efficiency, Format, Kind, Reach, format_of
from app.calc.time.operators import Operator

_KINDS = MappingProxyType(
    {
        OperatorName.EMBEDDING: Kind.LIGHT,
        OperatorName.NORMS: Kind.LIGHT,
        OperatorName.CONVOLUTION: Kind.STATE,
        OperatorName.STATE: Kind.STATE,
        OperatorName.ATTENTION: Kind.ATTENTION,
        OperatorName.EXPERTS: Kind.EXPERTS,
        OperatorName.HEAD: Kind.HEAD,
        OperatorName.ALL_REDUCE: Kind.ALL_REDUCE,
    }
)
EXCHANGE_BYTES = Dtype.FP8.bytes + Dtype.BF16.bytes
"""Bytes of an element on its way to an expert and back: narrow there, wide back."""
EXCHANGES = 2


@dataclass(frozen=True, slots=True)
class Piece:
    """One operator: how it is timed, in which format, and what it computes and moves. `gpus` share a collective."""

    name: str
    kind: Kind
    format: Format
    flops: Quantity
    bytes: Quantity
    link_bytes: Quantity
    calls: int
    peak_flops_per_s: float
    gpus: int = 1


def pieces(
    deployment: Deployment, operators: Iterable[Operator], tokens: Quantity, drafted: Quantity | None = None
) -> list[Piece]:
    """The operators of a pass, and the exchange of tokens among data-parallel ranks that share out experts.

    Args:
        deployment: whose peaks and split count.
        operators: of the pass.
        tokens: of all ranks together, in the pass.
        drafted: those of a drafter's pass, where they are others.
    """
    found = []
    own_layers = deployment.speculation is not None and deployment.speculation.is_by_own_layers
    for op in operators:
        kind = _KINDS.get(op.name, Kind.MATRIX)
        peak = deployment.accelerator.peak(op.dtype)
        form = format_of(op.stored, op.dtype)
        name = f"draft_{op.name}" if op.is_drafting else op.name
        found.append(
            Piece(name, kind, form, op.flops, op.bytes, op.link_bytes, op.calls, peak, deployment.split.tensor)
        )
        if kind is Kind.EXPERTS and deployment.split.data > 1 and (own_layers or not op.is_drafting):
            sent = drafted if op.is_drafting and drafted is not None else tokens
            found.append(_exchange(deployment, op, sent, peak))
    return found


def _exchange(deployment: Deployment, op: Operator, tokens: Quantity, peak: float) -> Piece:
    """Each token goes to the GPUs that hold its experts, and back: n·(1 − (1 − 1/n)^k) of n in expectation."""
    split, gpus = deployment.split, deployment.split.expert_gpus
    chosen = deployment.architecture.chosen_experts
    reached = gpus * (1 - (1 - 1 / gpus) ** chosen) * (gpus - 1) / gpus
    moved = tokens / gpus * reached * deployment.architecture.hidden_size * EXCHANGE_BYTES * op.calls
    return Piece(
        Kind.EXCHANGE, Kind.EXCHANGE, Format.WIDE, 0.0, 0.0, moved, EXCHANGES * op.calls, peak, split.expert_gpus
    )


def timed(piece: Piece, efficiency: Efficiency) -> Timed:
    """The piece with what its kernel reaches."""
    reach = reach_of(piece, efficiency)
    return Timed(piece.kind, piece.flops, piece.bytes, piece.link_bytes, piece.calls, piece.peak_flops_per_s, reach)


def reach_of(piece: Piece, efficiency: Efficiency) -> Reach:
    """What the kernels of a piece reach."""
    if piece.kind in (Kind.MATRIX, Kind.HEAD):
        return efficiency.matrices[piece.format]
    if piece.kind is Kind.EXPERTS:
        return efficiency.experts[piece.format]
    if piece.kind is Kind.ATTENTION:
        return efficiency.attention
    if piece.kind is Kind.STATE:
        return efficiency.state
    if piece.kind is Kind.LIGHT:
        return efficiency.light
    if piece.kind is Kind.ALL_REDUCE:
        return efficiency.between(piece.gpus)
    return Reach(1.0, efficiency.link_share, efficiency.exchange_latency_s)
