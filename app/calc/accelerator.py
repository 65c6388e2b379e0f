"""What the calculators need to know of an accelerator."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType

from app.calc.dtypes import Dtype


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
