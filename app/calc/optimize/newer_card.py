"""More bandwidth: the same scenario on the other cards that hold it.

Closed is the scenario's card and open the best of the others by throughput; where no other gives more the door is open
already, and off is the next best.
"""

from dataclasses import dataclass, replace

from app.calc.deployment import Deployment
from app.calc.derivation import Explanation
from app.calc.measure import measure
from app.calc.memory.capacity import memory
from app.calc.memory.rank import holds
from app.calc.model.attention_variants import Alternative
from app.calc.optimize.optimization import Asked, Better, Figure, Level, Optimization, Quantity, Spec, Variants, refusal
from app.calc.optimize.sides import (
    ALIKE,
    ROOM_COLUMN,
    TPOT_CEILING,
    TPOT_EXPECTED,
    Side,
    best_level,
    change_of_time,
    figures,
    row,
    served_figures,
    times,
    unshrunk,
    working,
)
from app.calc.quantity import quantity, significant
from app.calc.sweep import OF_CARD, POOL, forgetting, patch_of

BANDWIDTH = Quantity(
    "bandwidth", "Memory bandwidth", "B/s", Level.CEILING, Better.HIGHER, lambda side: _bandwidth(side)
)
MEMORY = Quantity("memory", "Memory of a card", "B", better=Better.HIGHER, read=lambda side: _memory(side))
PEAK = Quantity("peak", "Rate of the arithmetic", "FLOP/s", Level.CEILING, Better.HIGHER, lambda side: _peak(side))
COST = Quantity("cost", "Cost of a million output tokens", "$", Level.EXPECTED, Better.LOWER, lambda side: _cost(side))
MOST_ROWS = 12
"""Cards of the table, the scenario's own among them."""


@dataclass(frozen=True, slots=True)
class _Found:
    """Cards that hold what is asked (or, where none does, at least a sequence), best first, and who was left out."""

    sides: tuple[Side, ...]
    too_small: int
    without_rate: int
    beyond_table: int

    @property
    def left_out(self) -> str:
        """Why other cards are missing, in words."""
        parts = (
            (self.too_small, "too small"),
            (self.without_rate, "without a published rate of this arithmetic"),
            (self.beyond_table, "with less bandwidth than those of the table"),
        )
        return ", ".join(f"{n:,} {why}" for n, why in parts if n)


def _compare(asked: Asked) -> Optimization:
    """The scenario on its card, and on the best of the others."""
    here = Side(asked.deployment, asked.measures)
    found = _others(asked)
    if not found.sides:
        reason = "No other card is known to move to."
        if found.left_out:
            reason = f"No other card that is known holds it: {found.left_out}."
        return refusal(SPEC, reason, is_used=True, label="Another card")
    best = found.sides[0]
    holds_here = here.fits or (not best.fits and here.measures.memory.max_concurrency > 0)
    is_used = holds_here and here.tokens_per_s >= best.tokens_per_s
    off, on = (best, here) if is_used else (here, best)
    name = best.deployment.accelerator.name
    _, forgotten = forgetting(asked.deployment, *OF_CARD, POOL)
    return Optimization(
        SPEC,
        is_used,
        f"Back to {name}" if is_used else f"Move to {name}",
        patch_of(forgotten, hardware={"id": best.deployment.accelerator.id}),
        (_sentence(off, on, is_used=is_used),),
        _figures(off, on),
        _explained(off, on),
        _variants(here, found),
    )


def _others(asked: Asked) -> _Found:
    """By throughput; of many, the ones with most bandwidth are looked at."""
    deployment, _ = forgetting(asked.deployment, *OF_CARD, POOL)
    known = [card for card in asked.alternatives if card.accelerator.id != deployment.accelerator.id]
    able = [card for card in known if _has_rates(deployment, card)]
    moved = [card.carrying(deployment) for card in able]
    holding = [each for each in moved if holds(each)] or [each for each in moved if memory(each).max_concurrency]
    holding.sort(key=lambda changed: -changed.accelerator.bandwidth_bytes_per_s)
    looked_at = [Side(changed, measure(changed)) for changed in holding[: MOST_ROWS - 1]]
    return _Found(
        tuple(sorted(looked_at, key=lambda side: -side.tokens_per_s)),
        too_small=len(able) - len(holding),
        without_rate=len(known) - len(able),
        beyond_table=len(holding) - len(looked_at),
    )


def _has_rates(deployment: Deployment, card: Alternative) -> bool:
    """Whether the card publishes a rate for every type that the scenario computes in there."""
    moved, rates = replace(deployment, accelerator=card.accelerator), card.accelerator.peak_flops_per_s
    plan = moved.precision.weights
    used = {moved.matrix_dtype(layout) for _, layout in plan.narrow} | {moved.wide_dtype, moved.attention_dtype}
    return moved.precision.compute in rates and used <= set(rates)


def _cost(side: Side) -> float | None:
    return side.measures.cost.usd_per_million_output_tokens if side.measures.cost else None


def _peak(side: Side) -> float:
    deployment = side.deployment
    return deployment.accelerator.peak(deployment.matrix_dtype(deployment.precision.weights.narrowest))


def _memory(side: Side) -> float:
    return side.deployment.accelerator.memory_bytes(side.deployment.memory_basis)


def _bandwidth(side: Side) -> float:
    return side.deployment.accelerator.bandwidth_bytes_per_s


def _figures(off: Side, on: Side) -> tuple[Figure, ...]:
    is_priced = any(_cost(side) is not None for side in (off, on))
    return (
        *figures((BANDWIDTH, PEAK, MEMORY), off, on),
        *served_figures(off, on),
        *(figures((COST,), off, on) if is_priced else ()),
    )


def _columns(here: Side) -> tuple[Quantity, ...]:
    level = best_level(here.measures)
    return (
        Quantity("bandwidth", "Bandwidth", "B/s", read=_bandwidth),
        Quantity("memory", "Memory", "B", read=_memory),
        Quantity("ttft", f"TTFT, {level}", "s", read=lambda side: side.ttft_s),
        TPOT_CEILING,
        *((TPOT_EXPECTED,) if here.measures.expected else ()),
        Quantity("throughput", f"Throughput, {level}", "tokens/s", read=lambda side: side.tokens_per_s),
        ROOM_COLUMN,
        Quantity("gain", "Throughput, times here", "", read=lambda side: side.tokens_per_s / here.tokens_per_s),
        Quantity("cost", "Million output tokens", "$", read=_cost),
    )


def _variants(here: Side, found: _Found) -> Variants:
    columns, rows = _columns(here), []
    for side in sorted((here, *found.sides), key=lambda side: -side.tokens_per_s):
        is_here = side is here
        notes = [found.left_out and f"not in the table: {found.left_out}" if is_here else "", side.note]
        name, note = side.deployment.accelerator.name, "; ".join(note for note in notes if note)
        rows.append(row(columns, name, side, is_here=is_here, note=note))
    return Variants(columns, tuple(rows))


def _sentence(off: Side, on: Side, *, is_used: bool) -> str:
    old, new = (side.deployment.accelerator.name for side in (off, on))
    ratio = _bandwidth(on) / _bandwidth(off)
    more = "as much bandwidth as" if abs(ratio - 1) < ALIKE else f"{times(ratio)} the bandwidth of"
    gain = on.tokens_per_s / off.tokens_per_s
    start = f"No card known here gives more than this one. {new}" if is_used else new
    text = f"{start} has {more} {old}, and"
    served = [side.measures.memory.served_sequences for side in (off, on)]
    if served[0] != served[1]:
        rates = [quantity(side.tokens_per_s, "tokens/s", 3) for side in (off, on)]
        return f"{text} runs {served[1]:,} sequences at a time instead of {served[0]:,}: {rates[1]}, not {rates[0]}."
    text = change_of_time(f"{text} a token comes", off.tpot_s, on.tpot_s)
    kept = unshrunk(off, on)
    if kept is not None and off.tpot_s / on.tpot_s < ratio:
        text += f": {kept[0]} took no less, {quantity(kept[1], 's', 3)} of it"
    return f"{text}. Throughput is {significant(gain, 3)} times, {quantity(on.tokens_per_s, 'tokens/s', 3)}."


def _explained(off: Side, on: Side) -> tuple[Explanation, ...]:
    bandwidths = (
        ("W", f"bandwidth of {on.deployment.accelerator.name}", _bandwidth(on), "B/s"),
        ("V", f"bandwidth of {off.deployment.accelerator.name}", _bandwidth(off), "B/s"),
    )
    ratio = _bandwidth(on) / _bandwidth(off)
    times_ = (
        ("t", "ceiling of a token without the change", off.measures.serving.tpot_s.ceiling, "s"),
        ("u", "the same with it", on.measures.serving.tpot_s.ceiling, "s"),
    )
    gain = off.measures.serving.tpot_s.ceiling / on.measures.serving.tpot_s.ceiling
    roofline = "Roofline, operator by operator: Williams et al., CACM 52(4), 2009"
    return (
        working("newer_card.bandwidth", "Gain in bandwidth", "W ÷ V", bandwidths, (ratio, "", "Vendors’ data sheets")),
        working("newer_card.tpot", "Gain at the ceiling of a token", "t ÷ u", times_, (gain, "", roofline)),
    )


SPEC = Spec(
    "newer_card",
    "A newer card",
    _compare,
    counts=("throughput",),
    shown=("bandwidth", "tpot"),
    limits=(
        "Only cards of the same maker are looked at: on sale, no older than this one, and well attested.",
        "The split, the number of cards and the engine’s settings stay as they are; a larger card may need fewer of "
        "them.",
        "A card on which nothing was measured takes the efficiencies of its relatives.",
        "Prices are what was published for renting one; they change by the week.",
    ),
)
