"""Expected time of one pass: the ceiling's operators, each with what its kernels reach, and what lies between them.

An operator that is bound by bytes takes bytes ÷ (reached bandwidth), one that is bound by arithmetic FLOP ÷ (reached
rate); between the two a smooth maximum, which is never below either. Every call adds a floor that no peak shortens:
launch, wave, small kernels around it. docs/expected.md has the evidence.

What requests do to each other: prefills share the machine with decoding, and time is conserved.

In a closed loop of B requests every one stays for as long as all B of them need to be prefilled once and to decode:
T = n·t_step + t_alone + t_request + (B − 1)·t_marginal. It is linear in B, so no iteration is needed. The others'
prefills are met either before the first token (TTFT) or between tokens (TPOT): what the one has the other has not.
Little's law then gives B·n ÷ T tokens a second.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import cast

import numpy as np

from app.calc.broadcast import Quantity, maximum, minimum
from app.calc.time.expected.reached import Kind, Reach

SMOOTHNESS = 3
LINKED = (Kind.ALL_REDUCE, Kind.EXCHANGE)


@dataclass(frozen=True, slots=True)
class Timed:
    """One operator with the peak of its type and what it reaches; `calls` is how often it runs in the pass."""

    kind: Kind
    flops: Quantity
    bytes: Quantity
    link_bytes: Quantity
    calls: Quantity
    peak_flops_per_s: Quantity
    reach: Reach


@dataclass(frozen=True, slots=True)
class Wires:
    """Bandwidth of the memory, and of the link in one direction (0 where none is known), in bytes a second."""

    bandwidth_bytes_per_s: Quantity
    link_bytes_per_s: Quantity


@dataclass(frozen=True, slots=True)
class PassTime:
    """Seconds of a pass by cause: operators at what they reach, their calls, and what goes between GPUs."""

    operators_s: Quantity
    calls_s: Quantity
    collectives_s: Quantity

    @property
    def total_s(self) -> Quantity:
        return self.operators_s + self.calls_s + self.collectives_s


@dataclass(frozen=True, slots=True)
class Chunks:
    """How a prompt is cut: `new_tokens` after `prompt_tokens` − new found in a cache, `chunk_tokens` a step."""

    new_tokens: Quantity
    prompt_tokens: Quantity
    chunk_tokens: Quantity

    @property
    def count(self) -> Quantity:
        """Steps of the prefill; each reads the weights anew."""
        return _ceil(self.new_tokens / self.chunk_tokens)

    @property
    def longest(self) -> Quantity:
        """Tokens of a full step."""
        return minimum(self.new_tokens, self.chunk_tokens)


@dataclass(frozen=True, slots=True)
class Slope:
    """How prompts climb to the rates that kernels reach: a chunk of m tokens runs its matrices at m ÷ (m + m½) of
    theirs, a prompt of m its attention likewise.
    """

    chunks: Chunks
    attention_half_tokens: Quantity
    prefill_half_tokens: Quantity

    @property
    def matrices(self) -> Quantity:
        """How much longer the matrices take than in an endless chunk."""
        return 1 + self.prefill_half_tokens / self.chunks.longest

    @property
    def attention(self) -> Quantity:
        """How much longer the scores and values take than in an endless prompt."""
        return 1 + self.attention_half_tokens / self.chunks.prompt_tokens


@dataclass(frozen=True, slots=True)
class PrefillTime:
    """A prompt on an idle machine, and what one more prompt adds to a busy one: its arithmetic, weights read anyway."""

    alone: PassTime
    marginal_s: Quantity


def smooth_max(a: Quantity, b: Quantity) -> Quantity:
    """(a³ + b³)^(1/3), never below the larger: at equal sides 26 % above it. Worked number: 3 and 4 make 4.498."""
    high, low = maximum(a, b), minimum(a, b)
    if isinstance(high, (int, float)):
        return high * (1 + (low / high) ** SMOOTHNESS) ** (1 / SMOOTHNESS) if high else high
    ratio = np.divide(low, high, out=np.zeros_like(high), where=high > 0)
    return cast("Quantity", high * np.cbrt(1 + ratio * ratio * ratio))


def step_sides(op: Timed, wires: Wires) -> tuple[Quantity, Quantity]:
    """Seconds that an operator's bytes and its FLOP take at what it reaches, in a decode step."""
    moved = op.bytes / (op.reach.bandwidth * wires.bandwidth_bytes_per_s)
    return moved, op.flops / (op.reach.rate * op.peak_flops_per_s)


def decode_time(operators: Iterable[Timed], wires: Wires) -> PassTime:
    """One step of a batch."""
    total: Quantity = 0.0
    calls: Quantity = 0.0
    linked: Quantity = 0.0
    for op in operators:
        if op.kind in LINKED:
            linked = linked + _link_s(op, wires) + op.calls * op.reach.call_s
        else:
            total = total + smooth_max(*step_sides(op, wires))
            calls = calls + op.calls * op.reach.call_s
    return PassTime(total, calls, linked)


def prompt_sides(op: Timed, wires: Wires, slope: Slope) -> tuple[Quantity, Quantity, Quantity]:
    """The same in a prefill, and at the end the seconds of arithmetic that one more prompt adds to a busy machine."""
    moved, computed = step_sides(op, wires)
    if op.kind in (Kind.MATRIX, Kind.EXPERTS):
        return moved * slope.chunks.count, computed * slope.matrices, computed
    if op.kind is Kind.ATTENTION:
        return moved, computed * slope.attention, computed * slope.attention
    return moved, computed, computed


def prefill_time(operators: Iterable[Timed], wires: Wires, slope: Slope) -> PrefillTime:
    """A prompt alone, and the margin of one more. Weights, experts' too, are read once a chunk."""
    steps = slope.chunks.count
    total: Quantity = 0.0
    calls: Quantity = 0.0
    linked: Quantity = 0.0
    marginal: Quantity = 0.0
    for op in operators:
        if op.kind in LINKED:
            volume = _link_s(op, wires)
            linked = linked + volume + op.calls * steps * op.reach.call_s
            marginal = marginal + volume
            continue
        moved, computed, added = prompt_sides(op, wires, slope)
        total = total + smooth_max(moved, computed)
        calls = calls + op.calls * steps * op.reach.call_s
        marginal = marginal + added
    return PrefillTime(PassTime(total, calls, linked), marginal)


def pipeline_share(chunks: Chunks, stages: Quantity) -> Quantity:
    """Part of the stages' summed time that a prefill takes, its chunks following each other through them.

    ((c + s − 1) ÷ (c·s))^0.6: the ideal pipeline's share to a power below 1, for real ones overlap less.
    """
    if isinstance(stages, (int, float)) and stages == 1:
        return 1.0
    return ((chunks.count + stages - 1) / (chunks.count * stages)) ** 0.6


def _link_s(op: Timed, wires: Wires) -> Quantity:
    link = wires.link_bytes_per_s
    if isinstance(link, (int, float)):
        return op.link_bytes / (op.reach.bandwidth * link) if link else 0.0 * op.link_bytes
    reached = op.reach.bandwidth * link
    return np.divide(op.link_bytes, reached, out=np.zeros_like(reached), where=reached > 0)


def _ceil(a: Quantity) -> Quantity:
    return float(-(-a // 1)) if isinstance(a, (int, float)) else np.ceil(a)


@dataclass(frozen=True, slots=True)
class Stay:
    """Seconds of a request among others: TTFT + n × TPOT = `residency_s`, exactly.

    `interference_s` is the part of a TPOT that others' prefills take; `wait_s` the part of the TTFT.
    """

    ttft_s: Quantity
    tpot_s: Quantity
    interference_s: Quantity
    wait_s: Quantity
    residency_s: Quantity

    def behind(self, requests: Quantity, rate_per_s: float) -> "Stay":
        """The same where all of so many `requests` come through a pool that gives no more than a rate: by Little's law
        none stays for less than requests ÷ rate, and what is missing passes before the first token.
        """
        missing = maximum(0.0, requests / rate_per_s - self.residency_s)
        return replace(
            self,
            ttft_s=self.ttft_s + missing,
            wait_s=self.wait_s + missing,
            residency_s=self.residency_s + missing,
        )


def waiting_share(others: Quantity, share: Quantity, power: Quantity) -> Quantity:
    """Part of the others' prefills that is met before the first token: min(1, share × others^(power − 1)).

    A power of 1 is a wave that is prefilled together; below it arrivals spread out as the crowd grows.
    """
    return minimum(1.0, share * maximum(1.0, others) ** (minimum(1.0, power) - 1.0))


def stay(
    batch: Quantity,
    output_tokens: Quantity,
    step_s: Quantity,
    alone_s: Quantity,
    request_s: Quantity,
    marginal_s: Quantity,
    share: Quantity,
    power: Quantity,
) -> Stay:
    """The stay of one of `batch` requests on a rank.

    Args:
        batch: requests at a time, of one data-parallel rank.
        output_tokens: of an answer.
        step_s: one decode step of them all.
        alone_s: a prefill on an idle machine.
        request_s: the host's part of a request.
        marginal_s: what one more prefill adds; a stage's part of it where there is a pipeline.
        share: of the others' prefills before the first token, for one other.
        power: how that part grows with the crowd.

    Worked number: 9 requests of 100 tokens, a step of 10 ms, prefills of 80 ms and 50 ms more each, a quarter met
    first: TTFT 0.18 s, TPOT 13 ms, residency 1.48 s.
    """
    others = maximum(0.0, batch - 1.0)
    first = waiting_share(others, share, power)
    met = others * marginal_s
    wait, between = first * met, (1.0 - first) * met / output_tokens
    ttft, tpot = alone_s + request_s + wait, step_s + between
    return Stay(ttft, tpot, between, wait, ttft + output_tokens * tpot)
