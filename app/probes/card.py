"""What a probe says of one card, and of the parts that a card is split into."""

from dataclasses import dataclass, field
from typing import Any

from app.probes.reading import Absence, Reading, in_unit, units_of

BYTES, PERCENT, MEGAHERTZ, WATTS, CELSIUS, BITS, BYTES_PER_SECOND = "B", "%", "MHz", "W", "°C", "bit", "B/s"


@dataclass(frozen=True, slots=True)
class MigInstance:
    """One MIG instance: a slice of a card with memory and compute of its own."""

    index: int
    name: Reading[str] = in_unit("")
    memory_total_bytes: Reading[int] = in_unit(BYTES)
    memory_used_bytes: Reading[int] = in_unit(BYTES)
    memory_free_bytes: Reading[int] = in_unit(BYTES)
    dram_activity_percent: Reading[float] = in_unit(PERCENT)
    tensor_activity_percent: Reading[float] = in_unit(PERCENT)

    def document(self) -> dict[str, object]:
        """The JSON-ready form."""
        return {"index": self.index} | {name: getattr(self, name).document() for name in units_of(MigInstance)}


@dataclass(frozen=True, slots=True)
class CardReadings:
    """One card at one instant; every reading has a value or says why not.

    `index` is the driver's order (that of the PCI bus, not of CUDA_VISIBLE_DEVICES) and may change at a reboot; `uuid`
    is the key that does not. It stays inside the server: `document()` and `repr` leave it out.

    `fault` names what is wrong with the card as a whole (lost, reset required, …). `unified_memory` is true where the
    card shares the machine's memory: total is then all that it may take of it, and free what the system could give.
    `gpu_utilization_percent` is the share of the last sample window in which any kernel ran,
    `memory_utilization_percent` that in which memory was read or written: neither is occupancy nor a fraction of the
    bandwidth. `dram_activity_percent` is a fraction of the bandwidth, `tensor_activity_percent` the share of cycles in
    which a tensor pipe was busy; both since the last sample, or in the firmware's own window. `nvlink_…` are the links
    between cards of whatever make. With an old driver `memory_used_bytes` includes the driver's reserve and
    `memory_reserved_bytes` is absent. `peak_bandwidth_bytes_per_s` is derived (2 × maximum memory clock × bus width ÷
    8) or the driver's own figure; `read_from` says which, where there is a choice. `throttle_reasons` are names of what
    holds the clocks down; none is an empty tuple.
    """

    index: int
    vendor: str
    unified_memory: bool
    fault: Absence | None
    uuid: Reading[str] = field(repr=False, metadata={"unit": ""})
    name: Reading[str] = in_unit("")
    mig_enabled: Reading[bool] = in_unit("")
    compute_capability: Reading[str] = in_unit("")
    addressing_mode: Reading[str] = in_unit("")
    memory_total_bytes: Reading[int] = in_unit(BYTES)
    memory_used_bytes: Reading[int] = in_unit(BYTES)
    memory_reserved_bytes: Reading[int] = in_unit(BYTES)
    memory_free_bytes: Reading[int] = in_unit(BYTES)
    gpu_utilization_percent: Reading[int] = in_unit(PERCENT)
    memory_utilization_percent: Reading[int] = in_unit(PERCENT)
    dram_activity_percent: Reading[float] = in_unit(PERCENT)
    tensor_activity_percent: Reading[float] = in_unit(PERCENT)
    sm_activity_percent: Reading[float] = in_unit(PERCENT)
    sm_occupancy_percent: Reading[float] = in_unit(PERCENT)
    sm_clock_mhz: Reading[int] = in_unit(MEGAHERTZ)
    sm_clock_max_mhz: Reading[int] = in_unit(MEGAHERTZ)
    memory_clock_mhz: Reading[int] = in_unit(MEGAHERTZ)
    memory_clock_max_mhz: Reading[int] = in_unit(MEGAHERTZ)
    throttle_reasons: Reading[tuple[str, ...]] = in_unit("")
    power_draw_w: Reading[float] = in_unit(WATTS)
    power_limit_w: Reading[float] = in_unit(WATTS)
    temperature_c: Reading[int] = in_unit(CELSIUS)
    memory_temperature_c: Reading[int] = in_unit(CELSIUS)
    pcie_generation: Reading[int] = in_unit("")
    pcie_lanes: Reading[int] = in_unit("")
    pcie_sent_bytes_per_s: Reading[float] = in_unit(BYTES_PER_SECOND)
    pcie_received_bytes_per_s: Reading[float] = in_unit(BYTES_PER_SECOND)
    nvlink_sent_bytes_per_s: Reading[float] = in_unit(BYTES_PER_SECOND)
    nvlink_received_bytes_per_s: Reading[float] = in_unit(BYTES_PER_SECOND)
    memory_bus_bits: Reading[int] = in_unit(BITS)
    peak_bandwidth_bytes_per_s: Reading[float] = in_unit(BYTES_PER_SECOND)
    mig_instances: tuple[MigInstance, ...] = ()

    @classmethod
    def of(
        cls,
        index: int,
        vendor: str,
        otherwise: Absence,
        *,
        unified_memory: bool = False,
        fault: Absence | None = None,
        mig_instances: tuple[MigInstance, ...] = (),
        **readings: Reading[Any],
    ) -> "CardReadings":
        """A card with the `readings` that there are, by field; what is not given is missing for `otherwise`."""
        missing: dict[str, Any] = {
            name: Reading.missing(otherwise, unit) for name, unit in units_of(cls).items() if name not in readings
        }
        return cls(
            index=index,
            vendor=vendor,
            unified_memory=unified_memory,
            fault=fault,
            mig_instances=mig_instances,
            **readings,
            **missing,
        )

    @classmethod
    def unreadable(cls, index: int, vendor: str, fault: Absence) -> "CardReadings":
        """A card of which nothing can be read, for one reason."""
        return cls.of(index, vendor, fault, fault=fault)

    def document(self) -> dict[str, object]:
        """The JSON-ready form: the card's index, vendor and faults, and a document of each reading but the UUID."""
        readings = {name: getattr(self, name).document() for name in units_of(CardReadings) if name != "uuid"}
        return {
            "index": self.index,
            "vendor": self.vendor,
            "unified_memory": self.unified_memory,
            "fault": self.fault.document() if self.fault is not None else None,
            **readings,
            "mig_instances": [instance.document() for instance in self.mig_instances],
        }
