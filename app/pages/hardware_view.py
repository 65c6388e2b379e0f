"""What the page of one accelerator shows."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from app.calc.dtypes import Dtype
from app.calc.notation import significant
from app.catalog.accelerators import AcceleratorRecord
from app.charts.accelerator_roofs import accelerator_roofs
from app.charts.figure import Chart
from app.default_scenario import DEFAULT_MODEL
from app.holding import CONTEXT_TOKENS
from app.pages.hardware_facts import (
    CONFIDENCE_WORDS,
    LABELS,
    STATUS_WORDS,
    UNKNOWN,
    FactGroup,
    fact_groups,
    fact_text,
)
from app.web import urls
from app.web.hardware_columns import KIND_LABELS, dtype_at_16_bits, rate_unit, reported_gib, ridge_at_16_bits, ridges

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
