"""Continuous against static batches: a place that falls free is filled at once, or waits for the longest answer.

Source: Yu et al., "Orca: a distributed serving system for transformer-based generative models", OSDI 2022.
"""

from dataclasses import replace

from app.calc.deployment import Deployment
from app.calc.doors.door import Asked, Better, Door, DoorId, Level, Row, Variants
from app.calc.doors.sides import ALIKE, Side, figure, served_figures, side_of, times, working
from app.calc.explanation import Explanation
from app.calc.measure import replica_batch
from app.calc.notation import significant
from app.calc.serving import occupied_tokens
from app.calc.techniques.lengths import Shape

TITLE = "Continuous batching"
IDLE = "Share of the steps in which a place runs on after its answer is complete"
TURNOVER = "Time for which a place is taken"
COLUMNS = (
    ("Longest of a batch", "tokens"),
    ("Places idle", "%"),
    ("Static", "tokens/s"),
    ("Continuous", "tokens/s"),
    ("Gain", "times"),
)
SHAPE_WORDS = {Shape.FIXED: "all alike", Shape.UNIFORM: "uniform", Shape.EXPONENTIAL: "exponential"}
LIMITS = (
    "A static batch is told at full strength: one that has to wait until enough requests have come starts later still, "
    "and a request that comes while it runs waits for its end.",
    "Padding prompts to one length, which static batches also did, is not counted.",
    "Continuous batching mixes prefills into the steps of others; what that costs a running stream is in its TPOT.",
)
_PERCENT = 100


def batching_door(asked: Asked) -> Door:
    """The scenario in static batches, and with places filled as they fall free."""
    here = asked.deployment
    is_open = not here.engine.is_static
    closed, opened = side_of(asked, _static(here, True)), side_of(asked, _static(here, False))
    taken = closed.measures.serving.residency_s, opened.measures.serving.residency_s
    idle = idle_share(closed)
    figures = (
        figure(IDLE, (_PERCENT * idle, 0.0), "%", Level.EXACT, Better.LOWER),
        figure(TURNOVER, taken, "s", Level.EXPECTED if asked.measures.expected else Level.CEILING, Better.LOWER),
        *served_figures(closed, opened),
    )
    return Door(
        DoorId.BATCHING,
        TITLE,
        is_open,
        "Run static batches" if is_open else "Fill places as they fall free",
        {"techniques": {"static_batching": is_open}},
        _sentence(closed, opened, idle),
        figures,
        _explained(closed, idle),
        Variants(COLUMNS, tuple(_row(asked, shape) for shape in Shape)),
        LIMITS,
    )


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


def _sentence(closed: Side, opened: Side, idle: float) -> str:
    workload = closed.deployment.workload
    shape, longest = SHAPE_WORDS[workload.answer_shape], longest_of_batch(closed)
    gain = opened.tokens_per_s / closed.tokens_per_s
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


def _explained(closed: Side, idle: float) -> tuple[Explanation, ...]:
    workload, longest = closed.deployment.workload, longest_of_batch(closed)
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
