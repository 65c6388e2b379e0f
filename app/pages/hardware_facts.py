"""The facts of an accelerator in words: what each is called, and how its value is written."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from app.calc.dtypes import Dtype
from app.calc.notation import significant
from app.calc.units import GB, MIB
from app.catalog.accelerators import AcceleratorRecord, Confidence, Status
from app.web.hardware_columns import MIB_PER_GIB, rate_unit

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
