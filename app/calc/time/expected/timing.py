"""What goes from a prefill pool to the GPUs that decode, and what of it a request waits for.

The expected times of a deployment: a step, a prefill, and a request among others.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from app.calc.broadcast import Quantity, maximum, scalar
from app.calc.deployment import Deployment
from app.calc.memory.cache import kv_bytes_per_sequence
from app.calc.time.expected.calibration import Calibration, Keys, calibrated
from app.calc.time.expected.floors import Piece, pieces, timed
from app.calc.time.expected.passes import (
    Chunks,
    PassTime,
    PrefillTime,
    Slope,
    Stay,
    Wires,
    decode_time,
    pipeline_share,
    prefill_time,
    stay,
)
from app.calc.time.expected.reached import Efficiency
from app.calc.time.operators import Operator, decode_operators, prefill_operators
from app.calc.time.prefill_pool import PoolRates, pool_rates, transfer_s, wait_for_link_s


def sent_bytes(deployment: Deployment) -> float:
    """Bytes of a prompt's cache, each head's once, with its states: what an instance sends for one request.

    Tokens found in the prefix cache of the pool are sent too: the other side has never seen them.
    """
    prompt = deployment.workload.prompt_tokens
    return scalar(kv_bytes_per_sequence(deployment.architecture, float(prompt), deployment.precision.kv_cache))


def link_wait_s(deployment: Deployment, prefill_s: float) -> float:
    """Seconds between a prefill of `prefill_s` and the first decode step; none without a prefill pool."""
    pool = deployment.prefill_pool
    if pool is None:
        return 0.0
    took = scalar(transfer_s(sent_bytes(deployment), pool.link_bytes_per_s, pool.senders))
    return wait_for_link_s(took, prefill_s, deployment.architecture.n_layers, overlaps=pool.overlaps)


@dataclass(frozen=True, slots=True)
class Step:
    """A decode step: the GPUs' part by cause, and the host's. `pieces` are what the GPUs run in it."""

    on_gpus: PassTime
    host_s: Quantity
    pieces: Sequence[Piece] = field(default=(), repr=False)

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
    """The constants that hold for the deployment: the fitted ones, and on them the factors of a user's own."""
    fitted, own = calibration.efficiency(keys_of(deployment)), deployment.own_calibration
    return fitted if own is None else calibrated(fitted, own)


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
    found = step_pieces(deployment, operators, batch)
    passed = decode_time((timed(piece, efficiency) for piece in found), wires(deployment))
    return Step(passed, efficiency.step_s + efficiency.sequence_s * on_rank(deployment, batch), found)


def step_pieces(deployment: Deployment, operators: Sequence[Operator], batch: Quantity) -> list[Piece]:
    """The operators of a step of a replica's `batch`, all its positions."""
    return pieces(deployment, operators, batch * deployment.positions, batch)


def prompt_time(
    deployment: Deployment,
    efficiency: Efficiency,
    new: Quantity,
    cached: Quantity,
    ranks: Quantity,
    lone: Sequence[Piece] | None = None,
) -> PrefillTime:
    """The prefill of one prompt alone on a replica, and what one more adds while every one of `ranks` has one.

    `efficiency` is the deployment's; `lone` are the pieces of the lone prompt, where they have been counted already.
    """
    efficiency = efficiency.in_prefill
    if lone is None:
        lone = pieces(deployment, prefill_operators(deployment, new, cached), new)
    slope = slope_of(deployment, efficiency, new, cached)
    alone = prefill_time((timed(piece, efficiency) for piece in lone), wires(deployment), slope)
    if deployment.split.data == 1:
        return alone
    busy_operators = prefill_operators(deployment, new, cached, ranks)
    busy = (timed(p, efficiency) for p in pieces(deployment, busy_operators, new * ranks))
    return PrefillTime(alone.alone, prefill_time(busy, wires(deployment), slope).marginal_s)


@dataclass(frozen=True, slots=True)
class Prompts:
    """Prompts where they are prefilled: `time` of one, `alone_s` on an idle instance, `link_wait_s` for its cache, and
    the `pieces` that the GPUs run for one.
    """

    side: Deployment
    efficiency: Efficiency
    time: PrefillTime
    alone_s: float
    link_wait_s: float
    pieces: Sequence[Piece]

    @property
    def first_s(self) -> float:
        """From the start of a prefill to the first decode step, nobody else there."""
        return self.alone_s + self.link_wait_s


def prompts_of(
    deployment: Deployment, calibration: Calibration, batch: float, operators: Sequence[Operator] | None = None
) -> Prompts:
    """The prompts of a deployment, while a replica has `batch` sequences.

    `operators` are those of a lone prompt, where they have been counted already.
    """
    side, cached = deployment.prompt_side, deployment.workload.cached_prompt_tokens
    new = deployment.workload.prompt_tokens - cached
    efficiency, data = efficiency_of(side, calibration).in_prefill, side.split.data
    ranks = float(data if deployment.prefill_pool else min(batch, data))
    lone = pieces(side, operators or prefill_operators(side, new, cached), new)
    found = prompt_time(side, efficiency, new, cached, ranks, lone)
    alone = scalar(alone_s(side, found, new, cached))
    return Prompts(side, efficiency, found, alone, link_wait_s(deployment, alone), lone)


def alone_s(deployment: Deployment, prefill: PrefillTime, new: Quantity, cached: Quantity) -> Quantity:
    """Seconds of a prefill on an idle replica, its chunks following each other through the stages of a pipeline."""
    share = pipeline_share(chunks_of(deployment, new, cached), deployment.split.pipeline)
    return prefill.alone.total_s * share


def request_stay(
    deployment: Deployment,
    efficiency: Efficiency,
    batch: Quantity,
    step_s: Quantity,
    prefill: PrefillTime,
    alone: Quantity,
) -> Stay:
    """The stay of a request among the `batch` of a replica.

    A static batch is prefilled together, before any of it decodes; a prefill pool keeps prompts away from steps, and
    `alone` is then all that comes before them.
    """
    marginal = 0.0 if deployment.prefill_pool else prefill.marginal_s / deployment.split.pipeline
    together = deployment.engine.is_static
    return stay(
        on_rank(deployment, batch),
        deployment.workload.output_tokens,
        step_s / deployment.tokens_per_step,
        alone,
        efficiency.request_s,
        marginal,
        1.0 if together else efficiency.wait_share,
        1.0 if together else efficiency.wait_power,
    )


def packed_prompt_s(prompts: Prompts) -> float:
    """Seconds of a prompt where nothing but prompts is run: as many as a step of the engine holds are prefilled
    together, and share what is not their own arithmetic.
    """
    side = prompts.side
    new = side.workload.prompt_tokens - side.workload.cached_prompt_tokens
    together = max(1, side.engine.step_tokens // new)
    marginal = scalar(prompts.time.marginal_s) / side.split.pipeline
    return marginal + max(0.0, prompts.alone_s - marginal) / together


def expected_pool_rates(deployment: Deployment, prompts: Prompts) -> PoolRates | None:
    """What a prefill pool is expected to give; None where there is none."""
    if deployment.prefill_pool is None:
        return None
    return pool_rates(deployment.prefill_pool, packed_prompt_s(prompts), sent_bytes(deployment))


def on_rank(deployment: Deployment, batch: Quantity) -> Quantity:
    """Sequences of one data-parallel rank, at least one."""
    return maximum(1.0, batch / deployment.split.data)


def chunks_of(deployment: Deployment, new: Quantity, cached: Quantity) -> Chunks:
    """How the engine cuts the prompt."""
    engine, prompt = deployment.engine, 1.0 * (new + cached)
    return Chunks(1.0 * new, prompt, float(engine.step_tokens) if engine.chunks_prefill else maximum(1.0, prompt))


def slope_of(deployment: Deployment, efficiency: Efficiency, new: Quantity, cached: Quantity) -> Slope:
    """How the prompt's kernels climb to their rates."""
    chunks = chunks_of(deployment, new, cached)
    return Slope(chunks, efficiency.attention_half_tokens, efficiency.prefill_half_tokens)


def wires(deployment: Deployment) -> Wires:
    """The memory's bandwidth and the link's."""
    card = deployment.accelerator
    return Wires(card.bandwidth_bytes_per_s, card.link_bytes_per_s_one_way or 0.0)
