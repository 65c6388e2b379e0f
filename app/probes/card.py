"""What a probe hands over: the readings of each card, frozen at one instant."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, Literal

from app.probes.reading import Absence, Reading

BYTES, PERCENT, MEGAHERTZ, WATTS, CELSIUS, BITS, BYTES_PER_SECOND = "B", "%", "MHz", "W", "°C", "bit", "B/s"


_UNITS = {
    "uuid": "",
    "name": "",
    "mig_enabled": "",
    "memory_total_bytes": BYTES,
    "memory_used_bytes": BYTES,
    "memory_reserved_bytes": BYTES,
    "memory_free_bytes": BYTES,
    "gpu_utilization_percent": PERCENT,
    "memory_utilization_percent": PERCENT,
    "sm_clock_mhz": MEGAHERTZ,
    "sm_clock_max_mhz": MEGAHERTZ,
    "memory_clock_mhz": MEGAHERTZ,
    "memory_clock_max_mhz": MEGAHERTZ,
    "power_draw_w": WATTS,
    "power_limit_w": WATTS,
    "temperature_c": CELSIUS,
    "memory_bus_bits": BITS,
    "peak_bandwidth_bytes_per_s": BYTES_PER_SECOND,
}
# Never leaves the server: a UUID names one card in the world.
_SHOWN = tuple(name for name in _UNITS if name != "uuid")


@dataclass(frozen=True, slots=True)
class CardReadings:
    """One card at one instant; every reading has a value or says why not.

    `index` is the driver's order (that of the PCI bus, not of CUDA_VISIBLE_DEVICES) and may change at a reboot; `uuid`
    is the key that does not. It stays inside the server: `document()` and `repr` leave it out.

    `fault` names what is wrong with the card as a whole (lost, reset required, …). `unified_memory` is true where the
    card shares the machine's memory: total is then all of it and free is what the system could give (MemAvailable).
    `gpu_utilization_percent` is the share of the last sample window in which any kernel ran,
    `memory_utilization_percent` that in which memory was read or written: neither is occupancy nor a fraction of the
    bandwidth. With an old driver `memory_used_bytes` includes the driver's reserve and `memory_reserved_bytes` is
    absent. `peak_bandwidth_bytes_per_s` is derived: 2 × maximum memory clock × bus width ÷ 8.
    """

    index: int
    vendor: str
    unified_memory: bool
    fault: Absence | None
    uuid: Reading[str] = field(repr=False)
    name: Reading[str]
    mig_enabled: Reading[bool]
    memory_total_bytes: Reading[int]
    memory_used_bytes: Reading[int]
    memory_reserved_bytes: Reading[int]
    memory_free_bytes: Reading[int]
    gpu_utilization_percent: Reading[int]
    memory_utilization_percent: Reading[int]
    sm_clock_mhz: Reading[int]
    sm_clock_max_mhz: Reading[int]
    memory_clock_mhz: Reading[int]
    memory_clock_max_mhz: Reading[int]
    power_draw_w: Reading[float]
    power_limit_w: Reading[float]
    temperature_c: Reading[int]
    memory_bus_bits: Reading[int]
    peak_bandwidth_bytes_per_s: Reading[float]

    @classmethod
    def unreadable(cls, index: int, vendor: str, fault: Absence) -> "CardReadings":
        """A card of which nothing can be read, for one reason."""
        missing: dict[str, Any] = {name: Reading.missing(fault, unit) for name, unit in _UNITS.items()}
        return cls(index=index, vendor=vendor, unified_memory=False, fault=fault, **missing)

    def document(self) -> dict[str, object]:
        """The JSON-ready form: the card's index, vendor and faults, and a document of each reading but the UUID."""
        readings = {name: getattr(self, name).document() for name in _SHOWN}
        return {
            "index": self.index,
            "vendor": self.vendor,
            "unified_memory": self.unified_memory,
            "fault": self.fault.document() if self.fault is not None else None,
            **readings,
        }


def utc_now() -> datetime:
    """The present instant, aware, in UTC."""
    return datetime.now(UTC)


@dataclass(frozen=True, slots=True)
class ProbeSnapshot:
    """What one source said at `taken_at` (aware, UTC).

    `state` is "absent" where the source cannot be read at all, and then `absence` says why. A `stale` snapshot is an
    earlier good one: its `absence` says why there is no newer.

    Raises:
        ValueError: the instant is naive, or state, staleness and absence contradict each other.
    """

    source: str
    state: Literal["ok", "absent"]
    absence: Absence | None
    driver_version: Reading[str]
    cards: tuple[CardReadings, ...]
    taken_at: datetime
    stale: bool = False

    def __post_init__(self) -> None:
        """Refuses what contradicts itself."""
        if self.taken_at.utcoffset() is None:
            raise ValueError("A snapshot is taken at an aware instant.")
        if (self.absence is None) == (self.state == "absent" or self.stale):
            raise ValueError("A snapshot that is absent or stale says why, and no other does.")

    @classmethod
    def absent(cls, source: str, absence: Absence, now: Callable[[], datetime] = utc_now) -> "ProbeSnapshot":
        """A source that cannot be read, and why."""
        return cls(source, "absent", absence, Reading.missing(absence), (), now())

    def aged(self, absence: Absence) -> "ProbeSnapshot":
        """The same readings and instant, marked stale, with the reason why there are no newer ones."""
        return replace(self, stale=True, absence=absence)

    def document(self) -> dict[str, object]:
        """The JSON-ready form; holds no UUID and nothing about processes."""
        return {
            "source": self.source,
            "state": self.state,
            "absence": self.absence.document() if self.absence is not None else None,
            "driver_version": self.driver_version.document(),
            "cards": [card.document() for card in self.cards],
            "taken_at": self.taken_at.isoformat(),
            "stale": self.stale,
        }
