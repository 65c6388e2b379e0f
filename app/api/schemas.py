"""The wire forms of the Evaluation, for the documentation: what `app.document` writes, with units and scope."""

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from app.api.list_parameters import scenario_parameters
from app.scenario import Scenario

Bound = Literal["memory_bandwidth", "compute", "interconnect"]
State = Literal["fits", "tight", "does_not_fit"]


class Interval(BaseModel):
    """An expected value with its interval; null where none is claimed."""

    low: float | None
    mid: float | None
    high: float | None


class Estimate(Interval):
    """A figure at its ceiling, which nothing beats, beside what is expected."""

    ceiling: float


class Verdict(BaseModel):
    """The answer in a word and a sentence."""

    state: State = Field(description="`tight`: less than a tenth of the engine's share is left.")
    limiter: Literal["memory_bandwidth", "compute", "interconnect", "overhead", "capacity"]
    sentence: str


class RuleOfThumb(BaseModel):
    """The back-of-envelope: two FLOPs a parameter a token, every weight read once a step, the memory on the box."""

    ridge_flops_per_byte: float
    prefill_flops: float = Field(description="FLOP of one prompt.")
    prefill_s: float
    decode_step_s: float = Field(description="Weights alone, s.")
    decode_tokens_per_s: float = Field(description="All users together, weights alone.")
    decode_intensity_flops_per_byte: float
    compute_idle_fraction: float = Field(description="Share of the decode step in which the arithmetic waits.")
    kv_bytes_per_token: float
    kv_step_s: float = Field(description="Weights and every user's full-length cache, s.")
    kv_tokens_per_s: float
    kv_capacity_tokens: int
    kv_capacity_users: int = Field(description="At full length: prompt + output tokens.")
    total_latency_s: float


class PerGpuMemory(BaseModel):
    """Bytes of one GPU; the parts sum to the capacity. Overhead: driver, non-framework memory, graphs."""

    capacity_bytes: float
    weights_bytes: float
    kv_pool_bytes: float
    activation_bytes: float
    overhead_bytes: float
    free_bytes: float = Field(description="Outside the engine's share; negative where the weights exceed the card.")


class Sides(BaseModel):
    """A figure that is assumed: in eight cases of ten between low and high."""

    low: float
    mid: float
    high: float


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


class Memory(BaseModel):
    """What fits, by the rules of the scenario's engine; of the tightest GPU."""

    per_gpu: PerGpuMemory
    kv_bytes_per_sequence: float = Field(description="At prompt + output tokens.")
    kv_bytes_per_token: float = Field(description="That, divided by the tokens.")
    state_bytes_per_sequence: float = Field(description="Of it, what recurrent layers keep whatever the length.")
    gpu_bytes_per_sequence: float = Field(description="What one GPU holds of a sequence, copies included.")
    shared_bytes: float = Field(description="On one GPU, what all sequences have in common, once.")
    kv_pool_tokens: int = Field(description="As the engine's log counts them, of one data-parallel rank.")
    max_concurrency: int = Field(description="Sequences that fit at full length, on all replicas.")
    max_context_tokens: int = Field(description="Longest sequence at the scenario's concurrency, by memory alone.")
    budget_bytes: float = Field(description="The engine's share of the card.")
    needed_bytes: float = Field(description="What is held back, weights, and all running sequences at full length.")
    seen_bytes: float = Field(description="The card's memory as the engine sees it.")
    held_back_bytes: float = Field(description="What neither weights nor cache may use of the engine's share.")
    kv_pool_interval_bytes: Sides
    kv_pool_tokens_interval: Sides
    max_concurrency_interval: Sides
    overheads: list[Overhead]
    log_lines: list[LogLine]
    stages: list[Stage]


class Phase(BaseModel):
    """Prefill of one prompt, on one GPU."""

    flops: float
    bytes: float
    intensity_flops_per_byte: float
    bound: Bound
    ceiling_s: float = Field(description="Sum of the operators at the vendor's peak.")
    overlapped_s: float = Field(description="The most lenient floor: all FLOPs against all bytes.")
    expected_s: Interval


class Decode(Phase):
    """One decode step of all running sequences, on one GPU, half-way through the answers."""

    concurrency: int
    context_tokens: float


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


class Serving(BaseModel):
    """What users see. Whole deployment, unless the name says a user."""

    ttft_s: Estimate
    tpot_s: Estimate = Field(description="Time between tokens once they flow.")
    tpot_inclusive_s: Estimate = Field(description="The whole answer divided by its tokens: the other definition.")
    total_latency_s: Estimate
    output_tokens_per_s: Estimate
    output_tokens_per_s_per_user: Estimate
    total_tokens_per_s: Estimate


class Causes(BaseModel):
    """What the expected time per output token consists of; the parts sum to `serving.tpot_s.mid`."""

    ceiling: float
    efficiency: float = Field(description="Kernels that reach a share of the peaks.")
    calls: float = Field(description="Floors of kernel calls that no peak shortens.")
    collectives: float = Field(description="Latency of collectives, and volume beyond the link's peak.")
    host: float = Field(description="Scheduling, sampling and tokens on the host.")
    interference: float = Field(description="Prefills of other requests, met between tokens.")


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


class Goodput(BaseModel):
    """Requests a second that meet both targets, in closed form; null where no target is set."""

    rate_per_s: float
    offered_per_s: float = Field(description="The rate of requests at which most are good.")
    attained: float = Field(description="Share of those that is good.")
    concurrency: float = Field(description="Requests in the system there.")
    limiter: Literal["ttft", "tpot", "room"]
    most_per_s: float = Field(description="What passes with the room full, targets or not.")


class SpeculativeFigures(BaseModel):
    """Guesses and what they come to."""

    method: str
    tokens_per_step: float
    acceptance_rate: float
    positions: int = Field(description="Positions of a sequence that a step works on.")


class DisaggregationFigures(BaseModel):
    """The prefill pool, the decode side and the way between them."""

    prefill_gpus: int
    decode_gpus: int
    sent_bytes: float = Field(description="Cache of a prompt that goes over the link.")
    link_bytes_per_s: float
    link_wait_s: float | None
    prefill_per_s: float | None = Field(description="Requests a second that the pool takes on.")
    link_per_s: float | None = Field(description="Requests a second that its links carry away.")


class TechniqueFigures(BaseModel):
    """What the techniques in use come to; null where one is not used."""

    speculative: SpeculativeFigures | None
    disaggregation: DisaggregationFigures | None


class Cost(BaseModel):
    """At the expected throughput (the ceiling where nothing is calibrated); null where no price or power is known."""

    usd_per_million_output_tokens: float | None
    usd_per_hour: float | None
    joules_per_output_token: float | None


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
