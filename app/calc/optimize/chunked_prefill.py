"""Chunked prefill: the first token of one against the stream of all the others."""

from dataclasses import replace

from app.calc.deployment import Deployment
from app.calc.derivation import Explanation
from app.calc.optimize.optimization import (
    Asked,
    Better,
    Candidate,
    Figure,
    Level,
    Optimization,
    Quantity,
    Row,
    Spec,
    Variants,
    refusal,
)
from app.calc.optimize.sides import figure, times, working
from app.calc.quantity import quantity
from app.calc.time.chunked_prefill import Chunked, chunked

PAUSE = Quantity("pause", "Longest pause of a running stream", "s", better=Better.LOWER)
FIRST = Quantity("first_token", "First token of the prompt", "s", better=Better.LOWER)
CHUNKS = Quantity("chunks", "Steps that the prompt takes", "")
READ = Quantity("read_bytes", "Bytes that the prompt’s steps read on a GPU", "B", better=Better.LOWER)
COLUMNS = (
    Quantity("chunks", "Chunks", "", read=lambda found: float(found.chunks)),
    Quantity("pause_ceiling", "Longest pause, ceiling", "s", read=lambda found: found.pause_ceiling_s),
    Quantity("pause_expected", "Longest pause, expected", "s", read=lambda found: found.pause_s),
    Quantity("first_token_ceiling", "First token, ceiling", "s", read=lambda found: found.first_ceiling_s),
    Quantity("first_token_expected", "First token, expected", "s", read=lambda found: found.first_s),
)
BUDGETS = (256, 512, 1024, 2048, 4096, 8192, 16_384)


def _compare(asked: Asked) -> Optimization:
    """A prompt in one step of its own, and in steps that carry the others’ tokens too."""
    here, measures = asked.deployment, asked.measures
    is_used, budget = here.engine.chunks_prefill, here.engine.step_tokens
    if here.prefill_pool is not None:
        reason = "Prompts are prefilled on GPUs of their own, where nobody decodes: there is no stream to interrupt."
        return refusal(SPEC, reason, is_used=is_used)
    whole, cut = chunked(here, measures, None), chunked(here, measures, budget)
    return Optimization(
        SPEC,
        is_used,
        "Prefill each prompt whole" if is_used else _label(budget),
        {"techniques": {"chunked_prefill": not is_used}},
        (_sentence(asked, whole, cut),),
        (
            figure(CHUNKS, (float(whole.chunks), float(cut.chunks))),
            figure(READ, (whole.read_bytes, cut.read_bytes)),
            *_both(PAUSE, (whole.pause_ceiling_s, cut.pause_ceiling_s), (whole.pause_s, cut.pause_s)),
            *_both(FIRST, (whole.first_ceiling_s, cut.first_ceiling_s), (whole.first_s, cut.first_s)),
        ),
        _explained(asked, cut),
        Variants(COLUMNS, tuple(_rows(asked, budget, is_used=is_used))),
    )


def _label(budget: int) -> str:
    return f"Prefill in steps of {budget:,} tokens"


def _candidate(deployment: Deployment) -> Candidate | None:
    engine = deployment.engine
    if engine.chunks_prefill:
        return None
    changed = replace(deployment, engine=replace(engine, chunks_prefill=True))
    return Candidate({"techniques": {"chunked_prefill": True}}, _label(engine.step_tokens), changed)


def _both(of: Quantity, ceilings: tuple[float, float], expected: tuple[float | None, float | None]) -> list[Figure]:
    found = [figure(of, ceilings, Level.CEILING)]
    return found if None in expected else [*found, figure(of, expected, Level.EXPECTED)]


def _rows(asked: Asked, budget: int, *, is_used: bool) -> list[Row]:
    rows = []
    for tokens in sorted({*BUDGETS, budget}):
        found = chunked(asked.deployment, asked.measures, tokens)
        rows.append(_row(f"{tokens:,} tokens a step", found, is_here=is_used and tokens == budget))
    return [*rows, _row("whole, in a step of its own", chunked(asked.deployment, asked.measures, None), not is_used)]


def _row(label: str, found: Chunked, is_here: bool) -> Row:
    return Row(label, tuple(column.read(found) for column in COLUMNS), is_here)


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


SPEC = Spec(
    "chunked_prefill",
    "Chunked prefill",
    _compare,
    counts=("pause",),
    shown=("pause", "first_token"),
    limits=(
        "One prompt among streams that all decode; several prompts at a time share the budget and take longer.",
        "Chunks are told as even parts of the prompt’s arithmetic: the last ones attend to more, and take longer.",
        "The times of an answer on this page are those of the whole mix and follow the fit to measurements, whose "
        "engines nearly all cut prompts up; a prompt that is not cut is told with weights that are read once.",
    ),
    candidate=_candidate,
)
