"""What a run asked of the deployment: how many requests at a time, of which lengths, and how we know."""

from dataclasses import dataclass

from app.bench.points import BarePass, BenchPoint
from app.calc.deployment_limits import MOST_CONCURRENT
from app.calc.notation import significant

MOST_TOKENS = 10**8


class NoLoadError(ValueError):
    """Why a run cannot be said as a scenario; a sentence without its full stop."""


@dataclass(frozen=True, slots=True)
class Load:
    """Requests at a time, tokens of a prompt, how many of them stand in the cache already, and of an answer.

    `how` says in words where the concurrency comes from. `cached_tokens` is None where the scenario's own share of
    prompts that are found in the cache holds.
    """

    concurrency: int
    prompt_tokens: int
    output_tokens: int
    cached_tokens: int | None
    how: str


def load_of(point: BenchPoint) -> Load:
    """The load of a run, lengths rounded to whole tokens.

    Raises:
        NoLoadError: the run is unusable, or does not tell enough.
    """
    if point.unusable is not None:
        raise NoLoadError(point.unusable)
    if point.bare is not None:
        return _bare(point.bare)
    prompt, output = point.prompt_tokens, point.output_tokens
    if prompt is None or output is None:
        raise NoLoadError("how long prompts and answers were is not told")
    concurrency, how = concurrency_of(point)
    return Load(
        concurrency=min(MOST_CONCURRENT, max(1, round(concurrency))),
        prompt_tokens=_tokens(prompt),
        output_tokens=_tokens(output),
        cached_tokens=None,
        how=how,
    )


def concurrency_of(point: BenchPoint) -> tuple[float, str]:
    """Requests that ran at a time, and how that is known: kept running, counted, or by Little's law L = λ·W.

    Raises:
        NoLoadError: nothing of the kind is told.
    """
    kept = point.concurrency
    if kept is not None and point.request_rate_per_s is None:
        fewer = point.requests is not None and point.requests < kept
        return (point.requests or kept, "no more were sent") if fewer else (kept, "kept running")
    if point.mean_concurrency is not None:
        return point.mean_concurrency, "on average, as the tool counted"
    rate, stay = point.requests_per_s, _stay_s(point)
    if rate is not None and stay is not None:
        how = f"by Little’s law: {significant(rate, 3)} requests/s × {significant(stay, 3)} s each"
        return rate * stay, how
    raise NoLoadError("how many requests ran at a time is not told, nor what it could be worked out from")


def _stay_s(point: BenchPoint) -> float | None:
    """Seconds that a request stays, on average: its latency, or its first token and the others after it."""
    if point.latency.average_s is not None:
        return point.latency.average_s
    first, each = point.ttft.average_s, point.tpot.average_s
    if first is None or each is None or point.output_tokens is None:
        return None
    return first + max(0.0, point.output_tokens - 1) * each


def _bare(bare: BarePass) -> Load:
    """A prompt is computed behind its depth; tokens are generated behind depth and prompt."""
    prompt = bare.depth_tokens + bare.prompt_tokens
    cached = bare.depth_tokens if bare.prompt_tokens else None
    return Load(1, _tokens(max(1, prompt)), _tokens(max(1, bare.generated_tokens)), cached or 0, "one sequence, bare")


def _tokens(count: float) -> int:
    if count > MOST_TOKENS:
        raise NoLoadError("prompts or answers are longer than 10^8 tokens")
    return max(1, round(count))
