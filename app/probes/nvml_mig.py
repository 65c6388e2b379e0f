"""The MIG instances that a card is split into: each a name, a memory and an activity of its own."""

from app.probes.card import MigInstance
from app.probes.nvml_activity import Activity, without_activity
from app.probes.nvml_device import Device
from app.probes.nvml_memory import device_memory
from app.probes.nvml_state import INSTANCE_LIMIT, CardState
from app.probes.plausible import text
from app.probes.reading import Absence, Reading

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
