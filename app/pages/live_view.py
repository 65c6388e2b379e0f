"""Readings in words: each a value with its unit, or the reason why there is none."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from app.calc.accelerator import MemoryBasis
from app.calc.notation import quantity
from app.calc.units import GB, MIB
from app.catalog.catalog import Catalog
from app.pages.presets import DEFAULT_MODEL, default_scenario
from app.probes.card import CardReadings, ProbeSnapshot
from app.probes.match import Candidate, match_accelerator
from app.probes.reading import Reading
from app.scenario import Hardware
from app.scenario_query import CUSTOM
from app.web import urls


@dataclass(frozen=True, slots=True)
class Row:
    """One reading: its text, or the reason for its absence."""

    label: str
    text: str | None
    absence: str | None


@dataclass(frozen=True, slots=True)
class CardView:
    """One card. `href` opens the workbench on it; where the catalog does not know it, as a custom one to complete."""

    title: str
    fault: str | None
    used_fraction: float | None
    rows: Sequence[Row]
    href: str
    unmatched: str | None
    bandwidth_note: str | None


@dataclass(frozen=True, slots=True)
class SourceView:
    """One probe: its cards, or why it has none."""

    name: str
    absence: str | None
    driver: str | None
    stale: bool
    taken_at: str
    cards: Sequence[CardView]


def source_views(latest: Sequence[ProbeSnapshot], catalog: Catalog) -> list[SourceView]:
    """Every probe of a round, ready to show."""
    return [
        SourceView(
            name={"nvidia": "NVIDIA cards"}.get(snapshot.source, snapshot.source),
            absence=snapshot.absence.message if snapshot.absence else None,
            driver=snapshot.driver_version.value,
            stale=snapshot.stale,
            taken_at=f"{snapshot.taken_at:%H:%M:%S} UTC",
            cards=[_card(card, catalog) for card in snapshot.cards],
        )
        for snapshot in latest
    ]


def _card(card: CardReadings, catalog: Catalog) -> CardView:
    name, total, used = card.name.value, card.memory_total_bytes.value, card.memory_used_bytes.value
    matched = match_accelerator(name, total, _candidates(catalog)) if name else None
    return CardView(
        title=f"{card.index} · {name or 'unnamed card'}" + (" · unified memory" if card.unified_memory else ""),
        fault=card.fault.message if card.fault else None,
        used_fraction=used / total if total and used is not None else None,
        rows=_rows(card),
        href=_workbench_on(matched.id) if matched else _workbench_on_custom(card),
        unmatched=None
        if matched
        else "The catalog does not know this card for certain: its rates are yours to fill in.",
        bandwidth_note=_bandwidth_note(card, matched, catalog),
    )


def _rows(card: CardReadings) -> list[Row]:
    return [
        _row("Memory used", card.memory_used_bytes, _bytes),
        _row("Memory reserved by the driver", card.memory_reserved_bytes, _bytes),
        _row("Memory free", card.memory_free_bytes, _bytes),
        _row("Memory in all", card.memory_total_bytes, _bytes),
        _row("A kernel ran in", card.gpu_utilization_percent, lambda v: f"{v} % of the last sample"),
        _row("Memory was read or written in", card.memory_utilization_percent, lambda v: f"{v} % of the last sample"),
        _row("SM clock", card.sm_clock_mhz, lambda v: f"{v:,} MHz"),
        _row("SM clock, most", card.sm_clock_max_mhz, lambda v: f"{v:,} MHz"),
        _row("Memory clock", card.memory_clock_mhz, lambda v: f"{v:,} MHz"),
        _row("Memory clock, most", card.memory_clock_max_mhz, lambda v: f"{v:,} MHz"),
        _row("Power", card.power_draw_w, lambda v: f"{v:,.0f} W"),
        _row("Power limit", card.power_limit_w, lambda v: f"{v:,.0f} W"),
        _row("Temperature", card.temperature_c, lambda v: f"{v} °C"),
        _row("Peak bandwidth, derived", card.peak_bandwidth_bytes_per_s, lambda v: quantity(v, "B/s", 4)),
        _row("Split into MIG instances", card.mig_enabled, lambda v: "yes" if v else "no"),
    ]


def _row(label: str, reading: Reading[Any], written: Any) -> Row:
    if reading.value is None:
        return Row(label, None, reading.absence.message if reading.absence else "")
    return Row(label, written(reading.value), None)


def _bytes(value: int) -> str:
    """GiB, for that is what the driver's own tool prints."""
    return quantity(value, "B", 4, binary=True)


def _candidates(catalog: Catalog) -> list[Candidate]:
    return [
        Candidate(record.id, record.name, record.vendor, catalog.devices[record.id].memory_bytes(MemoryBasis.REPORTED))
        for record in catalog.accelerators.values()
    ]


def _workbench_on(hardware_id: str) -> str:
    scenario = default_scenario().model_copy(update={"hardware": Hardware(id=hardware_id)})
    return urls.workbench(urls.scenario_items(scenario))


def _workbench_on_custom(card: CardReadings) -> str:
    """The form with what was read; it asks for the rates, which no driver tells."""
    total, bandwidth = card.memory_total_bytes.value, card.peak_bandwidth_bytes_per_s.value
    items = [("model", DEFAULT_MODEL), ("hw", CUSTOM), ("hw_name", card.name.value or "My card")]
    if total:
        items += [("hw_mem", f"{total / GB:.3f}"), ("hw_mib", str(total // MIB))]
    if bandwidth:
        items.append(("hw_bw", f"{bandwidth / GB:.6g}"))
    return urls.workbench(items)


def _bandwidth_note(card: CardReadings, matched: Candidate | None, catalog: Catalog) -> str | None:
    """A gap of more than 5 % between what the clocks give and what the catalog says."""
    derived = card.peak_bandwidth_bytes_per_s.value
    if matched is None or not derived:
        return None
    stated = catalog.devices[matched.id].bandwidth_bytes_per_s
    if abs(derived / stated - 1) <= 0.05:
        return None
    return (
        f"Clock and bus width give {quantity(derived, 'B/s', 3)}, the catalog says {quantity(stated, 'B/s', 3)}: "
        "check which variant this is."
    )
