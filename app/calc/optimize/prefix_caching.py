"""Prefix caching: what of a prompt was computed before is not computed again, and what all have in common stands once.

Source: Zheng et al., "SGLang: efficient execution of structured language model programs" (RadixAttention), 2024.
"""

from dataclasses import replace
from typing import Any

from app.calc.broadcast import scalar
from app.calc.deployment import Deployment
from app.calc.derivation import Explanation
from app.calc.optimize.optimization import (
    Asked,
    Better,
    Candidate,
    Figure,
    Optimization,
    Quantity,
    Row,
    Sentence,
    Size,
    Spec,
    Variants,
    refusal,
)
from app.calc.optimize.sides import (
    ROOM_COLUMN,
    Side,
    change_of_time,
    figures,
    row,
    served_figures,
    side_of,
    times,
    working,
)
from app.calc.quantity import quantity, significant

_PERCENT = 100
COMPUTED = Quantity(
    "computed_tokens",
    "Prompt tokens that are computed",
    "tokens",
    better=Better.LOWER,
    read=lambda side: float(_computed(side.deployment)),
)
WORK = Quantity(
    "prefill_flops",
    "Arithmetic of a prefill",
    "FLOP",
    better=Better.LOWER,
    read=lambda side: side.measures.prefill.flops,
)
SHARED = Quantity("shared_bytes", "Cache that stands once for all", "B")
COLUMNS = (
    Quantity("found_share", "Found", "% of the prompt", read=lambda side: _found_percent(side.deployment)),
    Quantity("shared_tokens", "Shared by all", "tokens", read=lambda side: float(side.deployment.shared_tokens)),
    Quantity("ttft", "TTFT", "s", read=lambda side: side.measures.serving.ttft_s.best_known),
    ROOM_COLUMN,
    Quantity("throughput", "Throughput", "tokens/s", read=lambda side: side.tokens_per_s),
)
SYSTEM_SHARE, FEW_SHOT_SHARE, TURNS = 0.5, 0.9, 5
"""Presets: half of the prompt is a system prompt; nine tenths are examples; the fifth turn of a chat."""


def _compare(asked: Asked) -> Optimization:
    """The scenario with nothing found in the cache, and with the prefix that it has, or a system prompt."""
    here = asked.deployment
    is_used = here.workload.prefix_hit_rate > 0 or here.engine.shared_tokens > 0
    if here.workload.prompt_tokens < 2:
        reason = "A prompt of one token has no prefix: its last token is always computed."
        return refusal(SPEC, reason, is_used=is_used)
    nothing = _with(here, 0.0, 0)
    off, on = side_of(asked, nothing), side_of(asked, here if is_used else with_system_prompt(here))
    return Optimization(
        SPEC,
        is_used,
        "Find nothing in the cache" if is_used else "Share a system prompt of half the prompt",
        prefix_change(nothing if is_used else on.deployment),
        _sentence(off, on),
        (
            *figures((COMPUTED, WORK), off, on),
            Figure(SHARED, 0.0, on.measures.memory.shared_bytes, SHARED.level),
            *served_figures(off, on),
        ),
        _explained(off, on),
        Variants(COLUMNS, tuple(_rows(asked, off))),
    )


def _candidate(deployment: Deployment) -> Candidate | None:
    """Not a switch, but what a prompt with a common beginning would be worth."""
    workload = deployment.workload
    if workload.prefix_hit_rate or deployment.engine.shared_tokens or workload.prompt_tokens < 2:
        return None
    changed = with_system_prompt(deployment)
    return Candidate(
        prefix_change(changed), f"Let {_PERCENT * SYSTEM_SHARE:.0f} % of every prompt be the same", changed
    )


def prefix_change(deployment: Deployment) -> dict[str, Any]:
    """The patch that leads to what a deployment finds in the cache, and shares."""
    hit, shared = deployment.workload.prefix_hit_rate, deployment.engine.shared_tokens
    return {"workload": {"prefix_hit_rate": hit, "shared_prefix_tokens": shared}}


def _with(deployment: Deployment, hit: float, shared: int) -> Deployment:
    return replace(
        deployment,
        workload=replace(deployment.workload, prefix_hit_rate=hit),
        engine=replace(deployment.engine, shared_tokens=shared),
    )


def with_system_prompt(deployment: Deployment) -> Deployment:
    """The deployment with half of every prompt the same."""
    return _shared(deployment, SYSTEM_SHARE)


def _shared(deployment: Deployment, share: float) -> Deployment:
    """So much of every prompt is the same; where room is reserved for each sequence nothing stands once for all."""
    common = int(share * deployment.workload.prompt_tokens)
    return _with(deployment, share, 0 if deployment.engine.reserved_tokens else common)


def _computed(deployment: Deployment) -> int:
    return deployment.workload.prompt_tokens - deployment.workload.cached_prompt_tokens


def _rows(asked: Asked, off: Side) -> list[Row]:
    nothing, here = off.deployment, asked.deployment
    tried = [
        ("nothing found", nothing, ""),
        ("a system prompt", with_system_prompt(nothing), "half of the prompt is the same for all"),
        (
            f"turn {TURNS} of a chat",
            _with(nothing, 1 - 1 / TURNS, 0),
            "four fifths were said before, to this user alone: found, but not shared",
        ),
        ("few-shot examples", _shared(nothing, FEW_SHOT_SHARE), "nine tenths of the prompt are the same for all"),
        ("the whole prompt", _shared(nothing, 1.0), "asked before, word for word: one token is computed"),
    ]
    if here not in [deployment for _, deployment, _ in tried]:
        tried.append(("this scenario", here, ""))
    return [_row(asked, deployment, label, note) for label, deployment, note in tried]


def _found_percent(deployment: Deployment) -> float:
    return _PERCENT * deployment.workload.cached_prompt_tokens / deployment.workload.prompt_tokens


def _row(asked: Asked, deployment: Deployment, label: str, note: str) -> Row:
    return row(COLUMNS, label, side_of(asked, deployment), is_here=deployment == asked.deployment, note=note)


def _sentence(off: Side, on: Side) -> Sentence:
    workload, shared = on.deployment.workload, on.measures.memory.shared_bytes
    found = workload.cached_prompt_tokens
    times_s = [side.measures.prefill_s.best_known for side in (off, on)]
    text = (
        f"{found:,} of {workload.prompt_tokens:,} prompt tokens are found and not computed: the prefill of one prompt "
        f"takes {quantity(times_s[1], 's', 3)} in place of {quantity(times_s[0], 's', 3)}"
    )
    rooms = off.measures.memory.max_concurrency, on.measures.memory.max_concurrency
    if not shared or rooms[0] == rooms[1]:
        return (f"{text}; {change_of_time('each token comes', off.tpot_s, on.tpot_s)}.",)
    gain = f", {times(rooms[1] / rooms[0])} as many" if rooms[0] else ""
    held = f"{rooms[1]:,} sequences find room in place of {rooms[0]:,}{gain}"
    return f"{text}; ", Size(shared), f" on each GPU stand once for all, and {held}."


def _explained(off: Side, on: Side) -> tuple[Explanation, ...]:
    workload = on.deployment.workload
    p, hit = workload.prompt_tokens, workload.prefix_hit_rate
    saved = 1 - scalar(on.measures.prefill.flops) / scalar(off.measures.prefill.flops)
    return (
        working(
            "prefix_caching.computed_tokens",
            "Prompt tokens that are computed",
            "max(1, p − ⌊p × r⌋)",
            (("p", "tokens of the prompt", p, "tokens"), ("r", "share that is found", hit, "")),
            (float(_computed(on.deployment)), "tokens", "Whole tokens; the last one is always computed"),
        ),
        working(
            "prefix_caching.saved_arithmetic",
            "Share of the prefill's arithmetic that is saved",
            "1 − F_1 ÷ F_0",
            (
                ("F_0", "arithmetic of the whole prompt", off.measures.prefill.flops, "FLOP"),
                ("F_1", "arithmetic of what is computed", on.measures.prefill.flops, "FLOP"),
            ),
            (saved, "", f"Operators as counted in docs/ceilings.md; {significant(_PERCENT * saved, 3)} %"),
        ),
    )


SPEC = Spec(
    "prefix_caching",
    "Prefix caching",
    _compare,
    counts=("ttft",),
    shown=("computed_tokens", "ttft", "capacity"),
    limits=(
        "The last token of a prompt is always computed, and only whole blocks are found.",
        "A hit needs room to have kept the prefix in: a cache that is full of running sequences keeps little.",
        "Rows that are shared are still read once for each sequence in a decode step; kernels that read them once for "
        "all (cascade attention) would gain there too.",
        "Layers with a window keep their own last tokens, and recurrent layers a state at the prefix’s end, if at all.",
    ),
    candidate=_candidate,
)
