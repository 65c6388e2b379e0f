"""Chunked prefill: the first token of one against the stream of all the others."""

from app.calc.doors.door import Asked, Better, Door, DoorId, Figure, Level, Row, Variants
from app.calc.doors.sides import figure, times, working
from app.calc.explanation import Explanation
from app.calc.notation import quantity
from app.calc.techniques.chunked import Chunked, chunked

TITLE = "Chunked prefill"
PAUSE, FIRST = "Longest pause of a running stream", "First token of the prompt"
CHUNKS, READ = "Steps that the prompt takes", "Bytes that the prompt’s steps read on a GPU"
COLUMNS = (
    ("Chunks", ""),
    ("Longest pause, ceiling", "s"),
    ("Longest pause, expected", "s"),
    ("First token, ceiling", "s"),
    ("First token, expected", "s"),
)
BUDGETS = (256, 512, 1024, 2048, 4096, 8192, 16_384)
LIMITS = (
    "One prompt among streams that all decode; several prompts at a time share the budget and take longer.",
    "Chunks are told as even parts of the prompt’s arithmetic: the last ones attend to more, and take longer.",
    "The times of an answer on this page are those of the whole mix and follow the fit to measurements, whose engines "
    "nearly all cut prompts up; a prompt that is not cut is told with weights that are read once.",
)


def chunked_prefill_door(asked: Asked) -> Door:
    """A prompt in one step of its own, and in steps that carry the others’ tokens too."""
    here, measures = asked.deployment, asked.measures
    is_open, budget = here.engine.chunks_prefill, here.engine.step_tokens
    change = {"techniques": {"chunked_prefill": not is_open}}
    if here.prefill_pool is not None:
        reason = "Prompts are prefilled on GPUs of their own, where nobody decodes: there is no stream to interrupt."
        return Door(DoorId.CHUNKED_PREFILL, TITLE, is_open, TITLE, {}, reason, refused=reason)
    whole, cut = chunked(here, measures, None), chunked(here, measures, budget)
    figures = (
        figure(CHUNKS, (float(whole.chunks), float(cut.chunks)), "", Level.EXACT, Better.NEITHER),
        figure(READ, (whole.read_bytes, cut.read_bytes), "B", Level.EXACT, Better.LOWER),
        *_both(PAUSE, (whole.pause_ceiling_s, cut.pause_ceiling_s), (whole.pause_s, cut.pause_s)),
        *_both(FIRST, (whole.first_ceiling_s, cut.first_ceiling_s), (whole.first_s, cut.first_s)),
    )
    return Door(
        DoorId.CHUNKED_PREFILL,
        TITLE,
        is_open,
        "Prefill each prompt whole" if is_open else f"Prefill in steps of {budget:,} tokens",
        change,
        _sentence(asked, whole, cut),
        figures,
        _explained(asked, cut),
        Variants(COLUMNS, tuple(_rows(asked, budget, is_open=is_open))),
        LIMITS,
    )


def _both(label: str, ceilings: tuple[float, float], expected: tuple[float | None, float | None]) -> tuple[Figure, ...]:
    ceiling = figure(label, ceilings, "s", Level.CEILING, Better.LOWER)
    if None in expected:
        return (ceiling,)
    return ceiling, figure(label, expected, "s", Level.EXPECTED, Better.LOWER)


def _rows(asked: Asked, budget: int, *, is_open: bool) -> list[Row]:
    rows = []
    for tokens in sorted({*BUDGETS, budget}):
        found = chunked(asked.deployment, asked.measures, tokens)
        rows.append(_row(f"{tokens:,} tokens a step", found, is_here=is_open and tokens == budget))
    return [*rows, _row("whole, in a step of its own", chunked(asked.deployment, asked.measures, None), not is_open)]


def _row(label: str, found: Chunked, is_here: bool) -> Row:
    values = (float(found.chunks), found.pause_ceiling_s, found.pause_s, found.first_ceiling_s, found.first_s)
    return Row(label, values, is_here)


def _sentence(asked: Asked, whole: Chunked, cut: Chunked) -> str:
    others = asked.measures.memory.rank_sequences
    before, after = quantity(whole.best_pause_s, "s", 3), quantity(cut.best_pause_s, "s", 3)
    who = f"{others:,} running streams pause" if others > 1 else "a running stream pauses"
    text = (
        f"While a prompt is prefilled whole, {who} for {before}; in steps of {cut.budget_tokens:,} tokens for {after}"
    )
    first = cut.best_first_s / whole.best_first_s
    if cut.chunks == 1:
        return f"{text}: the prompt fits one step, so only the step is shared."
    later = f"{times(first)} as late" if first > 1 else "no later"
    return f"{text}, and its own first token comes {later}, after {cut.chunks:,} steps."


def _explained(asked: Asked, cut: Chunked) -> tuple[Explanation, ...]:
    workload, batch = asked.deployment.workload, asked.measures.memory.rank_sequences
    new = workload.prompt_tokens - workload.cached_prompt_tokens
    chunk = (
        ("b", "token budget of a step", cut.budget_tokens, "tokens"),
        ("B", "tokens of those that decode, one each", batch, "tokens"),
        ("p", "prompt tokens to compute", new, "tokens"),
    )
    source = "Agrawal et al., OSDI 2024: decoding first, the rest of the budget for a chunk"
    return (
        working(
            "chunked_prefill.chunk_tokens",
            "Prompt tokens of a step",
            "max(1, min(p, b − B))",
            chunk,
            (float(cut.chunk_tokens), "tokens", source),
        ),
        working(
            "chunked_prefill.chunks",
            "Steps that the prompt takes",
            "⌈p ÷ m⌉",
            (chunk[2], ("m", "prompt tokens of a step", cut.chunk_tokens, "tokens")),
            (float(cut.chunks), "", source),
        ),
    )
