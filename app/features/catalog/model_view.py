"""What the page of a model says of its cache: which layers keep what, and what that comes to.

Which accelerators hold a model: a row a card by maker, and what each of several cards has to hold.

What the page of a model says of sizes: parameters by group, totals, active ones, formats and published files.

What the page of one model shows.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from math import isinf
from typing import Any

from app.calc.accelerator import MemoryBasis
from app.calc.broadcast import scalar
from app.calc.dtypes import WeightFormat, WeightLayout
from app.calc.memory.cache import CacheTerm
from app.calc.model.parameters import count_parameters
from app.calc.quantity import GB, significant
from app.catalog.accelerators import AcceleratorRecord
from app.catalog.facts import CONTEXT_TOKENS, GPU_COUNTS, KV_CACHE, Holding, Load, ModelFacts, ModelShelf
from app.catalog.models import ActiveConvention, Confidence, ModelRecord
from app.features.catalog.charts import GROUP_WORDS, VISION, multi_head_chart, parameter_chart
from app.features.catalog.hardware_rows import dtype_at_16_bits
from app.features.catalog.layer_diagram import LayerTable, Strip, layer_strip, layer_table
from app.features.catalog.model_rows import BILLION, KIB, KIND_LABELS, kind, released, shipped_format, size_words
from app.scenario.scenario import DEFAULT_HARDWARE
from app.web import urls
from app.web.figure import Chart


@dataclass(frozen=True, slots=True)
class KeptRow:
    """Like layers that keep like rows: elements a row and layer, bytes that a token adds, bytes held at 8,192."""

    label: str
    layers: int
    elements: int
    working: str
    positions: str
    token_bytes: float
    held_bytes: float


@dataclass(frozen=True, slots=True)
class StateRow:
    """Like layers that keep a state: its elements a layer, in their own type, whatever the context."""

    label: str
    layers: int
    elements: int
    dtype: str
    held_bytes: float


def kept_rows(facts: ModelFacts) -> list[KeptRow]:
    """The rows that grow with the context, like layers together."""
    return [_kept(term) for term in facts.cache_shape.terms]


def state_rows(facts: ModelFacts) -> Sequence[StateRow]:
    """The states that do not grow."""
    return [
        StateRow(state.label, state.layers, state.elements, state.dtype.value, state.bytes)
        for state in facts.cache_shape.states
    ]


def _kept(term: CacheTerm) -> KeptRow:
    reach = term.span.saturates_at
    positions = "every position" if isinf(reach) else f"at most {reach:,.0f} positions"
    if term.compression > 1:
        positions = f"one row for {term.compression} positions"
    return KeptRow(
        label=term.label,
        layers=term.layers,
        elements=term.width,
        working=_working(term),
        positions=positions,
        token_bytes=term.elements_per_token * KV_CACHE.bytes,
        held_bytes=scalar(term.elements(CONTEXT_TOKENS)) * KV_CACHE.bytes,
    )


def _working(term: CacheTerm) -> str:
    """How the elements of one layer's row come about: the formula, and the values of its symbols; empty for a width."""
    if len(term.working.terms) < 2:
        return ""
    formula = term.working.formula.replace("{L} × ", "").replace("{L}·", "")
    values = ", ".join(f"{symbol}\u00a0=\u00a0{value:,}" for symbol, _, value in term.working.terms)
    return f"{formula}: {values}"


ANSWER_TOKENS = 1_024


@dataclass(frozen=True, slots=True)
class HeldCell:
    """How one accelerator holds the model in one format; `href` is that scenario where the workbench computes it."""

    holding: Holding | None
    href: str | None


@dataclass(frozen=True, slots=True)
class CardRow:
    """One accelerator, with a cell for each format."""

    name: str
    href: str
    memory: str
    is_marketed: bool
    cells: Sequence[HeldCell]


@dataclass(frozen=True, slots=True)
class CardTable:
    """Every accelerator by maker, and the loads that head the columns."""

    loads: Sequence[Load]
    makers: Mapping[str, Sequence[CardRow]]
    summary: str
    undivided: str


def card_table(facts: ModelFacts, accelerators: Mapping[str, AcceleratorRecord]) -> CardTable:
    """The table of one model; within a maker the newest and largest first."""
    loads = facts.loads
    makers: dict[str, list[CardRow]] = {}
    for record in sorted(accelerators.values(), key=lambda r: (-r.year, -r.memory.marketed_gb)):
        makers.setdefault(record.vendor, []).append(_row(facts.record.id, loads, record))
    ordered = {vendor: makers[vendor] for vendor in dict.fromkeys(r.vendor for r in accelerators.values())}
    return CardTable(loads, ordered, _summary(loads[0], accelerators.values()), _undivided(loads[0]))


def _row(model: str, loads: Sequence[Load], record: AcceleratorRecord) -> CardRow:
    device = record.accelerator
    return CardRow(
        name=record.name,
        href=urls.accelerator(record.id),
        memory=significant(device.memory_bytes(MemoryBasis.REPORTED) / GB, 5),
        is_marketed=device.memory_reported_bytes is None,
        cells=[_cell(model, load, record, load.fewest(device)) for load in loads],
    )


def _cell(model: str, load: Load, record: AcceleratorRecord, holding: Holding | None) -> HeldCell:
    if holding is None or dtype_at_16_bits(record) is None:  # without a known rate the workbench has no answer
        return HeldCell(holding, None)
    answer = min(ANSWER_TOKENS, load.tokens // 2)
    items = [("model", model), ("hw", record.id), ("w", load.weights), ("tp", str(holding.gpus))]
    items += [("prompt", str(load.tokens - answer)), ("out", str(answer)), ("batch", "")]
    return HeldCell(holding, urls.workbench(items))


def _summary(load: Load, accelerators: Collection[AcceleratorRecord]) -> str:
    """How many cards are enough alone, and the smallest that is."""
    alone = [record for record in accelerators if load.on_one(record.accelerator)]
    of_all = f"of the {len(accelerators)} accelerators"
    if alone:
        least = min(alone, key=lambda r: r.accelerator.memory_bytes(MemoryBasis.REPORTED))
        size = f"{significant(least.memory.marketed_gb, 4)} GB"
        return f"As shipped, one card is enough for {len(alone)} {of_all}; the smallest is {least.name}, {size}."
    several = [held.gpus for record in accelerators if (held := load.fewest(record.accelerator))]
    most = load.shares[-1].gpus
    if not several:
        return f"As shipped it fits on none {of_all}, nor on {most} of one kind."
    counts = f"{min(several)} to {most}" if min(several) < most else f"{most}"
    return f"As shipped no card holds it alone; {counts} of a kind do for {len(several)} {of_all}."


def _undivided(load: Load) -> str:
    """The counts of cards that its heads do not divide among; empty where there is none."""
    missing = [str(gpus) for gpus in GPU_COUNTS if gpus not in {share.gpus for share in load.shares}]
    return " or ".join(missing)


@dataclass(frozen=True, slots=True)
class GroupRow:
    """Parameters of one group, and what they take as shipped."""

    label: str
    params: int
    share: str
    format: str
    bytes: float


@dataclass(frozen=True, slots=True)
class Count:
    """A number of parameters under its name."""

    label: str
    params: float
    mark: str = ""


@dataclass(frozen=True, slots=True)
class FormatRow:
    """What the weights take in one format."""

    label: str
    bits: float
    bytes: float


def group_rows(facts: ModelFacts) -> list[GroupRow]:
    """Every group of weights that the model has; parameters and bytes sum to what a server loads."""
    counts, plan = facts.counts, facts.record.native_plan
    tied = facts.architecture.tied_embeddings
    rows = []
    for group, words in GROUP_WORDS.items():
        count = counts.group(group)
        if count.total:
            label = "Embedding, which is the head too" if words == "Embedding" and tied else words
            layout = plan.layout(group) if count.matrices else plan.wide
            rows.append(_group_row(label, count.total, counts.total, layout_name(layout), count.bytes(group, plan)))
    if counts.vision:
        size = counts.vision * plan.wide.bytes_per_weight
        rows.append(_group_row(VISION, counts.vision, counts.total, layout_name(plan.wide), size))
    return rows


def _group_row(label: str, params: int, total: int, layout: str, size: float) -> GroupRow:
    percent = 100 * params / total
    return GroupRow(label, params, f"{percent:.2f} %" if percent >= 0.005 else "under 0.01 %", layout, size)


def layout_name(layout: WeightLayout) -> str:
    """The first format that stores weights so; its element and bits where none does."""
    named = next((fmt.value for fmt in WeightFormat if fmt.layout == layout), None)
    return named or f"{layout.element}, {layout.bits_per_weight:.4g} bits"


def stated_rows(facts: ModelFacts) -> list[Count]:
    """What the published total should be by our count, part by part; the parts sum to `ModelRecord.stated_parts`."""
    record, counts = facts.record, facts.counts
    rows = [Count("Text model", counts.text)]
    if counts.vision:
        rows.append(Count(VISION, counts.vision))
    if record.stated.counts_mtp and (extra := count_parameters(record.architecture_with_mtp).mtp_params):
        rows.append(Count("Multi-token prediction", extra))
    rows += [
        Count(name.replace("_", " ").capitalize(), params, "in the figure, never loaded")
        for name, params in record.stated.beside_weights.items()
    ]
    return rows


def active_rows(facts: ModelFacts) -> list[Count]:
    """The parameters that a token goes through, by each convention; the one nearest to the vendor's is marked."""
    counts, nearest = facts.counts, facts.record.stated.active_convention
    by_convention = {
        ActiveConvention.ALL: counts.active,
        ActiveConvention.WITHOUT_EMBEDDING: counts.active_without_embedding,
        ActiveConvention.WITHOUT_EMBEDDINGS: counts.active_without_embeddings,
    }
    return [
        Count(convention.value.capitalize(), params, "nearest to the vendor’s" if convention is nearest else "")
        for convention, params in by_convention.items()
    ]


def format_rows(facts: ModelFacts) -> list[FormatRow]:
    """The weights in every format that has a name, the widest first."""
    rows = [
        FormatRow(fmt.value, 8 * size / facts.counts.total, size)
        for fmt, size in facts.weight_bytes.items()
        if fmt is not WeightFormat.FP32
    ]
    return sorted(rows, key=lambda row: -row.bytes)


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
