"""One NVIDIA card, read field by field: which NVML call gives what, in which unit, and what may go wrong with it."""

from pathlib import Path
from typing import Any

from app.probes.card import BITS, BYTES, BYTES_PER_SECOND, CELSIUS, MEGAHERTZ, PERCENT, WATTS, CardReadings
from app.probes.nvml import Nvml
from app.probes.plausible import at_most, text, whole
from app.probes.reading import Absence, Reading
from app.probes.unified_memory import SystemMemory, is_integrated, system_memory

VENDOR = "NVIDIA"
BITS_PER_BYTE = 8
TRANSFERS_PER_CLOCK = 2  # The clock that NVML reports is half the data rate, for every kind of memory it knows.

# Above these a figure is a sentinel or garbage: far over any part sold, far under 2^32 − 1.
MEMORY_CEILING_BYTES = 2**46
CLOCK_CEILING_MHZ = 50_000
POWER_CEILING_MW = 20_000_000
TEMPERATURE_CEILING_C = 150
BUS_CEILING_BITS = 65_536

# Constants of nvml.h.
_CLOCK_SM, _CLOCK_MEMORY, _TEMPERATURE_GPU, _MEMORY_V2, _MIG_ON = 1, 2, 0, 0x02000028, 1

_ENDS_THE_CARD = frozenset({Absence.GPU_LOST, Absence.RESET_REQUIRED, Absence.VERSION_MISMATCH, Absence.NO_DRIVER})


class _Card:
    """Asks NVML about one card, and stops asking once the card is known to be gone."""

    def __init__(self, nvml: Nvml, index: int) -> None:
        self._nvml = nvml
        self._handle = nvml.call("nvmlDeviceGetHandleByIndex", index)
        self.fault: Absence | None = self._handle if isinstance(self._handle, Absence) else None

    def ask(self, function: str, *arguments: object) -> Any:
        if self.fault is not None:
            return self.fault
        answer = self._nvml.call(function, self._handle, *arguments)
        if isinstance(answer, Absence) and answer in _ENDS_THE_CARD:
            self.fault = answer
        return answer

    def ask_newer_or_older(self, newer: tuple[Any, ...], older: tuple[Any, ...]) -> Any:
        """The newer call's answer, else the older's; of two absences the one that says more than "no such function"."""
        first = self.ask(*newer)
        if not isinstance(first, Absence):
            return first
        second = self.ask(*older)
        return first if second is Absence.FUNCTION_NOT_FOUND else second


def read_card(nvml: Nvml, index: int, meminfo: Path) -> CardReadings:
    """All readings of the card at `index` of the driver's order; `fault` is set where the card itself cannot be read.

    Power from mW, temperature in °C, clocks in MHz, utilisation in % of the driver's sample window (1/6 to 1 s).
    Source: the NVML reference; the calls are those of nvidia-ml-py 13. Process lists are not read.
    """
    card = _Card(nvml, index)
    if card.fault is not None:
        return CardReadings.unreadable(index, VENDOR, card.fault)
    name = text(card.ask("nvmlDeviceGetName"))
    uuid = text(card.ask("nvmlDeviceGetUUID"))
    mig = _mig(card)
    memory, driver_total, unified = _memory(card, name.value, mig.value is True, meminfo)
    sm_clock_mhz, memory_clock_mhz = (
        _clock(card, "nvmlDeviceGetClockInfo", which) for which in (_CLOCK_SM, _CLOCK_MEMORY)
    )
    sm_max, memory_max = (_clock(card, "nvmlDeviceGetMaxClockInfo", which) for which in (_CLOCK_SM, _CLOCK_MEMORY))
    power_draw_w = _power(card, "nvmlDeviceGetPowerUsage")
    power_limit_w = _power(card, "nvmlDeviceGetEnforcedPowerLimit")
    temperature_c = _temperature(card)
    signs_of_life = (driver_total, sm_clock_mhz, memory_clock_mhz, power_draw_w, temperature_c)
    gpu_share, memory_share = _utilization(card, mig.value is True, any(r.value is not None for r in signs_of_life))
    bus_width = whole(card.ask("nvmlDeviceGetMemoryBusWidth"), BITS, ceiling=BUS_CEILING_BITS)
    total, used, reserved, free = memory
    return CardReadings(
        index=index,
        vendor=VENDOR,
        unified_memory=unified,
        fault=card.fault,
        uuid=uuid,
        name=name,
        mig_enabled=mig,
        memory_total_bytes=total,
        memory_used_bytes=used,
        memory_reserved_bytes=reserved,
        memory_free_bytes=free,
        gpu_utilization_percent=gpu_share,
        memory_utilization_percent=memory_share,
        sm_clock_mhz=sm_clock_mhz,
        sm_clock_max_mhz=sm_max,
        memory_clock_mhz=memory_clock_mhz,
        memory_clock_max_mhz=memory_max,
        power_draw_w=power_draw_w,
        power_limit_w=power_limit_w,
        temperature_c=temperature_c,
        memory_bus_bits=bus_width,
        peak_bandwidth_bytes_per_s=peak_bandwidth(memory_max, bus_width),
    )


def peak_bandwidth(memory_clock_max_mhz: Reading[int], bus_width: Reading[int]) -> Reading[float]:
    """Peak memory bandwidth in B/s: 2 × maximum memory clock (MHz) × 10⁶ × bus width (bit) ÷ 8.

    Absent for the reason of whichever input is absent. To be compared with the catalog's figure, not believed: drivers
    have re-reported bus widths. Worked: 2,619 MHz × 5,120 bit → 3.352 TB/s (H100 SXM, published 3.35).
    """
    width_bits, clock_mhz = bus_width.value, memory_clock_max_mhz.value
    if width_bits is None or clock_mhz is None:
        return Reading(None, BYTES_PER_SECOND, bus_width.absence or memory_clock_max_mhz.absence)
    return Reading(TRANSFERS_PER_CLOCK * clock_mhz * 1e6 * width_bits / BITS_PER_BYTE, BYTES_PER_SECOND)


def _mig(card: _Card) -> Reading[bool]:
    answer = card.ask("nvmlDeviceGetMigMode")
    if answer is Absence.NOT_SUPPORTED or answer is Absence.FUNCTION_NOT_FOUND:
        return Reading(False)  # Cards and drivers from before MIG are certainly not split.
    return Reading.missing(answer) if isinstance(answer, Absence) else Reading(answer[0] == _MIG_ON)


_Memory = tuple[Reading[int], Reading[int], Reading[int], Reading[int]]


def _memory(card: _Card, name: str | None, mig: bool, meminfo: Path) -> tuple[_Memory, Reading[int], bool]:
    """Total, used, reserved and free; the total in the driver's own words; and whether the memory is the machine's."""
    newer = card.ask("nvmlDeviceGetMemoryInfo", _MEMORY_V2)
    answer = card.ask("nvmlDeviceGetMemoryInfo") if isinstance(newer, Absence) else newer
    if isinstance(answer, Absence):
        total = used = reserved = free = Reading[int].missing(answer, BYTES)
    else:
        total = whole(answer.total, BYTES, ceiling=MEMORY_CEILING_BYTES)
        used, free = (_part_of(total, raw) for raw in (answer.used, answer.free))
        reserved = _part_of(total, newer if isinstance(newer, Absence) else newer.reserved)
    # An integrated part answers NOT_SUPPORTED, zero, or a "free" that counts the page cache as used: ask the system.
    # A lost card, a version mismatch, a refusal or a MIG slice is none of these, whatever the card is called.
    soft = total.absence in (None, Absence.NOT_SUPPORTED, Absence.ZERO_READING)
    if not (is_integrated(name) and soft) or mig or card.fault is not None:
        return (total, used, reserved, free), total, False
    system = system_memory(meminfo)
    if isinstance(system, SystemMemory):
        return _shared(system), total, True
    return (total, used, reserved, free), total, True


def _part_of(total: Reading[int], raw: object) -> Reading[int]:
    if total.value is None and not isinstance(raw, Absence):
        return total  # The parts of a whole that is zero or garbage are no better.
    return at_most(whole(raw, BYTES, ceiling=MEMORY_CEILING_BYTES, zero_is_absent=False), total)


def _shared(system: SystemMemory) -> _Memory:
    return (
        Reading(system.total_bytes, BYTES),
        Reading(system.total_bytes - system.available_bytes, BYTES),
        Reading.missing(Absence.NOT_SUPPORTED, BYTES),
        Reading(system.available_bytes, BYTES),
    )


def _utilization(card: _Card, mig: bool, alive: bool) -> tuple[Reading[int], Reading[int]]:
    """Percent of the sample window; an idle zero is believed only of a card that answered something besides."""
    answer = Absence.MIG_ENABLED if mig else card.ask("nvmlDeviceGetUtilizationRates")
    raw = (answer, answer) if isinstance(answer, Absence) else (answer.gpu, answer.memory)
    gpu, memory = (whole(part, PERCENT, ceiling=100, zero_is_absent=not alive) for part in raw)
    return gpu, memory


def _clock(card: _Card, function: str, which: int) -> Reading[int]:
    return whole(card.ask(function, which), MEGAHERTZ, ceiling=CLOCK_CEILING_MHZ)


def _power(card: _Card, function: str) -> Reading[float]:
    milliwatts = whole(card.ask(function), "mW", ceiling=POWER_CEILING_MW)
    return Reading(None if milliwatts.value is None else milliwatts.value / 1000, WATTS, milliwatts.absence)


def _temperature(card: _Card) -> Reading[int]:
    raw = card.ask_newer_or_older(
        ("nvmlDeviceGetTemperatureV", _TEMPERATURE_GPU), ("nvmlDeviceGetTemperature", _TEMPERATURE_GPU)
    )
    return whole(raw, CELSIUS, ceiling=TEMPERATURE_CEILING_C)
