"""Pages against reservation: what of a cache holds real tokens, and how many sequences find room.

Before paging an engine set room aside for the longest that a sequence might become; in pages only the last one of each
sequence is partly empty.
Source: Kwon et al., "Efficient memory management for large language model serving with PagedAttention", SOSP 2023.
"""

from dataclasses import replace

from app.calc.deployment import Deployment
from app.calc.derivation import Explanation
from app.calc.memory.engines.parts import MOST_TOKENS
from app.calc.optimize.optimization import (
    Asked,
    Better,
    Candidate,
    Level,
    Optimization,
    Quantity,
    Row,
    Spec,
    Variants,
    refusal,
)
from app.calc.optimize.sides import (
    ROOM_COLUMN,
    Side,
    figure,
    row,
    served_figures,
    side_of,
    throughput_at_capacity,
    times,
    working,
)
from app.calc.quantity import significant

_PERCENT = 100
USED = Quantity("used_share", "Share of the cache that holds real tokens", "%", better=Better.HIGHER)
FULL = Quantity("throughput_full", "Output tokens a second with the room full", "tokens/s", better=Better.HIGHER)
COLUMNS = (
    Quantity(
        "set_aside", "Set aside", "tokens", read=lambda side: used_tokens(side.deployment) / used_share(side.deployment)
    ),
    Quantity("used_share", "Used", "%", read=lambda side: _PERCENT * used_share(side.deployment)),
    ROOM_COLUMN,
    Quantity("throughput_full", "Throughput, room full", "tokens/s", read=lambda side: _full(side)),
)
PAGES = "Keep the cache in pages"


def _compare(asked: Asked) -> Optimization:
    """The scenario with room reserved for whole sequences, and with pages."""
    here = asked.deployment
    is_used = here.engine.reserved_tokens is None
    paged = here if is_used else _reserving(here, None)
    if not paged.architecture.layers or not asked.measures.memory.kv_bytes_per_sequence:
        reason = f"{here.architecture.name} keeps nothing of a sequence: there is nothing to page."
        return refusal(SPEC, reason, is_used=is_used)
    if paged.shared_tokens:
        paged = replace(paged, engine=replace(paged.engine, shared_tokens=0))
    reserved = usual_reservation(paged) if is_used else here.engine.reserved_tokens or 1
    off, on = side_of(asked, _reserving(paged, reserved)), side_of(asked, paged)
    shares = used_share(off.deployment), used_share(on.deployment)
    return Optimization(
        SPEC,
        is_used,
        f"Set {reserved:,} tokens aside for each sequence" if is_used else PAGES,
        {"techniques": {"reserved_tokens": reserved if is_used else None}},
        (_sentence(off, on, shares),),
        (
            figure(USED, (_PERCENT * share for share in shares)),
            *served_figures(off, on),
            figure(FULL, map(_full, (off, on)), Level.EXPECTED if asked.measures.expected else Level.CEILING),
        ),
        _explained(off.deployment, on.deployment, shares),
        Variants(COLUMNS, tuple(_rows(asked, paged, reserved))),
    )


def _candidate(deployment: Deployment) -> Candidate | None:
    if deployment.engine.reserved_tokens is None:
        return None
    return Candidate({"techniques": {"reserved_tokens": None}}, PAGES, _reserving(deployment, None))


def usual_reservation(deployment: Deployment) -> int:
    """What an engine without pages would set aside: the longest sequence it is set to serve; where none is set, the
    power of two that holds the longest of the workload.
    """
    if deployment.engine.max_model_len is not None:
        return max(deployment.engine.max_model_len, deployment.workload.total_tokens)
    return _power_of_two(_longest(deployment))


def used_tokens(deployment: Deployment) -> float:
    """Tokens that a running sequence has, in expectation: prompt, and what there is of its answer."""
    return deployment.workload.prompt_tokens + deployment.workload.lengths.mid_answer


def used_share(deployment: Deployment) -> float:
    """Share of what a sequence takes that holds tokens: used ÷ reserved; in pages used ÷ (used + half an empty page).

    Worked numbers: 1,000 + 250 of 2,048 reserved are 61.0 %; in pages of 16, 1,250 ÷ 1,257.5 = 99.4 %.
    """
    used, reserved = used_tokens(deployment), deployment.engine.reserved_tokens
    if reserved is not None:
        return used / max(reserved, deployment.workload.total_tokens, used)
    return used / (used + (deployment.engine.block_tokens - 1) / 2)


def _reserving(deployment: Deployment, tokens: int | None) -> Deployment:
    return replace(deployment, engine=replace(deployment.engine, reserved_tokens=tokens))


def _full(side: Side) -> float:
    return throughput_at_capacity(side) or 0.0


def _longest(deployment: Deployment) -> int:
    workload, most = deployment.workload, deployment.workload.lengths.most
    if most == float("inf"):
        return max(deployment.architecture.max_position or 0, workload.total_tokens)
    return workload.prompt_tokens + int(most)


def _power_of_two(tokens: int) -> int:
    return min(MOST_TOKENS, 1 << (tokens - 1).bit_length())


def _rows(asked: Asked, paged: Deployment, reserved: int) -> list[Row]:
    """Reservations from exact to the longest that is served, and pages."""
    total, served = paged.workload.total_tokens, paged.max_model_len
    tried = {
        total: "just what the answer comes to, as if it were known",
        _power_of_two(total): "the power of two above it",
        reserved: "as compared here",
        served: "the longest sequence that is served",
    }
    rows = []
    for tokens, note in sorted(tried.items()):
        if tokens >= total:
            rows.append(_row(asked, _reserving(paged, tokens), f"{tokens:,} reserved", note))
    size = paged.engine.block_tokens
    return [*rows, _row(asked, paged, f"pages of {size:,}", "one partly empty page a sequence")]


def _row(asked: Asked, deployment: Deployment, label: str, note: str) -> Row:
    """What is set aside of a paged sequence is what it takes on average; capacity is always at full length."""
    return row(COLUMNS, label, side_of(asked, deployment), is_here=deployment == asked.deployment, note=note)


def _sentence(off: Side, on: Side, shares: tuple[float, float]) -> str:
    rooms = off.measures.memory.max_concurrency, on.measures.memory.max_concurrency
    percent = [f"{significant(_PERCENT * share, 3)} %" for share in shares]
    text = f"Of the room that a sequence takes {percent[0]} holds tokens when it is reserved, {percent[1]} in pages"
    if not rooms[0]:
        return f"{text}: not one reserved sequence finds room, {rooms[1]:,} paged ones do."
    if rooms[0] == rooms[1]:
        return f"{text}; {rooms[1]:,} sequences find room either way."
    return f"{text}: {rooms[1]:,} sequences find room in place of {rooms[0]:,}, {times(rooms[1] / rooms[0])} as many."


def _explained(off: Deployment, on: Deployment, shares: tuple[float, float]) -> tuple[Explanation, ...]:
    used = (
        ("p", "tokens of the prompt", off.workload.prompt_tokens, "tokens"),
        (
            "a",
            "tokens of its answer that a running sequence has, on average",
            off.workload.lengths.mid_answer,
            "tokens",
        ),
    )
    set_aside = ("R", "tokens set aside", max(off.held_tokens, used_tokens(off)), "tokens")
    page = ("n_b", "tokens of a page", on.engine.block_tokens, "tokens")
    source = "Kwon et al., SOSP 2023: internal fragmentation; half of the last page is empty on average"
    return (
        working(
            "paging.used_reserved",
            "Share of reserved room that holds tokens",
            "(p + a) ÷ R",
            (*used, set_aside),
            (shares[0], "", source),
        ),
        working(
            "paging.used_paged",
            "Share of paged room that holds tokens",
            "(p + a) ÷ (p + a + (n_b − 1) ÷ 2)",
            (*used, page),
            (shares[1], "", source),
        ),
    )


SPEC = Spec(
    "paging",
    "Paging",
    _compare,
    counts=("capacity",),
    shown=("used_share", "capacity"),
    limits=(
        "A sequence is told at its full length: as most are shorter at any moment, a paged engine admits more than the "
        "room said here, and takes some back when all grow.",
        "Pages cost a table to look up, and kernels that read scattered rows; neither is timed here.",
        "Room that is shared by sequences with a common prefix is an optimization of its own.",
    ),
    candidate=_candidate,
)
