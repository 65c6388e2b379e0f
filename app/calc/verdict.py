"""The answer in one sentence: does it fit, and what is in the way."""

from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType

from app.calc.accelerator import Bound
from app.calc.deployment import Deployment
from app.calc.measure import Measures
from app.calc.memory.capacity import Memory
from app.calc.quantity import quantity, significant
from app.calc.time.expected.operators import spent
from app.calc.time.phase import PhaseCost
from app.calc.time.serving import Estimate

TIGHT_HEADROOM = 0.10
ROOF_WORDS = MappingProxyType(
    {Bound.MEMORY_BANDWIDTH: "memory bandwidth", Bound.COMPUTE: "arithmetic", Bound.INTERCONNECT: "the link"}
)


class State(StrEnum):
    """Fits, fits with less than a tenth of the engine's share to spare, or does not fit."""

    FITS = "fits"
    TIGHT = "tight"
    DOES_NOT_FIT = "does_not_fit"


STATE_WORDS = MappingProxyType({State.FITS: "Fits", State.TIGHT: "Fits, but tight", State.DOES_NOT_FIT: "Does not fit"})


class Limiter(StrEnum):
    """What stops the deployment from serving more."""

    MEMORY_BANDWIDTH = "memory_bandwidth"
    COMPUTE = "compute"
    INTERCONNECT = "interconnect"
    OVERHEAD = "overhead"
    CAPACITY = "capacity"


LIMITER_WORDS = MappingProxyType(
    {
        Limiter.MEMORY_BANDWIDTH: "Most of the time goes to memory bandwidth",
        Limiter.COMPUTE: "Most of the time goes to arithmetic",
        Limiter.INTERCONNECT: "Most of the time goes to the link between GPUs",
        Limiter.OVERHEAD: "Most of the time goes to kernel launches and the host",
    }
)


@dataclass(frozen=True, slots=True)
class Verdict:
    """`reason` is for people, made of the same numbers; it begins small, because it follows the state and a colon."""

    state: State
    limiter: Limiter
    reason: str

    @property
    def heading(self) -> str:
        return STATE_WORDS[self.state]

    @property
    def sentence(self) -> str:
        return f"{self.heading}: {self.reason}"

    @property
    def standalone_reason(self) -> str:
        """The reason as a sentence of its own, below a heading."""
        return self.reason[:1].upper() + self.reason[1:]


def needed_in(deployment: Deployment, held: Memory) -> float:
    """What the engine needs of its share for the sequences asked for; for one, where as many as fit were asked for."""
    if deployment.workload.concurrency is not None:
        return held.needed_bytes
    return held.tightest.needed_bytes(deployment, 1)


def required_bytes(deployment: Deployment, measures: Measures) -> float:
    """The same of measured numbers."""
    return needed_in(deployment, measures.memory)


def state_of(deployment: Deployment, measures: Measures) -> State:
    """Whether the required bytes fit the engine's share of the card, a tenth of it to spare, and what is assumed too.

    What fits by the most likely pool, but not by the smallest of its interval, is tight as well; so is what fits, but
    under an engine that would not start, because its longest sequence finds no room.
    """
    held, prefill = measures.memory, measures.prefill_memory
    spare = held.budget_bytes - required_bytes(deployment, measures)
    if spare < 0 or (prefill is not None and not prefill.max_concurrency):
        return State.DOES_NOT_FIT
    least = held.max_concurrency_interval[0]
    is_sure = least >= (1 if deployment.workload.concurrency is None else held.running_sequences)
    is_sure = is_sure and not held.refuses_to_start
    return State.FITS if is_sure and spare >= TIGHT_HEADROOM * held.budget_bytes else State.TIGHT


def limiter_of(deployment: Deployment, state: State, measures: Measures) -> Limiter:
    """Capacity where it does not fit; else what takes most of the time that an answer is expected to take.

    Where nothing is expected, the roof over the phase in which an answer spends most of its time at the ceiling.
    """
    if state is State.DOES_NOT_FIT:
        return Limiter.CAPACITY
    if measures.expected is not None:
        times = spent(deployment, measures.expected)
        parts = (
            (times.memory_s, Limiter.MEMORY_BANDWIDTH),
            (times.compute_s, Limiter.COMPUTE),
            (times.link_s, Limiter.INTERCONNECT),
            (times.overhead_s, Limiter.OVERHEAD),
        )
        return max(parts, key=lambda part: part[0])[1]
    served = measures.serving
    if served.batch_compute_s > served.total_latency_s.ceiling:
        return Limiter.COMPUTE
    decode_s = served.total_latency_s.ceiling - served.ttft_s.ceiling
    phase = measures.decode if decode_s >= served.ttft_s.ceiling else measures.prefill
    return Limiter(phase.bound)


def verdict(deployment: Deployment, measures: Measures, *, binary: bool = False) -> Verdict:
    """State, limiter and sentence; bytes in the sentence are GiB where `binary`, else GB."""
    state = state_of(deployment, measures)
    fit = (
        _does_not_fit(deployment, measures, binary)
        if state is State.DOES_NOT_FIT
        else _fits(deployment, measures, binary)
    )
    limiter = limiter_of(deployment, state, measures)
    return Verdict(state, limiter, f"{fit} {_pace(state, limiter, measures)}")


def _of_each(deployment: Deployment) -> str:
    n, pooled = deployment.decode_gpus, deployment.prefill_pool is not None
    if n == 1:
        return " on the GPU that decodes" if pooled else ""
    which = " that decode" if pooled else ""
    return (
        f" on each of {n:,} GPUs{which}" if deployment.split.pipeline == 1 else f" on the fullest of {n:,} GPUs{which}"
    )


def _fits(deployment: Deployment, measures: Measures, binary: bool) -> str:
    held = measures.memory
    used, card = (quantity(b, "B", 3, binary=binary) for b in (held.needed_bytes, held.per_gpu.capacity_bytes))
    where = _of_each(deployment)
    fits = f"{used} of {card} in use{where}, room for {_count(held.max_concurrency, 'full-length sequence')}."
    if not held.refuses_to_start:
        return fits
    return f"{fits} {held.tightest.policy_name} starts only when limited to sequences of {held.longest_alone:,} tokens."


def _does_not_fit(deployment: Deployment, measures: Measures, binary: bool) -> str:
    held = measures.memory

    def written(value: float) -> str:
        return quantity(value, "B", 3, binary=binary)

    pool, prefill = deployment.prefill_pool, measures.prefill_memory
    if pool is not None and prefill is not None and not prefill.max_concurrency:
        return (
            f"an instance of the prefill pool on {pool.split.gpus:,} × {pool.accelerator.name} has no "
            f"room for one prompt beside {written(prefill.per_gpu.weights_bytes)} of weights a GPU."
        )

    weights, budget = held.per_gpu.weights_bytes, held.budget_bytes
    if weights <= budget < weights + held.tightest.held_back_bytes:
        return (
            f"the weights take {written(weights)}{_of_each(deployment)} and what "
            f"{held.tightest.policy_name} needs beside them {written(held.tightest.held_back_bytes)}, together "
            f"{written(weights + held.tightest.held_back_bytes - budget)} more than the {written(budget)} it may use."
        )
    if weights > budget:
        return (
            f"the weights alone take {written(weights)}{_of_each(deployment)}, "
            f"{written(weights - budget)} more than the {written(budget)} the engine may use."
        )
    needed = required_bytes(deployment, measures)
    if held.tightest.reserved_bytes > held.per_gpu.kv_pool_bytes:
        return (
            f"the cache of all slots, {written(held.tightest.reserved_bytes)}{_of_each(deployment)}, is "
            f"allocated at the start; with the weights that is {written(needed - budget)} more than the "
            f"{written(budget)} the engine may use."
        )
    wanted = _count(deployment.workload.concurrency or 1, "sequence")
    tokens = f"{deployment.workload.total_tokens:,} tokens"
    return (
        f"the weights and {wanted} of {tokens} need {written(needed)}{_of_each(deployment)}, "
        f"{written(needed - budget)} more than the {written(budget)} the engine may use; "
        f"room for {held.max_concurrency:,}."
    )


def _pace(state: State, limiter: Limiter, measures: Measures) -> str:
    rate, held = measures.serving.output_tokens_per_s_per_user, measures.memory
    at_best = f"at best {significant(rate.ceiling, 3)} tokens/s"
    each = _each(held.running_sequences)
    if state is State.DOES_NOT_FIT:
        pace = f"If it did, decode would be bound by {_roof(measures.decode)}: {at_best} to {each}."
        if rate.mid is None or not held.max_concurrency:
            return pace
        room = f"{significant(rate.mid, 3)} tokens/s expected to {_each(held.served_sequences)}{_between(rate)}"
        return f"{pace} At a time as many run as find room, {room}; the others wait."
    if rate.mid is None:
        return f"Decode is bound by {_roof(measures.decode)}: {at_best} to {each}."
    expected = f"{significant(rate.mid, 3)} tokens/s expected to {each}{_between(rate)}"
    return f"{LIMITER_WORDS[limiter]}: {expected}, {at_best}."


def _each(sequences: int) -> str:
    return f"each of {_count(sequences, 'user')}" if sequences > 1 else "one user"


def _between(rate: Estimate) -> str:
    if rate.low is None or rate.high is None:
        return ""
    return f" ({significant(rate.low, 3)} to {significant(rate.high, 3)} in eight cases of ten)"


def _roof(phase: PhaseCost) -> str:
    return ROOF_WORDS[phase.bound]


def _count(n: int, noun: str) -> str:
    return f"{n:,} {noun}" if n == 1 else f"{n:,} {noun}s"
