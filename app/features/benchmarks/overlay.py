"""What a run asked of the deployment: how many requests at a time, of which lengths, and how we know.

Each run beside what is predicted for its load: ceiling, interval, expected, measured, all in the unit measured.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from pydantic import ValidationError

from app.calc.deployment import Deployment
from app.calc.measure import Measures, measure
from app.calc.memory.engines.parts import MOST_CONCURRENT
from app.calc.outputs import output_at
from app.calc.quantity import Unit, significant
from app.calc.time.serving import Estimate
from app.catalog.catalog import Catalog
from app.features.benchmarks.formats.llama_bench import ON_THE_HOST
from app.features.benchmarks.points import BarePass, BenchPoint
from app.scenario.refusal import ScenarioError
from app.scenario.resolve import resolve
from app.scenario.scenario import Scenario, Workload

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


ROUNDING = 1e-3
"""A measurement beats its ceiling where it is better by more than a tool rounds."""


class Figure(StrEnum):
    """What is compared; seconds, or tokens a second of the whole deployment."""

    TTFT = "ttft_s"
    TPOT = "tpot_s"
    LATENCY = "latency_s"
    OUTPUT = "output_tokens_per_s"
    TOTAL = "total_tokens_per_s"
    PROMPT = "prompt_tokens_per_s"
    GENERATED = "generated_tokens_per_s"
    BOTH = "prompt_and_generated_tokens_per_s"

    @property
    def is_time(self) -> bool:
        return self in (Figure.TTFT, Figure.TPOT, Figure.LATENCY)

    @property
    def unit(self) -> Unit:
        """The unit that it is measured in."""
        return Unit.SECONDS if self.is_time else Unit.TOKENS_PER_S

    @property
    def label(self) -> str:
        """What it is called: as the output that it is compared with, where there is one."""
        return output_at(_OUTPUTS[self]).label if self in _OUTPUTS else _BARE_LABELS[self]


_OUTPUTS = {
    Figure.TTFT: "serving.ttft_s",
    Figure.TPOT: "serving.tpot_s",
    Figure.LATENCY: "serving.total_latency_s",
    Figure.OUTPUT: "serving.output_tokens_per_s",
    Figure.TOTAL: "serving.total_tokens_per_s",
}
_BARE_LABELS = {
    Figure.PROMPT: "Prefill throughput of a bare pass",
    Figure.GENERATED: "Decode throughput of a bare pass",
    Figure.BOTH: "Prefill and decode throughput of a bare pass",
}


@dataclass(frozen=True, slots=True)
class Beside:
    """One figure of a run beside its prediction, in the unit of the figure."""

    figure: Figure
    measured: float
    predicted: Estimate

    @property
    def ratio(self) -> float | None:
        """Measured ÷ expected; None where nothing is expected."""
        return None if self.predicted.mid is None else self.measured / self.predicted.mid

    @property
    def speed(self) -> float | None:
        """How many times as fast as expected: above 1 faster, for a time as for a rate."""
        ratio = self.ratio
        return 1 / ratio if ratio and self.figure.is_time else ratio

    @property
    def is_inside(self) -> bool | None:
        """Whether it lies in the interval, ends included; None where none is claimed."""
        low, high = self.predicted.low, self.predicted.high
        return None if low is None or high is None else low <= self.measured <= high

    @property
    def beats_ceiling(self) -> bool:
        """Whether it is better than can be: then the hardware, the precision or the load is not what was chosen."""
        ceiling = self.predicted.ceiling
        if self.figure.is_time:
            return self.measured < ceiling * (1 - ROUNDING)
        return self.measured > ceiling * (1 + ROUNDING)


@dataclass(frozen=True, slots=True)
class Laid:
    """A run, its number in the file, the load it stands for, the scenario of that load, and each figure."""

    number: int
    point: BenchPoint
    load: Load
    scenario: Scenario
    figures: tuple[Beside, ...]

    def of(self, figure: Figure) -> Beside | None:
        """One figure, where the run has it."""
        return next((beside for beside in self.figures if beside.figure is figure), None)


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A run that is compared with nothing, and why."""

    number: int
    point: BenchPoint
    reason: str


@dataclass(frozen=True, slots=True)
class Overlay:
    """All runs of a file, those that can be compared and those that cannot."""

    laid: tuple[Laid, ...]
    left_out: tuple[LeftOut, ...]

    @property
    def suspicious(self) -> int:
        """How many figures are better than can be."""
        return sum(beside.beats_ceiling for laid in self.laid for beside in laid.figures)


def overlay(base: Scenario, points: Sequence[BenchPoint], catalog: Catalog) -> Overlay:
    """Each of `points` beside the prediction for `base` under the load of the point; a run that comes twice, once.

    Raises:
        ScenarioError: `base` itself names something unknown, or something that is not computed.
    """
    resolve(base, catalog)
    laid: list[Laid] = []
    left_out: list[LeftOut] = []
    seen: dict[BenchPoint, int] = {}
    for number, point in enumerate(points, start=1):
        if seen.setdefault(point, number) != number and point.unusable is None:
            # A file that is brought twice would make a fit look surer than it is.
            left_out.append(LeftOut(number, point, f"it is run {seen[point]} again, to the last digit."))
            continue
        try:
            laid.append(_laid(number, point, base, catalog))
        except NoLoadError as error:
            left_out.append(LeftOut(number, point, f"{error}."))
    return Overlay(tuple(laid), tuple(left_out))


def loaded(base: Scenario, load: Load) -> Scenario:
    """`base` under another load; its targets and what its prompts share stay.

    Raises:
        NoLoadError: no scenario has such a load.
    """
    asked = base.workload.model_dump() | {
        "prompt_tokens": load.prompt_tokens,
        "output_tokens": load.output_tokens,
        "concurrency": load.concurrency,
        "longest_answer": None,
        "answer_shape": "fixed",
        "shared_prefix_tokens": min(base.workload.shared_prefix_tokens, load.prompt_tokens),
    }
    if load.cached_tokens is not None:
        asked |= {"prefix_hit_rate": load.cached_tokens / load.prompt_tokens, "shared_prefix_tokens": 0}
    try:
        return base.model_copy(update={"workload": Workload.model_validate(asked)})
    except ValidationError as error:
        raise NoLoadError("its lengths or its concurrency are beyond what a scenario can have") from error


def measured(deployment: Deployment) -> Measures:
    """The measures of a deployment under the load of a run.

    Raises:
        NoLoadError: requests are too long for the model or the engine, or do not find room.
    """
    total, most = deployment.workload.total_tokens, deployment.max_model_len
    if total > most:
        raise NoLoadError(f"its requests are {total:,} tokens long; the model or the engine takes at most {most:,}")
    found = measure(deployment)
    if found.memory.max_concurrency < 1:
        raise NoLoadError(f"not one request of {total:,} tokens finds room beside the weights")
    return found


def times_of(point: BenchPoint) -> dict[Figure, float]:
    """What a run measured, by figure. Of a time among requests the median is told, of a latency the mean."""
    if point.bare is not None:
        return {_bare_figure(point.bare): point.bare.tokens_per_s}
    told = {
        Figure.TTFT: point.ttft.typical_s,
        Figure.TPOT: point.tpot.typical_s or point.itl.average_s,
        Figure.LATENCY: point.latency.average_s,
        Figure.OUTPUT: point.output_tokens_per_s,
        Figure.TOTAL: point.total_tokens_per_s,
    }
    if point.output_tokens is not None and round(point.output_tokens) <= 1:
        told.pop(Figure.TPOT)  # no token comes after the first
    return {figure: value for figure, value in told.items() if value is not None}


def estimates(measures: Measures, point: BenchPoint) -> Mapping[Figure, Estimate]:
    """What is predicted of each figure that a run can have."""
    if point.bare is not None:
        return {_bare_figure(point.bare): _overlay_bare(measures, point.bare)}
    return {figure: getattr(measures.serving, output_at(path).key) for figure, path in _OUTPUTS.items()}


def _laid(number: int, point: BenchPoint, base: Scenario, catalog: Catalog) -> Laid:
    load = load_of(point)
    scenario = loaded(base, load)
    try:
        deployment = resolve(scenario, catalog).deployment
    except ScenarioError as error:
        raise NoLoadError(f"it is refused: {error.refusals[0].message.rstrip('.')}") from error
    on_gpu = point.bare.gpu_layers if point.bare else None
    if on_gpu is not None and on_gpu < deployment.architecture.n_layers:
        raise NoLoadError(ON_THE_HOST)
    predicted = estimates(measured(deployment), point)
    figures = tuple(Beside(figure, value, predicted[figure]) for figure, value in times_of(point).items())
    if not figures:
        raise NoLoadError("it tells no time and no rate")
    return Laid(number, point, load, scenario, figures)


def _bare_figure(bare: BarePass) -> Figure:
    if bare.prompt_tokens and bare.generated_tokens:
        return Figure.BOTH
    return Figure.PROMPT if bare.prompt_tokens else Figure.GENERATED


def _overlay_bare(measures: Measures, bare: BarePass) -> Estimate:
    """The rate of a bare pass: its tokens over its prompt and its steps."""
    prompt, steps = measures.prefill_s, measures.decode_s
    prompts, generated = (1 if bare.prompt_tokens else 0), bare.generated_tokens

    def rate(prompt_s: float | None, step_s: float | None) -> float | None:
        if prompt_s is None or step_s is None:
            return None
        return (bare.prompt_tokens + generated) / (prompts * prompt_s + generated * step_s)

    ceiling = rate(prompt.ceiling, steps.ceiling)
    assert ceiling is not None  # noqa: S101  # a ceiling is always told
    low, mid, high = rate(prompt.high, steps.high), rate(prompt.mid, steps.mid), rate(prompt.low, steps.low)
    return Estimate(ceiling, low, mid, high)
