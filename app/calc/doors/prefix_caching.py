"""Prefix caching: what of a prompt was computed before is not computed again, and what all have in common stands once.

Source: Zheng et al., "SGLang: efficient execution of structured language model programs" (RadixAttention), 2024.
"""

from dataclasses import replace
from typing import Any

from app.calc.broadcast import scalar
from app.calc.deployment import Deployment
from app.calc.doors.door import Asked, Better, Door, DoorId, Level, Row, Variants
from app.calc.doors.sides import Side, change_of_time, figure, served_figures, side_of, times, working
from app.calc.explanation import Explanation
from app.calc.notation import quantity, significant

TITLE = "Prefix caching"
COMPUTED, WORK, SHARED = "Prompt tokens that are computed", "Arithmetic of a prefill", "Cache that stands once for all"
COLUMNS = (
    ("Found", "% of the prompt"),
    ("Shared by all", "tokens"),
    ("TTFT", "s"),
    ("Room", "sequences"),
    ("Throughput", "tokens/s"),
)
SYSTEM_SHARE, FEW_SHOT_SHARE, TURNS = 0.5, 0.9, 5
"""Presets: half of the prompt is a system prompt; nine tenths are examples; the fifth turn of a chat."""
LIMITS = (
    "The last token of a prompt is always computed, and only whole blocks are found.",
    "A hit needs room to have kept the prefix in: a cache that is full of running sequences keeps little.",
    "Rows that are shared are still read once for each sequence in a decode step; kernels that read them once for "
    "all (cascade attention) would gain there too.",
    "Layers with a window keep their own last tokens, and recurrent layers a state at the prefix’s end, if at all.",
)
_PERCENT = 100


def prefix_caching_door(asked: Asked) -> Door:
    """The scenario with nothing found in the cache, and with the prefix that it has, or a system prompt."""
    here = asked.deployment
    workload, engine = here.workload, here.engine
    is_open = workload.prefix_hit_rate > 0 or engine.shared_tokens > 0
    if workload.prompt_tokens < 2:
        reason = "A prompt of one token has no prefix: its last token is always computed."
        return Door(DoorId.PREFIX_CACHING, TITLE, is_open, TITLE, {}, reason, refused=reason)
    nothing, system = _with(here, 0.0, 0), with_system_prompt(here)
    closed, opened = side_of(asked, nothing), side_of(asked, here if is_open else system)
    computed = (float(_computed(side.deployment)) for side in (closed, opened))
    flops = (side.measures.prefill.flops for side in (closed, opened))
    figures = (
        figure(COMPUTED, computed, "tokens", Level.EXACT, Better.LOWER),
        figure(WORK, flops, "FLOP", Level.EXACT, Better.LOWER),
        figure(SHARED, (0.0, opened.measures.memory.shared_bytes), "B", Level.EXACT, Better.NEITHER),
        *served_figures(closed, opened),
    )
    return Door(
        DoorId.PREFIX_CACHING,
        TITLE,
        is_open,
        "Find nothing in the cache" if is_open else "Share a system prompt of half the prompt",
        prefix_change(nothing if is_open else opened.deployment),
        _sentence(closed, opened),
        figures,
        _explained(closed, opened),
        Variants(COLUMNS, tuple(_rows(asked, closed))),
        LIMITS,
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


def _rows(asked: Asked, closed: Side) -> list[Row]:
    nothing, here = closed.deployment, asked.deployment
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


def _row(asked: Asked, deployment: Deployment, label: str, note: str) -> Row:
    side = side_of(asked, deployment)
    served = side.measures.serving
    values = (
        _PERCENT * deployment.workload.cached_prompt_tokens / deployment.workload.prompt_tokens,
        float(deployment.shared_tokens),
        served.ttft_s.best_known,
        float(side.measures.memory.max_concurrency),
        side.tokens_per_s,
    )
    return Row(label, values, deployment == asked.deployment, note)


def _sentence(closed: Side, opened: Side) -> str:
    workload, shared = opened.deployment.workload, opened.measures.memory.shared_bytes
    found = workload.cached_prompt_tokens
    times_s = [side.measures.prefill_s.best_known for side in (closed, opened)]
    text = (
        f"{found:,} of {workload.prompt_tokens:,} prompt tokens are found and not computed: the prefill of one prompt "
        f"takes {quantity(times_s[1], 's', 3)} in place of {quantity(times_s[0], 's', 3)}"
    )
    rooms = closed.measures.memory.max_concurrency, opened.measures.memory.max_concurrency
    if not shared or rooms[0] == rooms[1]:
        return f"{text}; {change_of_time('each token comes', closed.tpot_s, opened.tpot_s)}."
    gain = f", {times(rooms[1] / rooms[0])} as many" if rooms[0] else ""
    common = f"{quantity(shared, 'B', 3)} on each GPU"
    return f"{text}; {common} stand once for all, and {rooms[1]:,} sequences find room in place of {rooms[0]:,}{gain}."


def _explained(closed: Side, opened: Side) -> tuple[Explanation, ...]:
    workload = opened.deployment.workload
    p, hit = workload.prompt_tokens, workload.prefix_hit_rate
    saved = 1 - scalar(opened.measures.prefill.flops) / scalar(closed.measures.prefill.flops)
    return (
        working(
            "prefix_caching.computed_tokens",
            "Prompt tokens that are computed",
            "max(1, p − ⌊p × r⌋)",
            (("p", "tokens of the prompt", p, "tokens"), ("r", "share that is found", hit, "")),
            (float(_computed(opened.deployment)), "tokens", "Whole tokens; the last one is always computed"),
        ),
        working(
            "prefix_caching.saved_arithmetic",
            "Share of the prefill's arithmetic that is saved",
            "1 − F_1 ÷ F_0",
            (
                ("F_0", "arithmetic of the whole prompt", closed.measures.prefill.flops, "FLOP"),
                ("F_1", "arithmetic of what is computed", opened.measures.prefill.flops, "FLOP"),
            ),
            (saved, "", f"Operators as counted in docs/ceilings.md; {significant(_PERCENT * saved, 3)} %"),
        ),
    )
