"""Clocks, bandwidth and throttling of an NVIDIA GPU; on a Jetson, what the kernel's files tell."""

from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from app.machine.probes.accelerator import (
    BITS,
    BYTES_PER_SECOND,
    CELSIUS,
    MEGAHERTZ,
    PERCENT,
    whole,
)
from app.machine.probes.host import read_number, read_text
from app.machine.probes.nvml import Device
from app.machine.probes.reading import Absence, Reading

BITS_PER_BYTE = 8


# Constants of nvml.h.
_CLOCK_SM, _CLOCK_MEMORY = 1, 2
_EVENT_REASONS, _THROTTLE_REASONS = (
    "nvmlDeviceGetCurrentClocksEventReasons",
    "nvmlDeviceGetCurrentClocksThrottleReasons",
)

TRANSFERS_PER_CLOCK = 2  # The clock that NVML reports is half the data rate, for every kind of memory it knows.


CLOCK_CEILING_MHZ = 50_000


BUS_CEILING_BITS = 65_536


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
