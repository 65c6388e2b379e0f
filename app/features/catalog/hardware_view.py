"""The facts of an accelerator in words: what each is called, and how its value is written.

What the page of one accelerator shows.

Which of the catalog's models one accelerator holds, the largest first.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from app.calc.accelerator import Accelerator
from app.calc.dtypes import Dtype
from app.calc.model.parameters import NATIVE
from app.calc.quantity import GB, MIB, significant
from app.catalog.accelerators import AcceleratorRecord, Confidence, Status
from app.catalog.facts import CONTEXT_TOKENS, ModelFacts, ModelShelf
from app.features.catalog.charts import accelerator_roofs
from app.features.catalog.hardware_rows import (
    KIND_LABELS,
    MIB_PER_GIB,
    dtype_at_16_bits,
    rate_unit,
    reported_gib,
    ridge_at_16_bits,
    ridges,
)
from app.scenario.scenario import DEFAULT_MODEL
from app.web import urls
from app.web.figure import Chart

UNKNOWN = "unknown"
DIGITS = 8
CONFIDENCE_WORDS: Mapping[Confidence, str] = {
    Confidence.A: "Capacity and bandwidth stand in two sources, and the rate is stated or follows from units × clock.",
    Confidence.B: "One source besides the vendor’s own sheet.",
    Confidence.C: "Derived, or from secondary sources alone: check before money is spent on it.",
}
STATUS_WORDS: Mapping[Status, str] = {
    Status.RELEASED: "released",
    Status.ANNOUNCED: "announced, not yet on sale: figures may change",
}


@dataclass(frozen=True, slots=True)
class Fact:
    """One fact: `text` is None where it is unknown. `disputed` where sources disagree on it."""

    path: str
    label: str
    text: str | None
    uncertain: bool
    disputed: bool


@dataclass(frozen=True, slots=True)
class FactGroup:
    """Facts under one heading."""

    label: str
    facts: Sequence[Fact]


_LABELS: Mapping[str, Mapping[str, tuple[str, str]]] = {
    "Memory": {
        "memory.marketed_gb": ("Capacity as marketed", "GB"),
        "memory.reported_mib": ("Capacity the driver reports", "MiB"),
        "memory.seen_gib": ("Of it an engine sees", "GiB"),
        "memory.bandwidth_gb_per_s": ("Bandwidth", "GB/s"),
        "memory.type": ("Type", ""),
        "memory.l2_mb": ("Last cache, or memory on the chip", "MB"),
    },
    "Compute": {
        "compute.units": ("Multiprocessors, compute units or cores", ""),
        "compute.boost_mhz": ("Clock behind the rates", "MHz"),
    },
    "Dense rates": {f"dense_tflops.{dtype}": (dtype.value.upper(), rate_unit(dtype)) for dtype in Dtype},
    "Links": {
        "link.name": ("Fastest link to the next", ""),
        "link.one_way_gb_per_s": ("That link, one way", "GB/s"),
        "link.both_ways_gb_per_s": ("Both ways together", "GB/s"),
        "link.max_in_node": ("In one node, typically", ""),
        "link.pcie_gen": ("PCIe generation to the host", ""),
        "link.pcie_lanes": ("PCIe lanes", ""),
    },
    "Power and price": {
        "power.tdp_w": ("Power limit of the board", "W"),
        "price.usd_per_hour": ("Rent", "$ an hour"),
        "price.basis": ("Where and when that price was seen", ""),
    },
}
LABELS: Mapping[str, tuple[str, str]] = {path: words for group in _LABELS.values() for path, words in group.items()}


def fact_groups(record: AcceleratorRecord) -> list[FactGroup]:
    """Every fact of `record` under its heading, known or not."""
    disputed = {entry.fact for entry in record.disagreements}
    return [
        FactGroup(
            heading,
            [
                Fact(path, label, fact_text(path, record.fact(path)), path in record.uncertain, path in disputed)
                for path, (label, _) in paths.items()
                if path != "price.basis" or record.price
            ],
        )
        for heading, paths in _LABELS.items()
    ]


def fact_text(path: str, value: float | str | None) -> str | None:
    """One value as it is written, with its unit; None where it is unknown."""
    if value is None or isinstance(value, str):
        return value
    unit = LABELS[path][1]
    if unit == "$ an hour":
        return f"${value:.2f} an hour"
    written = f"{significant(value, DIGITS)} {unit}".strip()
    if path == "memory.reported_mib":
        gib = significant(value / MIB_PER_GIB, 4)
        return f"{gib} GiB ({written}, {significant(value * MIB / GB, 4)} GB)"
    return written


_FORMATS = {Dtype.FP4: ("mxfp4", "fp4"), Dtype.INT4: ("int4", "int4"), Dtype.INT8: ("int8", "int8")}


@dataclass(frozen=True, slots=True)
class Held:
    """A model that the accelerator holds, in its widest format that fits, with room for so many users of `tokens`."""

    name: str
    href: str
    format: str
    weight_bytes: float
    users: int
    tokens: int = CONTEXT_TOKENS


@dataclass(frozen=True, slots=True)
class Dispute:
    """A fact on which sources disagree, each value as the facts write it."""

    fact: str
    seen: Sequence[str]
    kept: str
    reason: str


@dataclass(frozen=True, slots=True)
class KeyFigure:
    """One of the figures that people divide by. `text` is None where it is unknown."""

    label: str
    text: str | None
    unit: str
    beside: str


@dataclass(frozen=True, slots=True)
class AcceleratorView:
    """Everything the page of one accelerator shows. `workbench` is None where no rate is known to compute with."""

    record: AcceleratorRecord
    kind: str
    status: str
    confidence: str
    figures: Sequence[KeyFigure]
    groups: Sequence[FactGroup]
    chart: Chart | None
    ridges: dict[str, str]
    disputes: Sequence[Dispute]
    doubts: Sequence[str]
    workbench: str | None
    stamp: str

    def chart_data(self) -> list[dict[str, Any]]:
        """The figure, for the script that draws it, with the words an exported picture carries."""
        if self.chart is None:
            return []
        return [
            {"id": self.chart.id, "title": f"{self.chart.title} of {self.record.name}", "caption": self.stamp}
            | {"figure": self.chart.figure}
        ]


def accelerator_view(record: AcceleratorRecord, catalog_version: str) -> AcceleratorView:
    """The page of one accelerator."""
    return AcceleratorView(
        record=record,
        kind=KIND_LABELS[record.kind],
        status=STATUS_WORDS[record.status],
        confidence=CONFIDENCE_WORDS[record.confidence],
        figures=_figures(record),
        groups=fact_groups(record),
        chart=accelerator_roofs(record.accelerator),
        ridges={f"dense_tflops.{dtype}": significant(ridge, 4) for dtype, ridge in ridges(record).items()},
        disputes=[
            Dispute(
                fact=LABELS[entry.fact][0],
                seen=[_written(entry.fact, value) for value in entry.seen],
                kept=_written(entry.fact, entry.kept),
                reason=entry.reason,
            )
            for entry in record.disagreements
        ],
        doubts=[LABELS[path][0] for path in record.uncertain],
        workbench=_workbench(record),
        stamp=f"Dense rates at the vendor's peak · Tokenroof catalog {catalog_version}",
    )


def _written(path: str, value: float | str) -> str:
    return fact_text(path, value) or UNKNOWN


def _figures(record: AcceleratorRecord) -> list[KeyFigure]:
    usual, ridge = dtype_at_16_bits(record), ridge_at_16_bits(record)
    rate = record.dense_tflops.get(usual) if usual else None
    reported, link = reported_gib(record), record.link
    driver = f"the driver says {significant(reported, 4)} GiB" if reported else "the driver’s figure is unknown"
    return [
        KeyFigure("Memory", significant(record.memory.marketed_gb, 6), "GB as marketed", driver),
        KeyFigure("Bandwidth", significant(record.memory.bandwidth_gb_per_s, 8), "GB/s", record.memory.type),
        KeyFigure(
            f"{(usual or Dtype.BF16).value.upper()}, dense",
            significant(rate, 8) if rate else None,
            rate_unit(Dtype.BF16),
            "no sparsity, FP32 accumulate",
        ),
        KeyFigure("Ridge", significant(ridge, 4) if ridge else None, "FLOP/B", "below it memory binds"),
        KeyFigure(
            "Link, one way",
            significant(link.one_way_gb_per_s, 6) if link.one_way_gb_per_s else "none" if link.name == "none" else None,
            "GB/s" if link.one_way_gb_per_s else "",
            link.name if link.name != "none" else "works alone",
        ),
        KeyFigure(
            "Power", significant(record.power.tdp_w, 6) if record.power.tdp_w else None, "W", "limit of the board"
        ),
    ]


def _workbench(record: AcceleratorRecord) -> str | None:
    """The workbench on this card, in 16 bits where it has a rate for them, else in a format that it computes in."""
    items = [("model", DEFAULT_MODEL), ("hw", record.id)]
    if dtype_at_16_bits(record) is None:
        known = next((names for dtype, names in _FORMATS.items() if dtype in record.dense_tflops), None)
        if known is None:
            return None
        items += [("w", known[0]), ("compute", known[1])]
    return urls.workbench(items)


def held_models(accelerator: Accelerator, shelf: ModelShelf) -> list[Held]:
    """A row for each model that one card holds in some format, in the widest that it holds."""
    rows = [row for facts in shelf.facts.values() if (row := _held(facts, accelerator))]
    return sorted(rows, key=lambda row: -row.weight_bytes)


def _held(facts: ModelFacts, accelerator: Accelerator) -> Held | None:
    for load in facts.loads:
        if holding := load.on_one(accelerator):
            named = "mixed" if load.weights == NATIVE else load.weights
            return Held(
                name=facts.record.name,
                href=urls.model(facts.record.id),
                format=f"{named}, as shipped" if load is facts.loads[0] else named,
                weight_bytes=load.weight_bytes,
                users=holding.users,
                tokens=load.tokens,
            )
    return None
