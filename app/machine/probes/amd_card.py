"""One AMD card through amdsmi, field by field: which call gives what, in which unit, and what may go wrong with it."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from app.machine.probes.accelerator import BITS, CELSIUS, MEGAHERTZ, PERCENT, WATTS, CardReadings, text, whole
from app.machine.probes.amd_meters import CardMeters, Pool, card_memory, is_integrated, peak_bandwidth
from app.machine.probes.amd_smi import AmdSmi, Choice, figure, milliwatts
from app.machine.probes.reading import Absence, Reading

VENDOR = "AMD"

# Above these a figure is a sentinel or garbage: far over any part sold.
CLOCK_CEILING_MHZ = 50_000
POWER_CEILING_MW = 20_000_000
TEMPERATURE_CEILING_C = 150
BUS_CEILING_BITS = 65_536
LANES_CEILING = 32

ENDS_THE_CARD = frozenset({Absence.GPU_LOST, Absence.RESET_REQUIRED, Absence.NO_DRIVER})
WHOLE_CARD = "SPX"
"""The mode of partition in which one card is one device."""

# MI300 and MI325X (the first three), MI350X and MI355X: the kernel's drivers for these fill the memory's activity from
# the firmware's "DRAM bandwidth utilization", those for other cards from the activity of the memory's clock domain.
_BANDWIDTH_TARGETS = ("gfx940", "gfx941", "gfx942", "gfx950")

GENERATION_OF_MEGATRANSFERS = {2_500: 1, 5_000: 2, 8_000: 3, 16_000: 4, 32_000: 5, 64_000: 6}
"""The PCIe generation by its rate in MT/s."""

_BYTES_PER_MIB = 2**20  # The library writes MB, and divides by 2^20.
_VRAM, _GTT = Choice("AmdSmiMemoryType", "VRAM"), Choice("AmdSmiMemoryType", "GTT")
_GRAPHICS, _MEMORY = Choice("AmdSmiClkType", "GFX"), Choice("AmdSmiClkType", "MEM")
_NOW = Choice("AmdSmiTemperatureMetric", "CURRENT")
_DRAWN = ("current_socket_power", "average_socket_power", "socket_power")


Fields = dict[str, Any]
"""Readings by the names of the fields that show them."""


class _Card:
    def __init__(self, smi: AmdSmi, handle: object) -> None:
        self._smi, self._handle = smi, handle
        self.fault: Absence | None = None

    def ask(self, function: str, *arguments: object) -> Any:
        """What the function answers for this card. "Not found" is said of a sensor too, so it condemns no card here."""
        answer = self._smi.call(function, self._handle, *arguments)
        return Absence.NOT_SUPPORTED if answer is Absence.GPU_LOST else answer

    def ask_vital(self, function: str, *arguments: object) -> Any:
        """What every card that is there can answer; `fault` says if it cannot."""
        answer = self._smi.call(function, self._handle, *arguments)
        if isinstance(answer, Absence) and answer in ENDS_THE_CARD:
            self.fault = self.fault or answer
        return answer


def read_card(
    smi: AmdSmi,
    handle: object,
    index: int,
    *,
    uuid: Reading[str],
    meters: CardMeters,
    revision: Callable[[], object],
    meminfo: Path,
) -> tuple[CardReadings, bool]:
    """All readings of one card, and whether it is whole (not one of the partitions that a card is split into).

    `fault` is set where the card itself cannot be read. `revision` gives that of the kernel's metrics, and is called if
    the library does not know it. Power from W or µW, temperature in °C, clocks in MHz. Process lists are not read.

    Source: the binding's and the library's interfaces, release 7.0. Not read: PCIe traffic, which the library gives for
    both directions together and in a unit on which its own texts do not agree, or with a call that sleeps for 1 s.
    """
    card = _Card(smi, handle)
    asic = card.ask_vital("amdsmi_get_gpu_asic_info")
    vram_total = card.ask_vital("amdsmi_get_gpu_memory_total", _VRAM)
    if card.fault is not None:
        return CardReadings.unreadable(index, VENDOR, card.fault), True
    metrics = card.ask("amdsmi_get_gpu_metrics_info")
    known_revision = figure(metrics, "common_header.format_revision")
    target = figure(asic, "target_graphics_version")
    integrated = is_integrated(revision() if isinstance(known_revision, Absence) else known_revision, target)
    memory = _memory(card, vram_total, integrated, meminfo)
    clocks = _clocks(card, metrics)
    power = _power(card)
    temperatures = _temperatures(card)
    whole_card = _is_whole(card)
    alive = whole_card and is_alive(memory, clocks, power, temperatures)
    vram = card.ask("amdsmi_get_gpu_vram_info")
    bus_bits = whole(figure(vram, "vram_bit_width"), BITS, ceiling=BUS_CEILING_BITS)
    peak = peak_bandwidth(
        figure(vram, "vram_max_bandwidth"),
        clocks["memory_clock_max_mhz"],
        bus_bits,
        smi.name_of("AmdSmiVramType", figure(vram, "vram_type")),
    )
    readings: Fields = {
        **memory,
        **activity(card.ask("amdsmi_get_gpu_activity"), alive=alive, of_bandwidth=target in _BANDWIDTH_TARGETS),
        **clocks,
        **power,
        **temperatures,
        **_pcie(card, integrated),
        **meters.link_rates(card.ask("amdsmi_get_link_metrics")),
        "uuid": uuid,
        "name": text(figure(asic, "market_name")),
        "throttle_reasons": meters.throttle_reasons(metrics),
        "memory_bus_bits": bus_bits,
        "peak_bandwidth_bytes_per_s": peak,
    }
    found = CardReadings.of(index, VENDOR, Absence.NOT_SUPPORTED, unified_memory=integrated, **readings)
    return found, whole_card


def is_alive(*found: Mapping[str, Reading[Any]]) -> bool:
    """Whether a card gave any of these readings but its limits: what answers zero to everything is no idle card."""
    return any(
        reading.value is not None
        for fields in found
        for field, reading in fields.items()
        if "max" not in field and "limit" not in field
    )


def activity(answer: object, *, alive: bool, of_bandwidth: bool) -> dict[str, Reading[Any]]:
    """Percent of the driver's sample window by field; zero is believed of a whole card that answered something besides.

    A partition answers zero while it works. Of most cards `umc_activity` is the share of time in which the memory
    controllers were busy: how much of the bandwidth was used it does not say, so it is no `dram_activity_percent`. From
    MI300 on (`of_bandwidth`) the driver puts the used share of the bandwidth in its place, and then it is that alone.
    """
    gpu, memory = (
        whole(figure(answer, key), PERCENT, ceiling=100, zero_is_absent=not alive)
        for key in ("gfx_activity", "umc_activity")
    )
    if not of_bandwidth:
        return {"gpu_utilization_percent": gpu, "memory_utilization_percent": memory}
    share = None if memory.value is None else float(memory.value)
    return {
        "gpu_utilization_percent": gpu,
        "dram_activity_percent": Reading(share, PERCENT, memory.absence, "umc_activity"),
    }


def _is_whole(card: _Card) -> bool:
    """Whether the card is not split; cards that know no partitions are not."""
    mode = text(card.ask("amdsmi_get_gpu_compute_partition")).value
    return mode in (None, "N/A", "UNKNOWN", WHOLE_CARD)


def _memory(card: _Card, vram_total: object, integrated: bool, meminfo: Path) -> dict[str, Reading[int]]:
    vram_used = card.ask("amdsmi_get_gpu_memory_usage", _VRAM)
    if isinstance(vram_total, Absence) or isinstance(vram_used, Absence):
        usage = card.ask("amdsmi_get_gpu_vram_usage")
        by_drm = [_mib(figure(usage, key, wide=True)) for key in ("vram_total", "vram_used")]
        vram_total, vram_used = (vram_total, vram_used) if isinstance(by_drm[0], Absence) else by_drm
    vram = Pool.of(vram_total, vram_used)
    gtt = (
        Pool.of(*(card.ask(f"amdsmi_get_gpu_memory_{what}", _GTT) for what in ("total", "usage")))
        if integrated
        else vram
    )
    return card_memory(vram, gtt, integrated=integrated, meminfo=meminfo)


def _mib(raw: object) -> object:
    return raw * _BYTES_PER_MIB if isinstance(raw, int) else raw


def _clocks(card: _Card, metrics: object) -> dict[str, Reading[int]]:
    """Present and maximum clock by field. The call fails without a table of levels; the metrics know the first."""
    found = {}
    for field, which, fallback in (
        ("sm_clock", _GRAPHICS, "current_gfxclk"),
        ("memory_clock", _MEMORY, "current_uclk"),
    ):
        answer = card.ask("amdsmi_get_clock_info", which)
        now = figure(answer, "clk")
        if isinstance(now, Absence) and not isinstance(figure(metrics, fallback), Absence):
            now = figure(metrics, fallback)
        found[f"{field}_mhz"] = whole(now, MEGAHERTZ, ceiling=CLOCK_CEILING_MHZ)
        found[f"{field}_max_mhz"] = whole(figure(answer, "max_clk"), MEGAHERTZ, ceiling=CLOCK_CEILING_MHZ)
    return found


def _power(card: _Card) -> dict[str, Reading[float]]:
    """Drawn power, of three figures the first that there is (cards have one of them), and the limit."""
    info = card.ask("amdsmi_get_power_info")
    drawn = [_watts(figure(info, key), key) for key in _DRAWN]
    limit = _watts(figure(info, "power_limit"), "power_limit")
    if limit.value is None:
        cap = _watts(figure(card.ask("amdsmi_get_power_cap_info"), "power_cap"), "power_cap")
        limit = limit if cap.value is None else cap
    return {
        "power_draw_w": next((reading for reading in drawn if reading.value is not None), drawn[0]),
        "power_limit_w": limit,
    }


def _watts(raw: object, read_from: str) -> Reading[float]:
    power = whole(milliwatts(raw), "mW", ceiling=POWER_CEILING_MW)
    return Reading(None if power.value is None else power.value / 1000, WATTS, power.absence, read_from)


def _temperatures(card: _Card) -> dict[str, Reading[int]]:
    """The edge's temperature, or the hottest spot's where that is all there is (MI200 and later), and the memory's."""
    edge, memory = _temperature(card, "EDGE"), _temperature(card, "VRAM")
    hotspot = edge if edge.value is not None else _temperature(card, "HOTSPOT")
    return {
        "temperature_c": edge if hotspot.value is None else hotspot,
        "memory_temperature_c": memory,
    }


def _temperature(card: _Card, sensor: str) -> Reading[int]:
    answer = figure(card.ask("amdsmi_get_temp_metric", Choice("AmdSmiTemperatureType", sensor), _NOW))
    reading = whole(answer, CELSIUS, ceiling=TEMPERATURE_CEILING_C)
    return Reading(reading.value, reading.unit, reading.absence, sensor.lower())


def _pcie(card: _Card, integrated: bool) -> dict[str, Reading[int]]:
    """The present generation and number of lanes; an integrated part has no such link, whatever its driver answers."""
    metric = Absence.NOT_SUPPORTED if integrated else figure(card.ask("amdsmi_get_pcie_info"), "pcie_metric")
    speed = figure(metric, "pcie_speed")
    generation = GENERATION_OF_MEGATRANSFERS.get(speed, Absence.IMPLAUSIBLE) if isinstance(speed, int) else speed
    return {
        "pcie_generation": whole(generation, "", ceiling=max(GENERATION_OF_MEGATRANSFERS.values())),
        "pcie_lanes": whole(figure(metric, "pcie_width"), "", ceiling=LANES_CEILING),
    }
