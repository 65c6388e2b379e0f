"""What the calculators need to know of an accelerator.

Which weights a decode step reads: all of a dense model's, and of experts those that a token chose.

The roofline: the least time of work that must be computed at a peak and moved at a bandwidth, and which one binds.

Source: Williams, Waterman, Patterson, "Roofline: an insightful visual performance model", CACM 52(4), 2009.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import lru_cache
from types import MappingProxyType

from app.calc.broadcast import Quantity, maximum, minimum
from app.calc.dtypes import Dtype
from app.calc.model.architecture import Architecture
from app.calc.model.layers.parts import Weights
from app.calc.model.parameters import WeightPlan, count_parameters, layer_weights, side_table_params, text_weight_bytes


class MemoryBasis(StrEnum):
    """Which memory figure counts: what the driver reports, or the number on the box."""

    REPORTED = "reported"
    MARKETED = "marketed"


class UnknownPeakError(ValueError):
    """The accelerator has no known dense matrix rate for this element type."""

    def __init__(self, accelerator: str, dtype: Dtype, known: tuple[Dtype, ...]) -> None:
        self.accelerator, self.dtype, self.known = accelerator, dtype, known
        names = ", ".join(known) or "none"
        super().__init__(f"{accelerator} has no published dense {dtype} rate; known rates: {names}.")


FABRIC_BYTES_PER_S = 1.2e11
"""One-way rate from which a link between cards is a fabric; buses and bridges stay below."""


@dataclass(frozen=True, slots=True)
class Accelerator:
    """One device as software schedules it. Rates are dense, vendor peak, SI units; links are one-way.

    `memory_seen_bytes` is what an engine sees of the reported memory: the driver keeps a part. `shares_memory`: it is
    the machine's own, which other programs use too. `family` groups chips whose kernels are alike, `memory_kind` is
    `hbm`, `gddr` or `unified`: both only choose among fitted efficiencies, and may be unknown.
    """

    id: str
    name: str
    memory_marketed_bytes: float
    memory_reported_bytes: int | None
    bandwidth_bytes_per_s: float
    peak_flops_per_s: Mapping[Dtype, float] = field(default_factory=lambda: MappingProxyType({}))
    tdp_w: float | None = None
    price_usd_per_hour: float | None = None
    link_bytes_per_s_one_way: float | None = None
    memory_seen_bytes: float | None = None
    shares_memory: bool = False
    family: str = ""
    memory_kind: str = ""

    @property
    def is_bus_linked(self) -> bool:
        """True where peers reach each other over the machine's bus or a bridge, and not over a fabric."""
        return 0 < (self.link_bytes_per_s_one_way or 0) < FABRIC_BYTES_PER_S

    def memory_bytes(self, basis: MemoryBasis) -> float:
        """Usable memory in bytes.

        Where no driver figure is known the decimal marketed bytes stand in: vendors label binary GiB as GB, so that
        number is the safe side (every reported figure in the catalog is at least 0.93 GiB a marketed GB).
        """
        if basis is MemoryBasis.REPORTED and self.memory_reported_bytes is not None:
            return self.memory_reported_bytes
        return self.memory_marketed_bytes

    def seen_bytes(self, basis: MemoryBasis) -> float:
        """What an engine sees: less than the driver reports. Worked number: 79.18 GiB of an H100's 81,559 MiB."""
        if basis is MemoryBasis.REPORTED and self.memory_seen_bytes is not None:
            return self.memory_seen_bytes
        return self.memory_bytes(basis)

    def peak(self, dtype: Dtype) -> float:
        """Dense matrix rate in FLOP/s (or integer operations a second) for `dtype`.

        Raises:
            UnknownPeakError: the rate is unsupported or unpublished; it is never replaced by another type's.
        """
        try:
            return self.peak_flops_per_s[dtype]
        except KeyError:
            raise UnknownPeakError(self.name, dtype, tuple(self.peak_flops_per_s)) from None


def step_weight_bytes(architecture: Architecture, plan: WeightPlan, tokens: Quantity) -> Quantity:
    """Bytes of the language model's weights, less the experts that none of a step's `tokens` chose, and less tables
    beside the embedding, of which rows are gathered. The embedding counts whole: it is the back-of-envelope's figure.

    Worked number: Qwen3-30B-A3B in bf16 is 61.06 GB; one token reads 8 of 128 experts a layer, 6.71 GB in all.
    """
    total: Quantity = text_weight_bytes(count_parameters(architecture), plan)
    total = total - side_table_params(architecture) * plan.wide.bytes_per_weight
    for weights, copy_bytes in _experts(architecture, plan):
        total = total - copy_bytes * (weights.copies - weights.touched(tokens))
    return total


@lru_cache(maxsize=256)
def _experts(architecture: Architecture, plan: WeightPlan) -> tuple[tuple[Weights, float], ...]:
    """Each stack of experts with the bytes of one of them, over all layers alike."""
    found = []
    for group in architecture.layers:
        for weights in layer_weights(group, architecture.hidden_size):
            if weights.is_choice:
                narrow = weights.is_matrix and weights.group not in group.unquantized
                layout = plan.layout(weights.group) if narrow else plan.wide
                found.append((weights, group.count * weights.params * layout.bytes_per_weight))
    return tuple(found)


def coverage(architecture: Architecture, tokens: Quantity) -> Quantity:
    """Share of a model's expert weights that so many tokens choose: 1 − (1 − k ÷ E)^B; 1 without experts.

    Worked number: 8 of 128 experts: one token reads 6.25 %, four tokens 22.8 %.
    """
    read: Quantity = 0.0
    held = 0.0
    for group in architecture.layers:
        for weights in layer_weights(group, architecture.hidden_size):
            if weights.is_choice:
                read = read + group.count * weights.params * weights.touched(tokens)
                held += group.count * weights.params * weights.copies
    return read / held if held else 1.0


class Bound(StrEnum):
    """Which roof stops the work."""

    MEMORY_BANDWIDTH = "memory_bandwidth"
    COMPUTE = "compute"
    INTERCONNECT = "interconnect"


def ridge_flops_per_byte(peak_flops_per_s: Quantity, bandwidth_bytes_per_s: Quantity) -> Quantity:
    """Intensity at which the two roofs meet: peak ÷ bandwidth, in FLOP/B. Below it memory binds.

    Worked number: 989e12 ÷ 3.35e12 = 295.2 FLOP/B for an H100 SXM in 16 bits.
    """
    return peak_flops_per_s / bandwidth_bytes_per_s


def time_s(flops: Quantity, moved_bytes: Quantity, peak_flops_per_s: float, bandwidth_bytes_per_s: float) -> Quantity:
    """Least time of one operator: max(FLOP ÷ peak, bytes ÷ bandwidth), perfect overlap of the two.

    Worked number: 16.06e9 B ÷ 3.35e12 B/s = 4.79 ms for the weights of Llama-3.1-8B; their 16.06e9 FLOP take 0.016 ms.
    """
    return maximum(flops / peak_flops_per_s, moved_bytes / bandwidth_bytes_per_s)


def attainable_flops_per_s(
    intensity_flops_per_byte: Quantity, peak_flops_per_s: float, bandwidth_bytes_per_s: float
) -> Quantity:
    """Height of the roof above an intensity: min(peak, intensity × bandwidth)."""
    return minimum(peak_flops_per_s, intensity_flops_per_byte * bandwidth_bytes_per_s)
