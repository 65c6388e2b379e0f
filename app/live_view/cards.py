"""Cards and the machine in words: each reading a value with its unit, or the reason why there is none."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from app.calc.notation import quantity
from app.catalog.catalog import Catalog
from app.default_scenario import DEFAULT_MODEL, default_scenario
from app.live.machine import custom_items
from app.live.matched import bandwidth_gap, matched_accelerator
from app.probes.card import CardReadings, MigInstance
from app.probes.reading import Reading
from app.probes.snapshot import HostReadings, ProbeSnapshot
from app.scenario import Hardware
from app.scenario_query import CUSTOM
from app.web import urls


@dataclass(frozen=True, slots=True)
class Row:
    """One reading: its text, or the reason for its absence. Where many cards stand together, `is_headline` says which
    readings are not folded away.
    """

    label: str
    text: str | None
    absence: str | None
    is_headline: bool = False


@dataclass(frozen=True, slots=True)
class CardView:
    """One card. `rows` have a value, `missing` a reason; `href` opens the workbench on it; where the catalog does not
    know it, as a custom one to complete.
    """

    id: str
    title: str
    fault: str | None
    used_fraction: float | None
    rows: Sequence[Row]
    missing: Sequence[Row]
    href: str
    unmatched: str | None
    bandwidth_note: str | None


@dataclass(frozen=True, slots=True)
class SourceView:
    """One probe: its cards or its readings of the machine, or why it has none. `is_folded` where it has many cards."""

    id: str
    name: str
    absence: str | None
    driver: str | None
    stale: bool
    taken_at: str
    cards: Sequence[CardView]
    rows: Sequence[Row]

    @property
    def is_folded(self) -> bool:
        """Whether only the headlines of its cards are in sight."""
        return len(self.cards) > MOST_UNFOLDED

    @property
    def is_there(self) -> bool:
        """Whether anything was read of it."""
        return bool(self.cards or self.rows)


MOST_UNFOLDED = 2
"""Cards of one source whose readings are all in sight."""
_HEADLINES = frozenset(
    {
        "Memory used",
        "Memory in all",
        "Bandwidth in use",
        "Tensor pipes busy",
        "A kernel ran in",
        "Clocks held down by",
        "SM clock",
        "Power",
        "Temperature",
    }
)


def source_view(snapshot: ProbeSnapshot, catalog: Catalog) -> SourceView:
    """One probe of a round that is no server, ready to show."""
    return SourceView(
        id=snapshot.source,
        name=snapshot.label,
        absence=snapshot.absence.message if snapshot.absence else None,
        driver=snapshot.driver_version.value,
        stale=snapshot.stale,
        taken_at=f"{snapshot.taken_at:%H:%M:%S} UTC",
        cards=[_card(card, snapshot.source, catalog) for card in snapshot.cards],
        rows=_host_rows(snapshot.host) if snapshot.host is not None else [],
    )


def _card(card: CardReadings, source: str, catalog: Catalog) -> CardView:
    name, total, used = card.name.value, card.memory_total_bytes.value, card.memory_used_bytes.value
    matched = matched_accelerator(card, catalog)
    rows = _rows(card)
    href = _workbench_on(matched) if matched else urls.workbench(custom_items(card, DEFAULT_MODEL, CUSTOM))
    return CardView(
        id=f"{source}-{card.index}",
        title=f"{card.index} · {name or 'unnamed card'}" + (" · unified memory" if card.unified_memory else ""),
        fault=card.fault.message if card.fault else None,
        used_fraction=used / total if total and used is not None else None,
        rows=[row for row in rows if row.text is not None],
        missing=[row for row in rows if row.text is None],
        href=href,
        unmatched=None
        if matched
        else "The catalog does not know this card for certain: its rates are yours to fill in.",
        bandwidth_note=_bandwidth_note(card, matched, catalog),
    )


def _rows(card: CardReadings) -> list[Row]:
    def megahertz(value: int) -> str:
        return f"{value:,} MHz"

    def rate(value: float) -> str:
        return quantity(value, "B/s", 3)

    return [
        _row("Memory used", card.memory_used_bytes, _bytes),
        _row("Memory reserved by the driver", card.memory_reserved_bytes, _bytes),
        _row("Memory free", card.memory_free_bytes, _bytes),
        _row("Memory in all", card.memory_total_bytes, _bytes),
        _row("Bandwidth in use", card.dram_activity_percent, lambda v: f"{v:.0f} % of the peak"),
        _row("Tensor pipes busy", card.tensor_activity_percent, lambda v: f"{v:.0f} % of the cycles"),
        _row("Multiprocessors busy", card.sm_activity_percent, lambda v: f"{v:.0f} % of the cycles"),
        _row("Warps resident", card.sm_occupancy_percent, lambda v: f"{v:.0f} % of the most"),
        _row("A kernel ran in", card.gpu_utilization_percent, lambda v: f"{v} % of the last sample"),
        _row("Memory was read or written in", card.memory_utilization_percent, lambda v: f"{v} % of the last sample"),
        _row("Clocks held down by", card.throttle_reasons, _reasons),
        _row("SM clock", card.sm_clock_mhz, megahertz),
        _row("SM clock, most", card.sm_clock_max_mhz, megahertz),
        _row("Memory clock", card.memory_clock_mhz, megahertz),
        _row("Memory clock, most", card.memory_clock_max_mhz, megahertz),
        _row("Power", card.power_draw_w, lambda v: f"{v:,.0f} W"),
        _row("Power limit", card.power_limit_w, lambda v: f"{v:,.0f} W"),
        _row("Temperature", card.temperature_c, lambda v: f"{v} °C"),
        _row("Temperature of the memory", card.memory_temperature_c, lambda v: f"{v} °C"),
        _row("PCIe sent", card.pcie_sent_bytes_per_s, rate),
        _row("PCIe received", card.pcie_received_bytes_per_s, rate),
        _row("PCIe link", card.pcie_generation, lambda v: f"generation {v}{_lanes(card)}"),
        _row("NVLink sent", card.nvlink_sent_bytes_per_s, rate),
        _row("NVLink received", card.nvlink_received_bytes_per_s, rate),
        _row("Peak bandwidth, derived", card.peak_bandwidth_bytes_per_s, lambda v: quantity(v, "B/s", 4)),
        _row("Compute capability", card.compute_capability, str),
        _row("Memory addressing", card.addressing_mode, str),
        _row("Split into MIG instances", card.mig_enabled, lambda v: "yes" if v else "no"),
        *(row for instance in card.mig_instances for row in _instance_rows(instance)),
    ]


def _instance_rows(instance: MigInstance) -> list[Row]:
    """The memory of a MIG instance, and what it counts of itself."""
    name = f"Instance {instance.index}" + (f", {instance.name.value}" if instance.name.value else "")
    total = instance.memory_total_bytes.value
    of = "" if total is None else f" of {_bytes(total)}"
    return [
        _row(name, instance.memory_used_bytes, lambda v: f"{_bytes(v)}{of}"),
        _row(f"{name}: bandwidth", instance.dram_activity_percent, lambda v: f"{v:.0f} % of its peak"),
        _row(f"{name}: tensor pipes", instance.tensor_activity_percent, lambda v: f"{v:.0f} % of the cycles"),
    ]


def _host_rows(host: HostReadings) -> list[Row]:
    return [
        _row("Processors busy", host.cpu_percent, lambda v: f"{v:.0f} %"),
        _row("Logical processors", host.logical_cpus, lambda v: f"{v:,}"),
        _row("Memory available", host.memory_available_bytes, _bytes),
        _row("Memory in all", host.memory_total_bytes, _bytes),
        _row("Swap in use", host.swap_used_bytes, _bytes),
    ]


def _row(label: str, reading: Reading[Any], written: Callable[[Any], str]) -> Row:
    if reading.value is None:
        return Row(label, None, reading.absence.message if reading.absence else "")
    return Row(label, written(reading.value), None, label in _HEADLINES)


def _bytes(value: int) -> str:
    """GiB, for that is what the driver's own tool prints."""
    return quantity(value, "B", 4, binary=True)


def _reasons(names: tuple[str, ...]) -> str:
    return ", ".join(names) or "nothing"


def _lanes(card: CardReadings) -> str:
    return "" if card.pcie_lanes.value is None else f", {card.pcie_lanes.value} lanes"


def _workbench_on(hardware_id: str) -> str:
    scenario = default_scenario().model_copy(update={"hardware": Hardware(id=hardware_id)})
    return urls.workbench(urls.scenario_items(scenario))


def _bandwidth_note(card: CardReadings, matched: str | None, catalog: Catalog) -> str | None:
    gap = bandwidth_gap(card, matched, catalog)
    if gap is None:
        return None
    derived, stated = gap
    return (
        f"Clock and bus width give {quantity(derived, 'B/s', 3)}, the catalog says {quantity(stated, 'B/s', 3)}: "
        "check which variant this is."
    )
