"""AMD cards through the kernel's files alone: no library, no package, and on processors with graphics the only way."""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from app.machine.probes.accelerator import CELSIUS, MEGAHERTZ, WATTS, CardReadings, text, whole
from app.machine.probes.amd_card import (
    CLOCK_CEILING_MHZ,
    GENERATION_OF_MEGATRANSFERS,
    LANES_CEILING,
    POWER_CEILING_MW,
    TEMPERATURE_CEILING_C,
    VENDOR,
    WHOLE_CARD,
    Fields,
    activity,
    is_alive,
)
from app.machine.probes.amd_meters import Pool, card_memory, is_integrated
from app.machine.probes.host import absence_of, read_bytes, read_number, read_text
from app.machine.probes.reading import Absence, Reading

NAMES = Path("/usr/share/libdrm/amdgpu.ids")
"""libdrm's list of names by device and revision, there wherever its driver for these cards is installed."""

_LIMIT_BYTES = 1_000_000
_LINE = re.compile(r"^([0-9A-F]{1,4}),\s*([0-9A-F]{1,2}),\s*(\S[^\r\n]*)$", re.ASCII | re.IGNORECASE | re.MULTILINE)
_HEXADECIMAL = re.compile(r"0x([0-9a-f]{1,8})", re.ASCII | re.IGNORECASE)


class CardNames:
    """Names by the files of a card; `names` is libdrm's list, read when it is first needed and then kept."""

    def __init__(self, names: Path = NAMES) -> None:
        self._names = names
        self._by_number: dict[tuple[int, int], str] | None = None

    def name_of(self, device: Path) -> Reading[str]:
        """The name in the card's own memory (server cards), in libdrm's list, or "AMD GPU 1002:744c" after its number.

        `read_from` says which. An absence where the card does not even tell its number.
        """
        plate = text(read_text(device / "product_name"))
        if plate.value is not None:
            return Reading(plate.value, read_from="product_name")
        number, revision = (_hexadecimal(read_text(device / file)) for file in ("device", "revision"))
        if isinstance(number, Absence):
            return Reading.missing(number)
        listed = None if isinstance(revision, Absence) else text(self._list().get((number, revision)))
        if listed is not None and listed.value is not None:
            return Reading(listed.value, read_from="amdgpu.ids")
        return Reading(f"AMD GPU 1002:{number:04x}", read_from="device")

    def _list(self) -> dict[tuple[int, int], str]:
        if self._by_number is None:
            content = read_text(self._names, _LIMIT_BYTES)
            lines = [] if isinstance(content, Absence) else _LINE.findall(content)
            self._by_number = {(int(number, 16), int(revision, 16)): name for number, revision, name in lines}
        return self._by_number


def _hexadecimal(content: str | Absence) -> int | Absence:
    if isinstance(content, Absence):
        return content
    found = _HEXADECIMAL.fullmatch(content)
    return int(found[1], 16) if found else Absence.IMPLAUSIBLE


DRM = Path("/sys/class/drm")

_ENTRY_LIMIT = 4096
_CARD = re.compile(r"card[0-9]{1,4}", re.ASCII)
_VENDOR_NUMBER = "0x1002"
_SENSORS = range(1, 9)
_BANDWIDTH_VERSIONS = ((9, 4, 3), (9, 4, 4), (9, 5, 0))
"""MI300 to MI355X: `mem_busy_percent` is the used share of the bandwidth, as `activity` of `amd_card` says."""

# A table of clocks, one level a line, the present one starred: "1: 1249Mhz *". "S" is deep sleep.
_LEVEL = re.compile(r"^\s*(?:[0-9]{1,3}|S):\s*([0-9]{1,6})\s*Mhz\s*(\*?)\s*$", re.ASCII | re.IGNORECASE | re.MULTILINE)
_SPEED = re.compile(r"([0-9]{1,3}(?:\.[0-9])?) GT/s.*", re.ASCII)


@dataclass(frozen=True, slots=True)
class KernelCard:
    """The directory of one card's files, and its address on the PCI bus (which stays inside the server)."""

    device: Path
    pci_address: str

    @property
    def metrics_revision(self) -> int | None:
        """The first version number of the card's table of metrics, or None where there is none to be read."""
        header = read_bytes(self.device / "gpu_metrics")
        return header[2] if isinstance(header, bytes) and len(header) > 3 else None

    @property
    def graphics_version(self) -> tuple[object, ...]:
        """The version of the card's graphics and compute block, such as (9, 4, 3) for gfx942."""
        block = self.device / "ip_discovery" / "die" / "0" / "GC" / "0"
        return tuple(read_number(block / part) for part in ("major", "minor", "revision"))


def find_cards(drm: Path = DRM) -> list[KernelCard] | Absence:
    """AMD's cards in the order of the PCI bus; an absence where the kernel shows no graphics cards at all."""
    try:
        with os.scandir(drm) as entries:
            names = [entry.name for entry in islice(entries, _ENTRY_LIMIT) if _CARD.fullmatch(entry.name)]
    except OSError as error:
        absence = absence_of(error)
        return Absence.NO_DRIVER if absence is Absence.NOT_SUPPORTED else absence
    devices = [drm / name / "device" for name in names]
    found = [
        KernelCard(device, os.path.basename(os.path.realpath(device)))
        for device in devices
        if read_text(device / "vendor") == _VENDOR_NUMBER
    ]
    return sorted(found, key=lambda card: (card.pci_address, card.device))


def read_kernel_card(card: KernelCard, index: int, names: CardNames, meminfo: Path) -> CardReadings:
    """All readings that the kernel's files give of one card. Power from µW, temperature from m°C, memory in bytes.

    Not told by files: the width and the rate of the memory, and what holds the clocks down.
    Source: the kernel's documentation of amdgpu and hwmon.
    """
    device = card.device
    integrated = is_integrated(card.metrics_revision)
    vram, gtt = (
        Pool.of(*(read_number(device / f"mem_info_{kind}_{what}") for what in ("total", "used")))
        for kind in ("vram", "gtt")
    )
    memory = card_memory(vram, gtt, integrated=integrated, meminfo=meminfo)
    clocks = _clocks(device)
    monitor = _monitor(device)
    power = _power(monitor)
    temperatures = _temperatures(monitor)
    mode = text(read_text(device / "current_compute_partition")).value
    alive = mode in (None, WHOLE_CARD) and is_alive(memory, clocks, power, temperatures)
    busy = {
        "gfx_activity": read_number(device / "gpu_busy_percent"),
        "umc_activity": read_number(device / "mem_busy_percent"),
    }
    readings: Fields = {
        **memory,
        **activity(busy, alive=alive, of_bandwidth=card.graphics_version in _BANDWIDTH_VERSIONS),
        **clocks,
        **power,
        **temperatures,
        **_pcie(device, integrated),
        "uuid": text(read_text(device / "unique_id")),
        "name": names.name_of(device),
    }
    return CardReadings.of(index, VENDOR, Absence.NOT_SUPPORTED, unified_memory=integrated, **readings)


def _clocks(device: Path) -> dict[str, Reading[int]]:
    found: dict[str, Reading[int]] = {}
    for field, file in (("sm_clock", "pp_dpm_sclk"), ("memory_clock", "pp_dpm_mclk")):
        table = read_text(device / file)
        now: int | Absence
        most: int | Absence
        if isinstance(table, Absence):
            now = most = table
        else:
            levels = _LEVEL.findall(table)
            now = next((int(clock) for clock, star in levels if star), Absence.IMPLAUSIBLE)
            most = max((int(clock) for clock, _ in levels), default=Absence.IMPLAUSIBLE)
        found[f"{field}_mhz"] = whole(now, MEGAHERTZ, ceiling=CLOCK_CEILING_MHZ)
        found[f"{field}_max_mhz"] = whole(most, MEGAHERTZ, ceiling=CLOCK_CEILING_MHZ)
    return found


def _monitor(device: Path) -> Path:
    """The directory of the card's sensors; one that is not there where the card has none."""
    try:
        with os.scandir(device / "hwmon") as entries:
            names = sorted(entry.name for entry in islice(entries, _ENTRY_LIMIT) if entry.name.startswith("hwmon"))
    except OSError:
        names = []
    return device / "hwmon" / (names[0] if names else "none")


def _power(monitor: Path) -> dict[str, Reading[float]]:
    drawn = [_watts(monitor, file) for file in ("power1_average", "power1_input")]
    return {
        "power_draw_w": next((reading for reading in drawn if reading.value is not None), drawn[0]),
        "power_limit_w": _watts(monitor, "power1_cap"),
    }


def _watts(monitor: Path, file: str) -> Reading[float]:
    microwatts = whole(read_number(monitor / file), "µW", ceiling=POWER_CEILING_MW * 1000)
    return Reading(None if microwatts.value is None else microwatts.value / 1e6, WATTS, microwatts.absence, file)


def _temperatures(monitor: Path) -> dict[str, Reading[int]]:
    """By the sensors' labels, as through the library: the edge's, or the hottest spot's, and the memory's."""
    by_label: dict[str, Path] = {}
    for number in _SENSORS:
        label = read_text(monitor / f"temp{number}_label")
        # The first sensor of cards that label none is the edge's.
        unlabelled = isinstance(label, Absence)
        by_label.setdefault("edge" if unlabelled and number == 1 else label, monitor / f"temp{number}_input")
    edge, hotspot, memory = (_celsius(by_label, label) for label in ("edge", "junction", "mem"))
    return {
        "temperature_c": hotspot if edge.value is None and hotspot.value is not None else edge,
        "memory_temperature_c": memory,
    }


def _celsius(by_label: Mapping[str, Path], label: str) -> Reading[int]:
    path = by_label.get(label)
    raw = Absence.NOT_SUPPORTED if path is None else read_number(path)
    millidegrees = whole(raw, "m°C", ceiling=TEMPERATURE_CEILING_C * 1000)
    value = None if millidegrees.value is None else round(millidegrees.value / 1000)
    return Reading(value, CELSIUS, millidegrees.absence, label)


def _pcie(device: Path, integrated: bool) -> dict[str, Reading[int]]:
    generation: int | Absence
    lanes: int | Absence
    if integrated:
        generation = lanes = Absence.NOT_SUPPORTED
    else:
        speed = read_text(device / "current_link_speed")
        found = _SPEED.fullmatch(speed)
        rate = 0 if found is None else round(float(found[1]) * 1000)
        generation = speed if isinstance(speed, Absence) else GENERATION_OF_MEGATRANSFERS.get(rate, Absence.IMPLAUSIBLE)
        lanes = read_number(device / "current_link_width")
    return {
        "pcie_generation": whole(generation, "", ceiling=max(GENERATION_OF_MEGATRANSFERS.values())),
        "pcie_lanes": whole(lanes, "", ceiling=LANES_CEILING),
    }
