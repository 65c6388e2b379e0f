"""The expected times of a deployment: a step, a prefill, and a request among others."""

from collections.abc import Sequence
from dataclasses import dataclass

from app.calc.broadcast import Quantity, maximum
from app.calc.deployment import Deployment
from app.calc.expected.calibration import Calibration, Keys
from app.calc.expected.passes import (
    Chunks,
    PassTime,
    PrefillTime,
    Slope,
    Wires,
    decode_time,
    pipeline_share,
    prefill_time,
)
from app.calc.expected.pieces import pieces, timed
from app.calc.expected.queue import Stay, stay
from app.calc.expected.reach import Efficiency
from app.calc.operators import Operator, decode_operators, prefill_operators


@dataclass(frozen=True, slots=True)
class Step:
    """A decode step: the GPUs' part by cause, and the host's."""

    on_gpus: PassTime
    host_s: Quantity

    @property
    def total_s(self) -> Quantity:
        """Both parts; one waits for the other."""
        return self.on_gpus.total_s + self.host_s


def keys_of(deployment: Deployment) -> Keys:
    """What the calibration knows the deployment by."""
    card, engine = deployment.accelerator, deployment.engine
    return Keys(
        stack=engine.stack,
        family=card.family,
        memory=card.memory_kind,
        link="bus" if card.is_bus_linked or card.link_bytes_per_s_one_way is None else "fabric",
        engine=engine.pace,
        model="experts" if deployment.architecture.has_experts else "dense",
    )


def efficiency_of(deployment: Deployment, calibration: Calibration) -> Efficiency:
    """The fitted constants that hold for the deployment."""
    return calibration.efficiency(keys_of(deployment))


def step_time(
    deployment: Deployment,
    efficiency: Efficiency,
    batch: Quantity,
    context_tokens: Quantity,
    operators: Sequence[Operator] | None = None,
) -> Step:
    """One decode step of a replica's `batch` sequences with `context_tokens` in the cache of each. Broadcasts.

    `operators` are those of the step, where they have been counted already.
    """
    operators = operators or decode_operators(deployment, batch, context_tokens)
    found = pieces(deployment, operators, batch)
    passed = decode_time((timed(piece, efficiency) for piece in found), wires(deployment))
    return Step(passed, efficiency.step_s + efficiency.sequence_s * on_rank(deployment, batch))


def prompt_time(
    deployment: Deployment,
    efficiency: Efficiency,
    new: Quantity,
    cached: Quantity,
    ranks: Quantity,
    operators: Sequence[Operator] | None = None,
) -> PrefillTime:
    """The prefill of one prompt alone on a replica, and what one more adds while every one of `ranks` has one.

    `operators` are those of the lone prompt, where they have been counted already.
    """
    operators = operators or prefill_operators(deployment, new, cached)
    slope = slope_of(deployment, efficiency, new, cached)
    own = (timed(p, efficiency) for p in pieces(deployment, operators, new))
    alone = prefill_time(own, wires(deployment), slope)
    if deployment.split.data == 1:
        return alone
    busy_operators = prefill_operators(deployment, new, cached, ranks)
    busy = (timed(p, efficiency) for p in pieces(deployment, busy_operators, new * ranks))
    return PrefillTime(alone.alone, prefill_time(busy, wires(deployment), slope).marginal_s)


def alone_s(deployment: Deployment, prefill: PrefillTime, new: Quantity, cached: Quantity) -> Quantity:
    """Seconds of a prefill on an idle replica, its chunks following each other through the stages of a pipeline."""
    share = pipeline_share(chunks_of(deployment, new, cached), deployment.split.pipeline)
    return prefill.alone.total_s * share


def request_stay(
    deployment: Deployment, efficiency: Efficiency, batch: Quantity, step: Step, prefill: PrefillTime, alone: Quantity
) -> Stay:
    """The stay of a request among the `batch` of a replica."""
    return stay(
        on_rank(deployment, batch),
        deployment.workload.output_tokens,
        step.total_s,
        alone,
        efficiency.request_s,
        prefill.marginal_s / deployment.split.pipeline,
        efficiency.wait_share,
        efficiency.wait_power,
    )


def on_rank(deployment: Deployment, batch: Quantity) -> Quantity:
    """Sequences of one data-parallel rank, at least one."""
    return maximum(1.0, batch / deployment.split.data)


def chunks_of(deployment: Deployment, new: Quantity, cached: Quantity) -> Chunks:
    """How the engine cuts the prompt."""
    return Chunks(1.0 * new, 1.0 * (new + cached), float(deployment.engine.step_tokens))


def slope_of(deployment: Deployment, efficiency: Efficiency, new: Quantity, cached: Quantity) -> Slope:
    """How the prompt's kernels climb to their rates."""
    chunks = chunks_of(deployment, new, cached)
    return Slope(chunks, efficiency.attention_half_tokens, efficiency.prefill_half_tokens)


def wires(deployment: Deployment) -> Wires:
    """The memory's bandwidth and the link's."""
    card = deployment.accelerator
    return Wires(card.bandwidth_bytes_per_s, card.link_bytes_per_s_one_way or 0.0)
