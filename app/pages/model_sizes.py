"""What the page of a model says of sizes: parameters by group, totals, active ones, formats and published files."""

from dataclasses import dataclass

from app.calc.dtypes import WeightFormat, WeightLayout
from app.calc.parameters import count_parameters
from app.catalog.models import ActiveConvention
from app.charts.parameter_chart import GROUP_WORDS, VISION
from app.model_facts import ModelFacts


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
