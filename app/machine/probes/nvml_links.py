"""The memory of an NVIDIA card, which may be the machine's own, and of its MIG instances."""

from dataclasses import dataclass
from pathlib import Path

from app.machine.probes.accelerator import BYTES, MigInstance, at_most, text, whole
from app.machine.probes.host import SystemMemory, system_memory
from app.machine.probes.nvml import Device
from app.machine.probes.nvml_meters import INSTANCE_LIMIT, Activity, CardState, without_activity
from app.machine.probes.reading import Absence, Reading

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


MIG_ON = 1


def mig_mode(device: Device) -> Reading[bool]:
    """Whether the card is split."""
    answer = device.ask("nvmlDeviceGetMigMode")
    if answer is Absence.NOT_SUPPORTED or answer is Absence.FUNCTION_NOT_FOUND:
        return Reading(False)  # Cards and drivers from before MIG are certainly not split.
    return Reading.missing(answer) if isinstance(answer, Absence) else Reading(answer[0] == MIG_ON)


def mig_instances(parent: Device, state: CardState | None) -> tuple[MigInstance, ...]:
    """The instances of a split card that this process may see, in the driver's order; an empty place is left out.

    An instance whose handle is refused is there, and each of its readings says why it is missing. Without a `state`
    there is no activity: it needs two samples.
    """
    count = parent.ask("nvmlDeviceGetMaxMigDeviceCount")
    if isinstance(count, Absence) or not 0 < count <= INSTANCE_LIMIT:
        return ()
    found: list[MigInstance] = []
    uuids: list[str] = []
    for index in range(count):
        device = Device(parent.nvml, parent.ask("nvmlDeviceGetMigDeviceHandleByIndex", index))
        if device.fault is not Absence.NO_CARDS:
            uuid = text(device.ask("nvmlDeviceGetUUID")).value
            uuids += [uuid] if uuid else []
            found.append(_instance(parent, device, index, uuid, state))
    if state is not None:
        state.keep_instances(uuids, parent.nvml)
    return tuple(found)


def _instance(parent: Device, device: Device, index: int, uuid: str | None, state: CardState | None) -> MigInstance:
    memory = device_memory(device)
    activity = _activity(parent, device, uuid, state)
    return MigInstance(
        index=index,
        name=text(device.ask("nvmlDeviceGetName")),
        memory_total_bytes=memory.total,
        memory_used_bytes=memory.used,
        memory_free_bytes=memory.free,
        dram_activity_percent=activity["dram_activity_percent"],
        tensor_activity_percent=activity["tensor_activity_percent"],
    )


def _activity(parent: Device, device: Device, uuid: str | None, state: CardState | None) -> Activity:
    """That of the GPU instance, sampled through the parent; compute instances of one GPU instance share it."""
    number = device.ask("nvmlDeviceGetGpuInstanceId")
    if isinstance(number, Absence):
        return without_activity(number)
    if uuid is None or state is None:
        return without_activity(Absence.NEEDS_TWO_SAMPLES)
    return state.instance(uuid).read(parent, number)
