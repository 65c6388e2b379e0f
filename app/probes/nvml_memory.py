"""A card's memory: what the driver says of it, and where it is the machine's own, what the system says."""

from dataclasses import dataclass
from pathlib import Path

from app.probes.card import BYTES
from app.probes.nvml_device import Device
from app.probes.plausible import at_most, whole
from app.probes.reading import Absence, Reading
from app.probes.unified_memory import SystemMemory, system_memory

MEMORY_CEILING_BYTES = 2**46
"""Above this a figure is a sentinel or garbage: far over any part sold."""

_MEMORY_V2 = 0x02000028


@dataclass(frozen=True, slots=True)
class DeviceMemory:
    """Total, used, reserved and free, each in bytes or absent for a reason."""

    total: Reading[int]
    used: Reading[int]
    reserved: Reading[int]
    free: Reading[int]

    def by_field(self) -> dict[str, Reading[int]]:
        """The readings by the names of the fields that show them."""
        return {
            "memory_total_bytes": self.total,
            "memory_used_bytes": self.used,
            "memory_reserved_bytes": self.reserved,
            "memory_free_bytes": self.free,
        }


def device_memory(device: Device) -> DeviceMemory:
    """The memory in the driver's words, by the newer call or else by the older, which counts the reserve as used."""
    newer = device.ask("nvmlDeviceGetMemoryInfo", _MEMORY_V2)
    answer = device.ask("nvmlDeviceGetMemoryInfo") if isinstance(newer, Absence) else newer
    if isinstance(answer, Absence):
        missing: Reading[int] = Reading.missing(answer, BYTES)
        return DeviceMemory(missing, missing, missing, missing)
    total = whole(answer.total, BYTES, ceiling=MEMORY_CEILING_BYTES)
    used, free = (_part_of(total, raw) for raw in (answer.used, answer.free))
    reserved = _part_of(total, newer if isinstance(newer, Absence) else newer.reserved)
    return DeviceMemory(total, used, reserved, free)


def machine_memory(device: Device, said: DeviceMemory, meminfo: Path) -> DeviceMemory | None:
    """What to show of an integrated part that shares the machine's memory; None where it does not look like one.

    Such a part answers NOT_SUPPORTED, zero, or a "free" that counts the page cache as used: the system is asked
    instead, and where it does not say, the driver's words stay. A lost card, a version mismatch or a refusal is none of
    these, whatever the card is called.
    """
    if said.total.absence not in (None, Absence.NOT_SUPPORTED, Absence.ZERO_READING) or device.fault is not None:
        return None
    system = system_memory(meminfo)
    return _shared(system) if isinstance(system, SystemMemory) else said


def _part_of(total: Reading[int], raw: object) -> Reading[int]:
    if total.value is None and not isinstance(raw, Absence):
        return total  # The parts of a whole that is zero or garbage are no better.
    return at_most(whole(raw, BYTES, ceiling=MEMORY_CEILING_BYTES, zero_is_absent=False), total)


def _shared(system: SystemMemory) -> DeviceMemory:
    return DeviceMemory(
        total=Reading(system.total_bytes, BYTES),
        used=Reading(system.total_bytes - system.available_bytes, BYTES),
        reserved=Reading.missing(Absence.NOT_SUPPORTED, BYTES),
        free=Reading(system.available_bytes, BYTES),
    )
