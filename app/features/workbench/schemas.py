"""The wire forms of the Evaluation, for the documentation: what `scenario.document` writes, with units and scope."""

from collections.abc import Callable
from typing import Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, create_model

from app.calc.output import Form, Output
from app.calc.outputs import outputs_below
from app.scenario.scenario import Scenario
from app.web.listing_query import scenario_parameters

Bound = Literal["memory_bandwidth", "compute", "interconnect"]
Model = TypeVar("Model", bound=BaseModel)
State = Literal["fits", "tight", "does_not_fit"]


class Interval(BaseModel):
    """An expected value with its interval; null where none is claimed."""

    low: float | None
    mid: float | None
    high: float | None


class Estimate(Interval):
    """A figure at its ceiling, which nothing beats, beside what is expected."""

    ceiling: float


class Sides(BaseModel):
    """A figure that is assumed: in eight cases of ten between low and high."""

    low: float
    mid: float
    high: float


_FORMS: dict[Form, Any] = {
    Form.NUMBER: float,
    Form.OPTIONAL: float | None,
    Form.COUNT: int,
    Form.ESTIMATE: Estimate,
    Form.EXPECTED: Interval,
    Form.INTERVAL: Sides,
}


def _with_numbers(path: str) -> Callable[[type[Model]], type[Model]]:
    """Adds the outputs right below `path` to a model, each with its label, unit and meaning."""

    def complete(model: type[Model]) -> type[Model]:
        fields: dict[str, Any] = {
            output.key: (_FORMS[output.form], Field(description=_described(output)))
            for way, output in outputs_below(path)
            if len(way) == 1
        }
        made = create_model(model.__name__, __base__=model, __module__=model.__module__, **fields)
        made.__doc__ = model.__doc__
        return made

    return complete


def _described(output: Output) -> str:
    return f"{output.label}{f', {output.unit}' if output.unit else ''}. {output.help}".rstrip()


class Verdict(BaseModel):
    """The answer in a word and a sentence."""

    state: State = Field(description="`tight`: less than a tenth of the engine's share is left.")
    limiter: Literal["memory_bandwidth", "compute", "interconnect", "overhead", "capacity"]
    sentence: str


@_with_numbers("rule_of_thumb")
class RuleOfThumb(BaseModel):
    """The back-of-envelope: two FLOPs a parameter a token, every weight read once a step, the memory on the box."""


@_with_numbers("memory.per_gpu")
class PerGpuMemory(BaseModel):
    """Bytes of one GPU; the parts sum to the capacity. Overhead: driver, non-framework memory, graphs."""


class Overhead(BaseModel):
    """What takes memory beside weights and cache."""

    part: Literal["driver", "activation", "non_framework", "graphs"]
    bytes: Sides
    given: bool = Field(description="Given with the scenario, or assumed.")
    charged: bool = Field(description="Whether it comes out of the engine's share.")
    evidence: str


class LogLine(BaseModel):
    """What the engine prints of its cache when it starts."""

    id: str
    label: str
    value: float
    unit: str
    text: str


class Stage(BaseModel):
    """One GPU of a pipeline stage; those of a stage are alike."""

    stage: int
    layers: int
    tightest: bool
    weights_bytes: float
    kv_pool_bytes: float = Field(description="Negative: so much is missing.")
    overhead_bytes: float
    block_bytes: float


@_with_numbers("memory")
class Memory(BaseModel):
    """What fits, by the rules of the scenario's engine; of the tightest GPU."""

    per_gpu: PerGpuMemory
    overheads: list[Overhead]
    log_lines: list[LogLine]
    stages: list[Stage]


@_with_numbers("prefill")
class Phase(BaseModel):
    """Prefill of one prompt, on one GPU."""

    bound: Bound


@_with_numbers("decode")
class Decode(BaseModel):
    """One decode step of all running sequences, on one GPU, half-way through the answers."""

    bound: Bound


class Roof(BaseModel):
    """One roof of the accelerator, dense vendor peak."""

    dtype: str
    peak_flops_per_s: float
    bandwidth_bytes_per_s: float
    ridge_flops_per_byte: float
    selected: bool


class Point(BaseModel):
    """One operator, or `all` of a phase, under the roof."""

    phase: Literal["prefill", "decode"]
    operator: str
    flops: float
    bytes: float
    intensity_flops_per_byte: float
    bound: Bound
    time_s: float


class Roofline(BaseModel):
    """Roofs, and what stands under them."""

    roofs: list[Roof]
    points: list[Point]


@_with_numbers("serving")
class Serving(BaseModel):
    """What users see. Whole deployment, unless the name says a user."""


@_with_numbers("expected.tpot_causes_s")
class Causes(BaseModel):
    """What the expected time per output token consists of; the parts sum to `serving.tpot_s.mid`."""


class Expected(BaseModel):
    """What stands behind the expected values."""

    calibration: str = Field(description="Version of the calibration.")
    own_calibration: str | None = Field(
        description="Name of the scenario's own calibration, which stands on it; its factors are in the scenario."
    )
    seen: bool = Field(description="Whether the accelerator's family and the engine were in the fit.")
    interval_withheld: str | None = Field(description="Why no interval is claimed, where none is.")
    ttft_refused: str | None = Field(description="Why no time to the first token is told, where none is.")
    tpot_causes_s: Causes


@_with_numbers("goodput")
class Goodput(BaseModel):
    """Requests a second that meet both targets, in closed form; null where no target is set."""

    limiter: Literal["ttft", "tpot", "room"]


@_with_numbers("techniques.speculative")
class SpeculativeFigures(BaseModel):
    """Guesses and what they come to."""

    method: str


@_with_numbers("techniques.disaggregation")
class DisaggregationFigures(BaseModel):
    """The prefill pool, the decode side and the way between them."""


class TechniqueFigures(BaseModel):
    """What the techniques in use come to; null where one is not used."""

    speculative: SpeculativeFigures | None
    disaggregation: DisaggregationFigures | None


@_with_numbers("cost")
class Cost(BaseModel):
    """At the expected throughput (the ceiling where nothing is calibrated); null where no price or power is known."""


class Lever(BaseModel):
    """One change that would help, with its computed effect."""

    change: dict[str, Any] = Field(description="Merge patch (RFC 7396) on the scenario.")
    label: str
    effect: dict[str, dict[str, Any]] = Field(description="`before` and `after` by number.")


class Term(BaseModel):
    """One symbol of a formula."""

    symbol: str
    label: str
    value: float
    unit: str


class Explanation(BaseModel):
    """The working of the number at the path `id`."""

    id: str
    label: str
    formula: str
    substituted: str
    terms: list[Term]
    value: float
    unit: str
    source: str


class Notice(BaseModel):
    """What to know beside the numbers."""

    code: str
    message: str


class ComparedLine(BaseModel):
    """A figure that was given or observed, beside what the scenario alone predicts."""

    id: str
    label: str
    logged: float
    predicted: Sides
    unit: str
    difference: float | None = Field(description="Predicted ÷ logged − 1.")
    inside: bool
    reason: str


class Evaluation(BaseModel):
    """Every number of one scenario. SI units: seconds, bytes, FLOP. GB is 10^9 bytes."""

    scenario: Scenario = Field(description="Normalised: every field written out.")
    catalog_version: str
    formula_version: str
    verdict: Verdict
    rule_of_thumb: RuleOfThumb
    memory: Memory
    prefill: Phase
    decode: Decode
    roofline: Roofline
    serving: Serving
    expected: Expected | None
    goodput: Goodput | None
    techniques: TechniqueFigures
    cost: Cost | None
    levers: list[Lever]
    explanations: list[Explanation]
    warnings: list[Notice]
    comparison: list[ComparedLine] = Field(description="Empty where nothing was measured or observed.")


class BatchRequest(BaseModel):
    """Scenarios to evaluate."""

    model_config = ConfigDict(extra="forbid")
    scenarios: list[dict[str, Any]] = Field(description="Each a Scenario.", min_length=1, max_length=1_000)


class BatchResult(BaseModel):
    """An evaluation, or the problem with its scenario."""

    evaluation: Evaluation | None = None
    problem: dict[str, Any] | None = None


class Batch(BaseModel):
    """Results in the order of the scenarios."""

    results: list[BatchResult]


QUERY_PARAMETERS: dict[str, Any] = {"parameters": scenario_parameters()}
