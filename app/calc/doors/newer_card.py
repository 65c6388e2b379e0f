"""More bandwidth: the same scenario on the other cards that hold it.

Closed is the scenario's card and open the best of the others by throughput; where no other gives more the door is open
already, and closed is the next best.
"""

from dataclasses import dataclass, replace
from typing import Any

from app.calc.alternatives import Alternative
from app.calc.deployment import Deployment
from app.calc.doors.door import Asked, Better, Door, DoorId, Figure, Level, Row, Variants
from app.calc.doors.sides import (
    ALIKE,
    Side,
    change_of_time,
    figure,
    served_figures,
    times,
    told_as,
    unshrunk,
    working,
)
from app.calc.explanation import Explanation
from app.calc.forgetting import POOL, forgetting, patch_of
from app.calc.lever_candidates import OF_CARD, holds
from app.calc.measure import measure
from app.calc.memory import memory
from app.calc.notation import quantity, significant

TITLE = "A newer card"
BANDWIDTH, MEMORY, PEAK, COST = (
    "Memory bandwidth",
    "Memory of a card",
    "Rate of the arithmetic",
    "Cost of a million output tokens",
)
MOST_ROWS = 12
"""Cards of the table, the scenario's own among them."""
LIMITS = (
    "Only cards of the same maker are looked at: on sale, no older than this one, and well attested.",
    "The split, the number of cards and the engine’s settings stay as they are; a larger card may need fewer of them.",
    "A card on which nothing was measured takes the efficiencies of its relatives.",
    "Prices are what was published for renting one; they change by the week.",
)


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


def newer_card_door(asked: Asked) -> Door:
    """The scenario on its card, and on the best of the others."""
    here = Side(asked.deployment, asked.measures)
    found = _others(asked)
    if not found.sides:
        reason = "No other card is known to move to."
        if found.left_out:
            reason = f"No other card that is known holds it: {found.left_out}."
        return Door(DoorId.NEWER_CARD, TITLE, True, "Another card", {}, reason, refused=reason)
    best = found.sides[0]
    holds_here = here.fits or (not best.fits and here.measures.memory.max_concurrency > 0)
    is_open = holds_here and here.tokens_per_s >= best.tokens_per_s
    closed, opened = (best, here) if is_open else (here, best)
    name = best.deployment.accelerator.name
    _, forgotten = forgetting(asked.deployment, *OF_CARD, POOL)
    change: dict[str, Any] = patch_of(forgotten, hardware={"id": best.deployment.accelerator.id})
    return Door(
        DoorId.NEWER_CARD,
        TITLE,
        is_open,
        f"Back to {name}" if is_open else f"Move to {name}",
        change,
        _sentence(closed, opened, is_open=is_open),
        _figures(closed, opened),
        _explained(closed, opened),
        _variants(here, found),
        LIMITS,
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


def _figures(closed: Side, opened: Side) -> tuple[Figure, ...]:
    both = closed, opened
    found = [
        figure(BANDWIDTH, map(_bandwidth, both), "B/s", Level.CEILING, Better.HIGHER),
        figure(PEAK, map(_peak, both), "FLOP/s", Level.CEILING, Better.HIGHER),
        figure(MEMORY, map(_memory, both), "B", Level.EXACT, Better.HIGHER),
        *served_figures(closed, opened),
    ]
    if any(_cost(side) is not None for side in both):
        found.append(figure(COST, map(_cost, both), "$", Level.EXPECTED, Better.LOWER))
    return tuple(found)


def _columns(here: Side) -> tuple[tuple[str, str], ...]:
    level = told_as(here.measures)
    return (
        ("Bandwidth", "B/s"),
        ("Memory", "B"),
        (f"TTFT, {level}", "s"),
        ("TPOT, ceiling", "s"),
        *((("TPOT, expected", "s"),) if here.measures.expected else ()),
        (f"Throughput, {level}", "tokens/s"),
        ("Room", "sequences"),
        ("Throughput, times here", ""),
        ("Million output tokens", "$"),
    )


def _variants(here: Side, found: _Found) -> Variants:
    sides = sorted((here, *found.sides), key=lambda side: -side.tokens_per_s)
    rows = []
    for side in sides:
        is_here = side is here
        notes = [found.left_out and f"not in the table: {found.left_out}" if is_here else ""]
        notes.append(side.note)
        rows.append(_row(side, here, "; ".join(note for note in notes if note), is_here=is_here))
    return Variants(_columns(here), tuple(rows))


def _row(side: Side, here: Side, note: str, *, is_here: bool) -> Row:
    served = side.measures.serving
    ttft = served.ttft_s.mid if side.measures.expected else served.ttft_s.ceiling
    values = (
        _bandwidth(side),
        _memory(side),
        ttft,
        served.tpot_s.ceiling,
        *((served.tpot_s.mid,) if here.measures.expected else ()),
        side.tokens_per_s,
        float(side.measures.memory.max_concurrency),
        side.tokens_per_s / here.tokens_per_s,
        _cost(side),
    )
    return Row(side.deployment.accelerator.name, values, is_here, note)


def _sentence(closed: Side, opened: Side, *, is_open: bool) -> str:
    old, new = (side.deployment.accelerator.name for side in (closed, opened))
    ratio = _bandwidth(opened) / _bandwidth(closed)
    more = "as much bandwidth as" if abs(ratio - 1) < ALIKE else f"{times(ratio)} the bandwidth of"
    gain = opened.tokens_per_s / closed.tokens_per_s
    start = f"No card known here gives more than this one. {new}" if is_open else new
    text = f"{start} has {more} {old}, and"
    served = [side.measures.memory.served_sequences for side in (closed, opened)]
    if served[0] != served[1]:
        rates = [quantity(side.tokens_per_s, "tokens/s", 3) for side in (closed, opened)]
        return f"{text} runs {served[1]:,} sequences at a time instead of {served[0]:,}: {rates[1]}, not {rates[0]}."
    text = change_of_time(f"{text} a token comes", closed.tpot_s, opened.tpot_s)
    kept = unshrunk(closed, opened)
    if kept is not None and closed.tpot_s / opened.tpot_s < ratio:
        text += f": {kept[0]} took no less, {quantity(kept[1], 's', 3)} of it"
    return f"{text}. Throughput is {significant(gain, 3)} times, {quantity(opened.tokens_per_s, 'tokens/s', 3)}."


def _explained(closed: Side, opened: Side) -> tuple[Explanation, ...]:
    bandwidths = (
        ("W", f"bandwidth of {opened.deployment.accelerator.name}", _bandwidth(opened), "B/s"),
        ("V", f"bandwidth of {closed.deployment.accelerator.name}", _bandwidth(closed), "B/s"),
    )
    ratio = _bandwidth(opened) / _bandwidth(closed)
    times_ = (
        ("t", "ceiling of a token without the change", closed.measures.serving.tpot_s.ceiling, "s"),
        ("u", "the same with it", opened.measures.serving.tpot_s.ceiling, "s"),
    )
    gain = closed.measures.serving.tpot_s.ceiling / opened.measures.serving.tpot_s.ceiling
    roofline = "Roofline, operator by operator: Williams et al., CACM 52(4), 2009"
    return (
        working("newer_card.bandwidth", "Gain in bandwidth", "W ÷ V", bandwidths, (ratio, "", "Vendors’ data sheets")),
        working("newer_card.tpot", "Gain at the ceiling of a token", "t ÷ u", times_, (gain, "", roofline)),
    )
