"""One NVIDIA card, read field by field: which NVML call gives what, in which unit, and what may go wrong with it."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from app.probes.card import CELSIUS, PERCENT, WATTS, CardReadings
from app.probes.nvml_activity import without_activity
from app.probes.nvml_clocks import clocks, peak_bandwidth, throttle_reasons
from app.probes.nvml_device import Device
from app.probes.nvml_jetson import SYSFS, gpu_load, gpu_temperature
from app.probes.nvml_links import COUNTER_FIELDS, pcie_link
from app.probes.nvml_memory import device_memory, machine_memory
from app.probes.nvml_mig import mig_instances, mig_mode
from app.probes.nvml_state import CardState, CardStates
from app.probes.plausible import text, whole
from app.probes.reading import Absence, Reading
from app.probes.unified_memory import MEMINFO, is_integrated

VENDOR = "NVIDIA"

# Above these a figure is a sentinel or garbage: far over any part sold, far under 2^32 − 1.
POWER_CEILING_MW = 20_000_000
TEMPERATURE_CEILING_C = 150
CAPABILITY_CEILING = 99

# Constants of nvml.h.
_TEMPERATURE_GPU, _MEMORY_TEMPERATURE = 0, 82
_ADDRESSING_MODES = ("none", "HMM", "ATS")

_SIGNS_OF_LIFE = ("sm_clock_mhz", "memory_clock_mhz", "power_draw_w", "temperature_c")

_Readings = dict[str, Reading[Any]]


@dataclass(frozen=True, slots=True)
class KernelFiles:
    """Where the kernel tells of a machine whose memory and GPU are one with it."""

    meminfo: Path = MEMINFO
    sysfs: Path = SYSFS


def read_card(device: Device, index: int, states: CardStates, files: KernelFiles) -> CardReadings:
    """All readings of the card at `index` of the driver's order; `fault` is set where the card itself cannot be read.

    Power from mW, temperature in °C, clocks in MHz, utilisation in % of the driver's sample window (1/6 to 1 s), rates
    and activity since the last reading of the same card, by its UUID in `states`. Source: the NVML reference; the calls
    are those of nvidia-ml-py 13. No list of processes is read at all: a container would be shown other people's.
    """
    if device.fault is not None:
        return CardReadings.unreadable(index, VENDOR, device.fault)
    uuid, name = text(device.ask("nvmlDeviceGetUUID")), text(device.ask("nvmlDeviceGetName"))
    state = states.of(uuid.value) if uuid.value is not None else None
    mig, integrated = mig_mode(device), is_integrated(name.value)
    split = mig.value is True
    said = device_memory(device)
    readings: _Readings = {"uuid": uuid, "name": name, "mig_enabled": mig, **clocks(device), **_power_and_heat(device)}
    # A driver that answers zero to everything is to be told from a card that idles.
    alive = said.total.value is not None or any(readings[sign].value is not None for sign in _SIGNS_OF_LIFE)
    readings |= {
        "compute_capability": _compute_capability(device),
        "addressing_mode": _addressing_mode(device, alive=alive),
        "peak_bandwidth_bytes_per_s": peak_bandwidth(readings["memory_clock_max_mhz"], readings["memory_bus_bits"]),
        "throttle_reasons": throttle_reasons(device, alive=alive),
        **_utilization(device, split=split, alive=alive),
        **pcie_link(device, integrated=integrated),
        **_fields_and_rates(device, state, integrated=integrated, alive=alive),
        **_activity(device, state, split=split),
    }
    if integrated:
        readings |= _from_the_kernel(readings, files.sysfs)
    instances = mig_instances(device, state) if split else ()
    shared = machine_memory(device, said, files.meminfo) if integrated and not split else None
    return CardReadings.of(
        index,
        VENDOR,
        uuid.absence or Absence.NOT_SUPPORTED,  # What is counted between two snapshots is kept by the card's UUID.
        unified_memory=shared is not None,
        fault=device.fault,
        mig_instances=instances,
        **readings,
        **(shared or said).by_field(),
    )


def _fields_and_rates(device: Device, state: CardState | None, *, integrated: bool, alive: bool) -> _Readings:
    """The temperature of the memory and the rates of the links, from one call for all field values."""
    memory_temperature, *counts = device.field_values(_MEMORY_TEMPERATURE, *COUNTER_FIELDS)
    rates = state.links.rates(device, counts, integrated=integrated, alive=alive) if state is not None else {}
    return {"memory_temperature_c": whole(memory_temperature, CELSIUS, ceiling=TEMPERATURE_CEILING_C), **rates}


def _activity(device: Device, state: CardState | None, *, split: bool) -> _Readings:
    """A split card has none as a whole; its instances have."""
    if split:
        if state is not None:
            state.activity.release(device.nvml)
        return {**without_activity(Absence.MIG_ENABLED)}
    if state is None:
        return {}
    state.keep_instances((), device.nvml)
    return {**state.activity.read(device)}


def _utilization(device: Device, *, split: bool, alive: bool) -> _Readings:
    """Percent of the sample window; an idle zero is believed only of a card that answered something besides."""
    answer = Absence.MIG_ENABLED if split else device.ask("nvmlDeviceGetUtilizationRates")
    gpu, memory = (answer, answer) if isinstance(answer, Absence) else (answer.gpu, answer.memory)
    return {
        "gpu_utilization_percent": whole(gpu, PERCENT, ceiling=100, zero_is_absent=not alive),
        "memory_utilization_percent": whole(memory, PERCENT, ceiling=100, zero_is_absent=not alive),
    }


def _power_and_heat(device: Device) -> _Readings:
    temperature, _ = device.ask_newer_or_older(
        ("nvmlDeviceGetTemperatureV", _TEMPERATURE_GPU), ("nvmlDeviceGetTemperature", _TEMPERATURE_GPU)
    )
    return {
        "power_draw_w": _watts(device.ask("nvmlDeviceGetPowerUsage")),
        "power_limit_w": _watts(device.ask("nvmlDeviceGetEnforcedPowerLimit")),
        "temperature_c": whole(temperature, CELSIUS, ceiling=TEMPERATURE_CEILING_C),
    }


def _watts(answer: object) -> Reading[float]:
    milliwatts = whole(answer, "mW", ceiling=POWER_CEILING_MW)
    return Reading(None if milliwatts.value is None else milliwatts.value / 1000, WATTS, milliwatts.absence)


def _compute_capability(device: Device) -> Reading[str]:
    answer = device.ask("nvmlDeviceGetCudaComputeCapability")
    major, minor = (answer, answer) if isinstance(answer, Absence) else answer
    first = whole(major, "", ceiling=CAPABILITY_CEILING)
    second = whole(minor, "", ceiling=CAPABILITY_CEILING, zero_is_absent=False)
    absence = first.absence or second.absence
    return Reading(None, "", absence) if absence is not None else Reading(f"{first.value}.{second.value}")


def _addressing_mode(device: Device, *, alive: bool) -> Reading[str]:
    """Whether card and machine see each other's memory: not at all, by the kernel's HMM, or in hardware by ATS."""
    answer = device.ask("nvmlDeviceGetAddressingMode")
    mode = whole(answer, "", ceiling=len(_ADDRESSING_MODES) - 1, zero_is_absent=not alive)
    return Reading(None, "", mode.absence) if mode.value is None else Reading(_ADDRESSING_MODES[mode.value])


def _from_the_kernel(readings: _Readings, sysfs: Path) -> _Readings:
    """The load and the temperature of an integrated part, where its driver says neither."""
    asked = {"gpu_utilization_percent": gpu_load, "temperature_c": gpu_temperature}
    found = {name: ask(sysfs) for name, ask in asked.items() if readings[name].value is None}
    return {name: reading for name, reading in found.items() if reading.value is not None}
