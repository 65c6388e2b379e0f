"""Which accelerators hold a model: a row a card by maker, and what each of several cards has to hold."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from app.calc.accelerator import MemoryBasis
from app.calc.notation import significant
from app.calc.units import GB
from app.catalog.accelerators import AcceleratorRecord
from app.holding import GPU_COUNTS, Holding, Load
from app.model_facts import ModelFacts
from app.web import urls
from app.web.hardware_columns import dtype_at_16_bits

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
