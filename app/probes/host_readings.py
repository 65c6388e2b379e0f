"""What a probe says of the machine itself."""

from dataclasses import dataclass

from app.probes.card import BYTES, PERCENT
from app.probes.reading import Reading, in_unit, units_of


@dataclass(frozen=True, slots=True)
class HostReadings:
    """The machine at one instant: no name of it, and nothing about its processes.

    `cpu_percent` is the mean over the logical processors since the last sample. `memory_available_bytes` is what a new
    process could be given without swapping.
    """

    cpu_percent: Reading[float] = in_unit(PERCENT)
    logical_cpus: Reading[int] = in_unit("")
    memory_total_bytes: Reading[int] = in_unit(BYTES)
    memory_available_bytes: Reading[int] = in_unit(BYTES)
    swap_used_bytes: Reading[int] = in_unit(BYTES)

    def document(self) -> dict[str, object]:
        """The JSON-ready form."""
        return {name: getattr(self, name).document() for name in units_of(HostReadings)}
