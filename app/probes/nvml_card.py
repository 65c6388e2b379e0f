"""One NVIDIA card, field by field: its clocks, a Jetson's own files, and which NVML call gives the rest."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from app.probes.card import BITS, BYTES_PER_SECOND, CELSIUS, MEGAHERTZ, PERCENT, WATTS, CardReadings
from app.probes.kernel_file import MEMINFO, is_integrated, read_number, read_text
from app.probes.nvml import Device
from app.probes.nvml_memory import device_memory, machine_memory, mig_instances, mig_mode
from app.probes.nvml_meters import COUNTER_FIELDS, CardState, CardStates, pcie_link, without_activity
from app.probes.plausible import text, whole
from app.probes.reading import Absence, Reading

BITS_PER_BYTE = 8
TRANSFERS_PER_CLOCK = 2  # The clock that NVML reports is half the data rate, for every kind of memory it knows.

CLOCK_CEILING_MHZ = 50_000
BUS_CEILING_BITS = 65_536

# Constants of nvml.h.
_CLOCK_SM, _CLOCK_MEMORY = 1, 2
_EVENT_REASONS, _THROTTLE_REASONS = (
    "nvmlDeviceGetCurrentClocksEventReasons",
    "nvmlDeviceGetCurrentClocksThrottleReasons",
)

IDLE = "idle"
"""The one reason that is no throttling: nothing to do."""

OTHER_REASON = "another reason"

THROTTLE_REASONS = {
    0x1: IDLE,
    0x2: "application clocks",
    0x4: "software power cap",
    0x8: "hardware slowdown",
    0x10: "sync boost",
    0x20: "software thermal slowdown",
    0x40: "hardware thermal slowdown",
    0x80: "power brake",
    0x100: "display clocks",
    0x200: "board limit",
    0x400: "reliability limit",
}
"""The bits of the driver's answer, in plain words; a bit that is not here is `OTHER_REASON`."""

_REASONS_CEILING = 2**31  # All ones is a sentinel, in 32 bits or in 64.


def clocks(device: Device) -> dict[str, Reading[int]]:
    """The present and the highest clocks in MHz and the memory bus in bits, by field."""
    return {
        "sm_clock_mhz": _clock(device, "nvmlDeviceGetClockInfo", _CLOCK_SM),
        "sm_clock_max_mhz": _clock(device, "nvmlDeviceGetMaxClockInfo", _CLOCK_SM),
        "memory_clock_mhz": _clock(device, "nvmlDeviceGetClockInfo", _CLOCK_MEMORY),
        "memory_clock_max_mhz": _clock(device, "nvmlDeviceGetMaxClockInfo", _CLOCK_MEMORY),
        "memory_bus_bits": whole(device.ask("nvmlDeviceGetMemoryBusWidth"), BITS, ceiling=BUS_CEILING_BITS),
    }


def peak_bandwidth(memory_clock_max_mhz: Reading[int], bus_width: Reading[int]) -> Reading[float]:
    """Peak memory bandwidth in B/s: 2 × maximum memory clock (MHz) × 10⁶ × bus width (bit) ÷ 8.

    Absent for the reason of whichever input is absent. To be compared with the catalog's figure, not believed: drivers
    have re-reported bus widths. Worked: 2,619 MHz × 5,120 bit → 3.352 TB/s (H100 SXM, published 3.35).
    """
    width_bits, clock_mhz = bus_width.value, memory_clock_max_mhz.value
    if width_bits is None or clock_mhz is None:
        return Reading(None, BYTES_PER_SECOND, bus_width.absence or memory_clock_max_mhz.absence)
    return Reading(TRANSFERS_PER_CLOCK * clock_mhz * 1e6 * width_bits / BITS_PER_BYTE, BYTES_PER_SECOND)


def throttle_reasons(device: Device, *, alive: bool) -> Reading[tuple[str, ...]]:
    """What holds the clocks down now, in plain words; nothing is an empty tuple, and no work at all is `IDLE`.

    "Nothing" is believed only of a card that is `alive`. `read_from` is the newer or the older name of the call.
    """
    answer, function = device.ask_newer_or_older((_EVENT_REASONS,), (_THROTTLE_REASONS,))
    bits = whole(answer, "", ceiling=_REASONS_CEILING, zero_is_absent=not alive)
    if bits.value is None:
        return Reading(None, "", bits.absence, function)
    return Reading(_names(bits.value), "", None, function)


def _names(bits: int) -> tuple[str, ...]:
    named = tuple(name for bit, name in THROTTLE_REASONS.items() if bits & bit)
    return (*named, OTHER_REASON) if bits & ~sum(THROTTLE_REASONS) else named


def _clock(device: Device, function: str, which: int) -> Reading[int]:
    answer: Any = device.ask(function, which)
    return whole(answer, MEGAHERTZ, ceiling=CLOCK_CEILING_MHZ)


SYSFS = Path("/sys")

PER_MILLE = 1000

# Where the file is has changed with the board and the release; the links in class/devfreq are the newest.
_LOAD_FILES = (
    "devices/gpu.0/load",
    "devices/platform/gpu.0/load",
    "class/devfreq/*gpu/device/load",
    "class/devfreq/*.ga10b/device/load",
    "class/devfreq/*.gv11b/device/load",
)
_ZONES = "class/thermal/thermal_zone*"
_ZONE_TYPES = frozenset({"gpu-thermal", "gpu-therm"})
_MILLIDEGREES = 1000
_CEILING_C = 150
_FILES_LOOKED_AT = 64


def gpu_load(sysfs: Path = SYSFS) -> Reading[int]:
    """The share of time in % in which the GPU was busy, from the kernel's per mille; zero is a value here."""
    for path in _found(sysfs, *_LOAD_FILES):
        per_mille = read_number(path)
        if per_mille is not Absence.NOT_SUPPORTED:
            share = whole(per_mille, PERCENT, ceiling=PER_MILLE, zero_is_absent=False)
            percent = None if share.value is None else round(share.value * 100 / PER_MILLE)
            return Reading(percent, PERCENT, share.absence, "sysfs load")
    return Reading.missing(Absence.NOT_SUPPORTED, PERCENT)


def gpu_temperature(sysfs: Path = SYSFS) -> Reading[int]:
    """The temperature in °C of the thermal zone of the GPU; on some boards it cannot be read while the GPU sleeps."""
    for zone in _found(sysfs, _ZONES):
        kind = read_text(zone / "type")
        if not isinstance(kind, Absence) and kind.lower() in _ZONE_TYPES:
            read = read_number(zone / "temp")
            degrees = read if isinstance(read, Absence) else read // _MILLIDEGREES
            reading = whole(degrees, CELSIUS, ceiling=_CEILING_C)
            return Reading(reading.value, CELSIUS, reading.absence, "sysfs thermal zone")
    return Reading.missing(Absence.NOT_SUPPORTED, CELSIUS)


def _found(sysfs: Path, *patterns: str) -> Iterator[Path]:
    for pattern in patterns:
        try:
            yield from sorted(islice(sysfs.glob(pattern), _FILES_LOOKED_AT))
        except OSError:
            continue


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
