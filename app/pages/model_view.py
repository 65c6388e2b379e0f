"""What the page of one model shows."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from app.calc.notation import significant
from app.calc.units import GB
from app.catalog.models import Confidence, ModelRecord
from app.charts.figure import Chart
from app.charts.multi_head_chart import multi_head_chart
from app.charts.parameter_chart import parameter_chart
from app.default_scenario import DEFAULT_HARDWARE
from app.model_facts import ModelFacts, ModelShelf
from app.pages.layer_strip import Strip, layer_strip
from app.pages.layer_table import LayerTable, layer_table
from app.pages.model_cache import KeptRow, StateRow, kept_rows, state_rows
from app.pages.model_cards import CardTable, card_table
from app.pages.model_rows import size_words
from app.pages.model_sizes import Count, FormatRow, GroupRow, active_rows, format_rows, group_rows, stated_rows
from app.web import urls
from app.web.model_columns import BILLION, KIB, KIND_LABELS, kind, released, shipped_format

CONFIDENCE_WORDS: Mapping[Confidence, str] = {
    Confidence.HIGH: "The recounted parameters match a published total.",
    Confidence.MEDIUM: "Dimensions or the total are recalled, not read from a published file: check before use.",
}


@dataclass(frozen=True, slots=True)
class Figure:
    """One of the figures that people divide by. `text` is None where it is unknown."""

    label: str
    text: str | None
    unit: str
    beside: str


@dataclass(frozen=True, slots=True)
class ModelView:
    """Everything the page of one model shows."""

    facts: ModelFacts
    about: str
    figures: Sequence[Figure]
    strip: Strip
    layers: LayerTable
    groups: Sequence[GroupRow]
    stated: Sequence[Count]
    active: Sequence[Count]
    formats: Sequence[FormatRow]
    kept: Sequence[KeptRow]
    states: Sequence[StateRow]
    charts: Mapping[str, Chart]
    cards: CardTable
    base: ModelRecord | None
    derived: Sequence[ModelRecord]
    confidence: str
    workbench: str
    stamp: str

    @property
    def record(self) -> ModelRecord:
        """The catalog row."""
        return self.facts.record

    def chart_data(self) -> list[dict[str, Any]]:
        """The figures, for the script that draws them, with the words an exported picture carries."""
        return [
            {"id": chart.id, "title": f"{chart.title}: {self.record.name}", "caption": self.stamp}
            | {"figure": chart.figure}
            for chart in self.charts.values()
        ]


def model_view(facts: ModelFacts, shelf: ModelShelf) -> ModelView:
    """The page of one model."""
    record, catalog = facts.record, shelf.catalog
    charts = (parameter_chart(facts.counts), multi_head_chart(facts.architecture))
    lineage = record.lineage
    return ModelView(
        facts=facts,
        about=f"{record.family} · {KIND_LABELS[kind(facts)]} · {size_words(facts)}",
        figures=_figures(facts),
        strip=layer_strip(facts.architecture, record.order),
        layers=layer_table(facts.architecture),
        groups=group_rows(facts),
        stated=stated_rows(facts),
        active=active_rows(facts),
        formats=format_rows(facts),
        kept=kept_rows(facts),
        states=state_rows(facts),
        charts={chart.id: chart for chart in charts},
        cards=card_table(facts, catalog.accelerators),
        base=catalog.models.get(lineage.base) if lineage else None,
        derived=shelf.derived_from(record.id),
        confidence=CONFIDENCE_WORDS[record.confidence],
        workbench=urls.workbench([("model", record.id), ("hw", DEFAULT_HARDWARE)]),
        stamp=f"{record.hub_id} · Tokenroof catalog {catalog.version}",
    )


def _figures(facts: ModelFacts) -> list[Figure]:
    counts, stated, cache, limit = facts.counts, facts.record.stated, facts.usual_cache, facts.architecture.max_position
    vendor = f"; the vendor says {stated.active_params:,}" if stated.active_params else ""
    states = ", states included" if facts.cache_shape.states else ""
    return [
        Figure("Parameters", significant(counts.total / BILLION, 4), "× 10⁹", f"{counts.total:,}"),
        Figure("Active a token", significant(counts.active / BILLION, 4), "× 10⁹", f"every weight it meets{vendor}"),
        Figure(
            "Cache a token",
            significant(cache.bytes_per_token / KIB, 4),
            "KiB",
            f"{significant(cache.bytes_per_token, 8)} B in bf16, at 8,192 tokens{states}",
        ),
        Figure(
            "Weights", significant(facts.shipped.loaded_bytes / GB, 4), "GB", f"as shipped, {shipped_format(facts)}"
        ),
        Figure("Context", f"{limit:,}" if limit else None, "tokens", "what it was made for"),
        Figure("Released", released(facts), "", "" if facts.record.released else "no source for a date"),
    ]
