"""Cards and the machine in words: each reading a value with its unit, or the reason why there is none.

Measured roofs in words: what a card really reached, beside what its vendor states and what is usual.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from app.calc.dtypes import Dtype
from app.calc.quantity import quantity, significant
from app.catalog.catalog import Catalog
from app.features.live.roofline import MeasuredRoofs as DrawnRoofs
from app.machine.live.board import Board
from app.machine.live.machine import bandwidth_gap, custom_items, matched_accelerator
from app.machine.peaks.beside import Share, accelerator_of, achieved_on, shares
from app.machine.peaks.result import MeasuredRoofs
from app.machine.probes.accelerator import CardReadings, MigInstance
from app.machine.probes.reading import Reading
from app.machine.probes.snapshot import HostReadings, ProbeSnapshot
from app.scenario.query import CUSTOM
from app.scenario.scenario import DEFAULT_MODEL, Hardware, default_scenario
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


_VERDICTS = {
    "usual": "as usual",
    "low": "below what is usual",
    "high": "above what is usual",
    "impossible": "more than the vendor states: another card, or another clock",
}


@dataclass(frozen=True, slots=True)
class RoofRow:
    """One measured roof: the rate, the vendor's, the share of it, and whether that is usual."""

    kind: str
    measured: str
    stated: str
    share: str
    verdict: str


@dataclass(frozen=True, slots=True)
class RoofsView:
    """One measurement of one card; `conditions` are those while it worked."""

    card: str
    measured_at: str
    with_what: str
    rows: Sequence[RoofRow]
    conditions: str


def roofs_views(runs: Sequence[MeasuredRoofs], catalog: Catalog) -> list[RoofsView]:
    """Every measurement, the newest first."""
    return [
        RoofsView(
            card=run.card_name,
            measured_at=f"{run.measured_at:%Y-%m-%d %H:%M} UTC",
            with_what=", ".join(f"{name} {version}" for name, version in run.versions.items()),
            rows=[_roofs_row(share) for share in shares(run, accelerator_of(run, catalog), catalog)],
            conditions=_conditions(run),
        )
        for run in runs
    ]


def drawn_roofs(
    accelerator_id: str, compute: Dtype, runs: Sequence[MeasuredRoofs], catalog: Catalog
) -> DrawnRoofs | None:
    """What the roofline draws dashed for an accelerator of the catalog; None where nothing was measured of it."""
    found = achieved_on(accelerator_id, runs, catalog)
    if found is None:
        return None
    drawn = DrawnRoofs(found.bandwidth_bytes_per_s, found.flops_per_s.get(compute))
    return None if drawn == DrawnRoofs(None, None) else drawn


def roofs_of(board: Board, runs: Sequence[MeasuredRoofs], catalog: Catalog) -> DrawnRoofs | None:
    """The same for the roofline of a board."""
    if board.accelerator is None or board.compute is None:
        return None
    return drawn_roofs(board.accelerator.id, board.compute, runs, catalog)


def _roofs_row(share: Share) -> RoofRow:
    usual = share.usual
    between = "" if usual is None else f" ({100 * usual.low:.0f} to {100 * usual.high:.0f} %)"
    return RoofRow(
        kind="memory bandwidth" if share.kind == "bandwidth" else f"{share.kind} matrices",
        measured=quantity(share.measured, share.unit, 4),
        stated="" if share.stated is None else quantity(share.stated, share.unit, 4),
        share="" if share.share is None else f"{significant(100 * share.share, 3)} %",
        verdict="" if share.verdict is None else f"{_VERDICTS[share.verdict]}{between}",
    )


def _conditions(run: MeasuredRoofs) -> str:
    state = run.under_load
    said = []
    if state.sm_clock_mhz.value is not None:
        said.append(f"SM clock {state.sm_clock_mhz.value:,} MHz")
    if state.power_draw_w.value is not None:
        limit = "" if state.power_limit_w.value is None else f" of {state.power_limit_w.value:,.0f}"
        said.append(f"{state.power_draw_w.value:,.0f}{limit} W")
    if state.temperature_c.value is not None:
        said.append(f"{state.temperature_c.value} °C")
    if state.throttle_reasons.value:
        said.append(f"clocks held down by {', '.join(state.throttle_reasons.value)}")
    return ", ".join(said)
