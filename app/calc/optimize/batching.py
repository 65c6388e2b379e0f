"""Continuous against static batches: a place that falls free is filled at once, or waits for the longest answer.

Source: Yu et al., "Orca: a distributed serving system for transformer-based generative models", OSDI 2022.
"""

from dataclasses import replace

from app.calc.deployment import Deployment
from app.calc.derivation import Explanation
from app.calc.measure import replica_batch
from app.calc.optimize.optimization import Asked, Better, Candidate, Level, Optimization, Quantity, Row, Spec, Variants
from app.calc.optimize.sides import ALIKE, Side, figure, served_figures, side_of, times, working
from app.calc.quantity import significant
from app.calc.time.lengths import Shape
from app.calc.time.serving import occupied_tokens

IDLE = Quantity(
    "idle_share", "Share of the steps in which a place runs on after its answer is complete", "%", better=Better.LOWER
)
TURNOVER = Quantity("turnover", "Time for which a place is taken", "s", better=Better.LOWER)
COLUMNS = (
    Quantity("longest", "Longest of a batch", "tokens"),
    Quantity("idle_share", "Places idle", "%"),
    Quantity("static", "Static", "tokens/s"),
    Quantity("continuous", "Continuous", "tokens/s"),
    Quantity("gain", "Gain", "times"),
)
FILL = "Fill places as they fall free"
SHAPE_WORDS = {Shape.FIXED: "all alike", Shape.UNIFORM: "uniform", Shape.EXPONENTIAL: "exponential"}
_PERCENT = 100


def _compare(asked: Asked) -> Optimization:
    here = asked.deployment
    is_used = not here.engine.is_static
    off, on = side_of(asked, _static(here, True)), side_of(asked, _static(here, False))
    taken = off.measures.serving.residency_s, on.measures.serving.residency_s
    idle = idle_share(off)
    return Optimization(
        SPEC,
        is_used,
        "Run static batches" if is_used else FILL,
        {"techniques": {"static_batching": is_used}},
        (_sentence(off, on, idle),),
        (
            figure(IDLE, (_PERCENT * idle, 0.0)),
            figure(TURNOVER, taken, Level.EXPECTED if asked.measures.expected else Level.CEILING),
            *served_figures(off, on),
        ),
        _explained(off, idle),
        Variants(COLUMNS, tuple(_row(asked, shape) for shape in Shape)),
    )


def _candidate(deployment: Deployment) -> Candidate | None:
    if not deployment.engine.is_static:
        return None
    return Candidate({"techniques": {"static_batching": False}}, FILL, _static(deployment, False))


def idle_share(static: Side) -> float:
    """Share of a static batch's places that run on for nothing: 1 − mean ÷ E[longest of the batch].

    Worked numbers: 32 exponential lengths of mean 128 have a longest of 519.5, so 75.4 % is idle; uniform ones 48.4 %.
    """
    return 1 - static.deployment.workload.output_tokens / longest_of_batch(static)


def longest_of_batch(static: Side) -> float:
    """The longest answer of a rank's batch, tokens, in expectation."""
    deployment = static.deployment
    batch = replica_batch(deployment, static.measures.memory.served_sequences)
    return occupied_tokens(_static(deployment, True), batch)


def _static(deployment: Deployment, static: bool) -> Deployment:
    return replace(deployment, engine=replace(deployment.engine, is_static=static))


def _row(asked: Asked, shape: Shape) -> Row:
    here = asked.deployment
    workload = replace(here.workload, answer_shape=shape)
    if shape is not Shape.EXPONENTIAL:
        workload = replace(workload, longest_answer=None)
    spread = replace(here, workload=workload)
    static, continuous = (side_of(asked, _static(spread, how)) for how in (True, False))
    rates = static.tokens_per_s, continuous.tokens_per_s
    values = (longest_of_batch(static), _PERCENT * idle_share(static), *rates, rates[1] / rates[0])
    return Row(SHAPE_WORDS[shape], values, shape is here.workload.answer_shape)


def _sentence(off: Side, on: Side, idle: float) -> str:
    workload = off.deployment.workload
    shape, longest = SHAPE_WORDS[workload.answer_shape], longest_of_batch(off)
    gain = on.tokens_per_s / off.tokens_per_s
    if idle <= 0:
        rate = "the same throughput" if abs(gain - 1) < ALIKE else f"{times(gain)} the throughput"
        return (
            f"Answers are {shape}, so no place of a static batch waits for a longer one: continuous batching gives "
            f"{rate}, and takes a request in as soon as it comes."
        )
    return (
        f"Answers are {shape}, {workload.output_tokens:,} tokens on average, and the longest of a batch has "
        f"{significant(longest, 3)}: {significant(_PERCENT * idle, 3)} % of its places run on for nothing. Filled as "
        f"they fall free they give {times(gain)} the tokens a second."
    )


def _explained(off: Side, idle: float) -> tuple[Explanation, ...]:
    workload, longest = off.deployment.workload, longest_of_batch(off)
    label = f"longest of its batch, in expectation: lengths {SHAPE_WORDS[workload.answer_shape]}"
    source = "Order statistics; Yu et al., OSDI 2022"
    return (
        working(
            "batching.idle_share",
            "Share of places that run on for nothing",
            "1 − n ÷ n_longest",
            (
                ("n", "tokens of an answer, on average", workload.output_tokens, "tokens"),
                ("n_longest", label, longest, "tokens"),
            ),
            (idle, "", source),
        ),
    )


SPEC = Spec(
    "batching",
    "Continuous batching",
    _compare,
    counts=("throughput",),
    shown=("idle_share", "ttft", "throughput"),
    limits=(
        "A static batch is told at full strength: one that has to wait until enough requests have come starts later "
        "still, and a request that comes while it runs waits for its end.",
        "Padding prompts to one length, which static batches also did, is not counted.",
        "Continuous batching mixes prefills into the steps of others; what that costs a running stream is in its TPOT.",
    ),
    candidate=_candidate,
)
