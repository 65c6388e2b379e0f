"""What a token costs in money and energy, at the throughput that is expected (at its ceiling where nothing is).

All numbers of one deployment, without their derivations: what an evaluation, a lever and a comparison share.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from app.calc.accelerator import Accelerator
from app.calc.broadcast import Quantity
from app.calc.deployment import Deployment
from app.calc.memory.capacity import Memory, memory
from app.calc.memory.engines.parts import NOTHING_GIVEN
from app.calc.time.expected.answer import Ceilings, Crowd, Expected, expect
from app.calc.time.expected.timing import link_wait_s, sent_bytes
from app.calc.time.operators import Operator, decode_operators, prefill_operators
from app.calc.time.phase import PhaseCost, phase_cost
from app.calc.time.prefill_pool import pool_rates
from app.calc.time.serving import Estimate, PromptSide, Serving, serving

SECONDS_PER_HOUR = 3600
TOKENS_PER_MILLION = 1_000_000


@dataclass(frozen=True, slots=True)
class Cost:
    """None where the catalog knows no price or no power. Energy takes the card at its rated power (TDP)."""

    usd_per_million_output_tokens: float | None
    usd_per_hour: float | None
    joules_per_output_token: float | None


def usd_per_million_tokens(usd_per_hour: Quantity, tokens_per_s: Quantity) -> Quantity:
    """Price of a million tokens: $/h ÷ (tokens/s × 3,600) × 10^6. Worked number: $3.60/h at 1,000 tokens/s is $1.00."""
    return usd_per_hour / (tokens_per_s * SECONDS_PER_HOUR) * TOKENS_PER_MILLION


def joules_per_token(power_w: Quantity, tokens_per_s: Quantity) -> Quantity:
    """Energy of one token: W ÷ tokens/s. Worked number: 700 W at 1,000 tokens/s is 0.7 J."""
    return power_w / tokens_per_s


def cost(cards: Sequence[tuple[Accelerator, int]], tokens_per_s: float) -> Cost | None:
    """Cost of `tokens_per_s` output tokens a second on so many of each card; None where neither price nor power is
    known, and neither of the two where it is unknown of any card.
    """
    price = _sum([(accelerator.price_usd_per_hour, gpus) for accelerator, gpus in cards])
    power = _sum([(accelerator.tdp_w, gpus) for accelerator, gpus in cards])
    if price is None and power is None:
        return None
    return Cost(
        usd_per_million_output_tokens=None if price is None else float(usd_per_million_tokens(price, tokens_per_s)),
        usd_per_hour=price,
        joules_per_output_token=None if power is None else float(joules_per_token(power, tokens_per_s)),
    )


def _sum(parts: Sequence[tuple[float | None, int]]) -> float | None:
    total = 0.0
    for each, gpus in parts:
        if each is None:
            return None
        total += each * gpus
    return total


@dataclass(frozen=True, slots=True)
class Measures:
    """Memory, the two phases, what users see, and what it costs.

    `prefill` and `decode` are ceilings, operator by operator; `prefill_s`, `decode_s` and `serving` have what is
    expected beside them, as far as the deployment is calibrated. `prompt_compute_s` is the arithmetic
    of a prompt while every data-parallel rank has one; `prefill_memory` that of a prefill pool.
    """

    memory: Memory
    prefill: PhaseCost
    decode: PhaseCost
    prefill_s: Estimate
    decode_s: Estimate
    serving: Serving
    cost: Cost | None
    expected: Expected | None
    prompt_compute_s: float
    prefill_memory: Memory | None = None


def measure(deployment: Deployment) -> Measures:
    """The numbers of `deployment`. Ceilings of one that does not fit are told as if it did; what is expected has as
    many sequences run at a time as find room.

    Raises:
        UnknownPeakError: the accelerator publishes no rate for a type that the precision needs.
    """
    workload, accelerator = deployment.workload, deployment.accelerator
    held = memory(deployment)
    running = held.running_sequences
    batch = replica_batch(deployment, running)
    prompt_operators, prompts = _prompt_side(deployment, batch)
    step_operators = decode_operators(deployment, batch, workload.mid_answer_tokens)
    prefill, decode = prompts.prefill, phase_cost(step_operators, accelerator)
    ceilings = serving(deployment, running, batch, prompts, decode)
    expected = None
    if deployment.calibration is not None:
        found = Ceilings(prefill, decode, decode, ceilings, prompt_operators, step_operators)
        expected = _expected(deployment, held, found)
    served = expected.serving if expected else ceilings
    return Measures(
        memory=held,
        prefill=prefill,
        decode=decode,
        prefill_s=expected.prefill if expected else Estimate(prefill.ceiling_s),
        decode_s=expected.decode if expected else Estimate(decode.ceiling_s),
        serving=served,
        cost=cost(cards_of(deployment), served.output_tokens_per_s.best_known),
        expected=expected,
        prompt_compute_s=prompts.compute_s,
        prefill_memory=prefill_memory(deployment),
    )


def _prompt_side(deployment: Deployment, batch: int) -> tuple[list[Operator], PromptSide]:
    """The operators of one prompt where it is prefilled, and what that costs at least."""
    side, pool, workload = deployment.prompt_side, deployment.prefill_pool, deployment.workload
    cached = workload.cached_prompt_tokens
    new = workload.prompt_tokens - cached
    operators = prefill_operators(side, new, cached)
    alone = phase_cost(operators, side.accelerator)
    busy, data = alone, side.split.data
    if data > 1:  # every rank prefills, and the experts work for all of them
        ranks = data if pool else min(batch, data)
        busy = phase_cost(prefill_operators(side, new, cached, ranks), side.accelerator)
    if pool is None:
        return operators, PromptSide(alone, busy.compute_s)
    sent = sent_bytes(deployment)
    wait = link_wait_s(deployment, alone.ceiling_s / side.split.pipeline)
    rates = pool_rates(pool, busy.compute_s / side.split.pipeline, sent)
    return operators, PromptSide(alone, busy.compute_s, wait, rates.per_s)


def cards_of(deployment: Deployment) -> list[tuple[Accelerator, int]]:
    """Each kind of card and how many there are of it."""
    cards = [(deployment.accelerator, deployment.decode_gpus)]
    pool = deployment.prefill_pool
    return [*cards, (pool.accelerator, pool.gpus)] if pool else cards


def prefill_memory(deployment: Deployment) -> Memory | None:
    """What an instance of a prefill pool holds: one prompt at a time for each rank; None where there is no pool."""
    if deployment.prefill_pool is None:
        return None
    workload = replace(deployment.workload, output_tokens=1, concurrency=None)
    # What was measured was measured on the cards that decode.
    engine = replace(deployment.engine, given=NOTHING_GIVEN)
    return memory(replace(deployment.prompt_side, workload=workload, engine=engine))


def _expected(deployment: Deployment, held: Memory, ceilings: Ceilings) -> Expected | None:
    """What is expected of those who find room, who may be fewer than were asked for."""
    served = replica_batch(deployment, held.served_sequences)
    if held.served_sequences != held.running_sequences:
        operators = decode_operators(deployment, served, deployment.workload.mid_answer_tokens)
        cost_of_crowd = phase_cost(operators, deployment.accelerator)
        ceilings = replace(ceilings, step_of_crowd=cost_of_crowd, step_operators=operators)
    return expect(deployment, Crowd(held.served_sequences, served, held.max_concurrency), ceilings)


def replica_batch(deployment: Deployment, running: int) -> int:
    """Sequences of the least busy replica, at least one: no replica's step takes less, so times stay floors."""
    return max(1, running // deployment.replicas)
