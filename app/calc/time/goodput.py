"""Goodput: the requests a second that meet both targets, in closed form, and the knee that it falls off.

With B requests in the system each stays for T(B) (`expected.passes`), so by Little's law λ = B ÷ T(B) pass a
second. Of those the share P meets the target of the first token: what is waited for beyond an idle prefill is taken to
be exponential with its mean W, P = 1 − e^(−(target − idle) ÷ W). A time per token is an average over an answer, so it
is met by all or by none. Goodput is the most that λ·P comes to while each token is in time and all find room.

Source: definition of goodput: Zhong et al., DistServe, OSDI 2024; Little's law.
Limits: left out are bursts beyond what a steady number in the system has, answers and prompts of different lengths,
preemption when the cache runs full, and any order other than first come, first served.
"""

from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from app.calc.broadcast import scalar
from app.calc.deployment import Deployment
from app.calc.derivation import Explanation, Term
from app.calc.measure import Measures
from app.calc.memory.engines.parts import MOST_CONCURRENT
from app.calc.outputs import derivation
from app.calc.time.expected.timing import efficiency_of, expected_pool_rates, prompts_of, request_stay, step_time

Values = NDArray[np.float64]
POINTS = 28
REFINED = 12
ROUNDS = 2


class GoodputLimit(StrEnum):
    """What stops a higher rate from being good."""

    TTFT = "ttft"
    TPOT = "tpot"
    ROOM = "room"


LIMIT_WORDS = {
    GoodputLimit.TTFT: "first tokens come too late",
    GoodputLimit.TPOT: "each token takes too long",
    GoodputLimit.ROOM: "no further request finds room",
}


@dataclass(frozen=True, slots=True, eq=False)
class Load:
    """The deployment under more and more requests: arrays over `concurrency`, of all its replicas together.

    Requests a second that pass, expected times, the share that gets its first token in time, and the good ones of them.
    """

    concurrency: Values
    rate_per_s: Values
    ttft_s: Values
    tpot_s: Values
    attained: Values
    good_per_s: Values


@dataclass(frozen=True, slots=True)
class Goodput:
    """`rate_per_s` requests are good at the `offered_per_s` that is best for it, with `concurrency` in the system.

    `attained` is the share of those offered that is good, `most_per_s` what passes with the room full, targets or not.
    """

    rate_per_s: float
    offered_per_s: float
    attained: float
    concurrency: float
    stay_s: float
    limiter: GoodputLimit
    most_per_s: float
    ttft_target_s: float | None
    tpot_target_s: float | None
    load: Load


def goodput(deployment: Deployment, measures: Measures) -> Goodput | None:
    """The goodput of a deployment at its workload's targets.

    None where it has no target, where nothing is expected of it (no calibration), where not one request finds room, and
    of static batches, whose arrivals wait for a batch to end.

    Worked number: see tests/calc/time/test_goodput.py, where two requests in the system are reckoned by hand.
    """
    workload = deployment.workload
    is_told = deployment.calibration is not None and not deployment.engine.is_static
    if not is_told or (workload.slo_ttft_s is None and workload.slo_tpot_s is None):
        return None
    room = measures.memory.max_concurrency
    if room < 1:
        return None
    most = float(min(room, MOST_CONCURRENT))
    coarse = load(deployment, np.unique(np.geomspace(1.0, most, POINTS)))
    fine = coarse
    for _ in range(ROUNDS):
        fine = load(deployment, _about_the_best(fine))
    at = int(np.argmax(fine.good_per_s))
    rate, offered = float(fine.good_per_s[at]), float(fine.rate_per_s[at])
    return Goodput(
        rate_per_s=rate,
        offered_per_s=offered,
        attained=float(fine.attained[at]) if rate else 0.0,
        concurrency=float(fine.concurrency[at]),
        stay_s=float(fine.concurrency[at]) / offered,
        limiter=_limiter(deployment, fine, at, most),
        most_per_s=float(coarse.rate_per_s[-1]),
        ttft_target_s=workload.slo_ttft_s,
        tpot_target_s=workload.slo_tpot_s,
        load=coarse,
    )


def _about_the_best(found: Load) -> Values:
    """A finer grid between the neighbours of the best load, which stays in it: no round loses what the last one had."""
    best, last = int(np.argmax(found.good_per_s)), len(found.concurrency) - 1
    low, high = found.concurrency[max(0, best - 1)], found.concurrency[min(last, best + 1)]
    return np.unique(np.append(np.linspace(low, high, REFINED), found.concurrency[best]))


def load(deployment: Deployment, concurrency: Values) -> Load:
    """What passes, and how much of it is good, with so many requests in the system.

    Args:
        deployment: with a calibration; its workload's concurrency is not read.
        concurrency: of all replicas, shape (n,).
    """
    calibration, workload = deployment.calibration, deployment.workload
    if calibration is None:
        raise ValueError("Nothing is calibrated.")
    batch = np.maximum(1.0, concurrency / deployment.replicas)
    # With a prompt on every rank: where there are fewer, nobody waits for another's.
    prompts = prompts_of(deployment, calibration, float(deployment.split.data))
    efficiency = efficiency_of(deployment, calibration)
    step = step_time(deployment, efficiency, batch, workload.mid_answer_tokens)
    stays = request_stay(deployment, efficiency, batch, step.total_s, prompts.time, prompts.first_s)
    rates = expected_pool_rates(deployment, prompts)
    if rates is not None:
        stays = stays.behind(concurrency, rates.per_s)
    idle = prompts.first_s + scalar(efficiency.request_s)
    # Fewer requests than replicas or ranks leave some idle; those that are there stay as long.
    wait = np.broadcast_to(np.asarray(stays.wait_s, dtype=float), concurrency.shape)
    ttft = idle + wait
    tpot = np.broadcast_to(np.asarray(stays.tpot_s, dtype=float), concurrency.shape)
    rate = concurrency / np.asarray(stays.residency_s, dtype=float)
    attained = _in_time(idle, wait, workload.slo_ttft_s)
    if workload.slo_tpot_s is not None:
        attained = attained * (tpot <= workload.slo_tpot_s)
    return Load(concurrency, rate, ttft, tpot, attained, rate * attained)


def _in_time(idle: float, wait: Values, target_s: float | None) -> Values:
    """Share of first tokens within the target: none before an idle prefill, all where nobody waits."""
    if target_s is None:
        return np.ones_like(wait)
    spare = target_s - idle
    if spare < 0:
        return np.zeros_like(wait)
    with np.errstate(divide="ignore", invalid="ignore"):
        share = -np.expm1(-spare / wait)
    return np.where(wait > 0, share, 1.0)


def _limiter(deployment: Deployment, fine: Load, at: int, most: float) -> GoodputLimit:
    workload = deployment.workload
    if not fine.good_per_s[at]:
        too_slow = workload.slo_tpot_s is not None and fine.tpot_s[0] > workload.slo_tpot_s
        return GoodputLimit.TPOT if too_slow else GoodputLimit.TTFT
    if at + 1 < len(fine.concurrency):
        beyond = workload.slo_tpot_s is not None and fine.tpot_s[at + 1] > workload.slo_tpot_s
        return GoodputLimit.TPOT if beyond else GoodputLimit.TTFT
    return GoodputLimit.ROOM if fine.concurrency[at] >= most * (1 - 1e-9) else GoodputLimit.TTFT


def explain_goodput(found: Goodput) -> list[Explanation]:
    """The working of the goodput."""
    terms = (
        Term("B", "requests in the system", found.concurrency, ""),
        Term("T", "how long each of them stays", found.stay_s, "s"),
        Term("P", "share that meets the targets there", found.attained, ""),
    )
    source = "Little’s law; exponential waits: docs/optimizations.md"
    return [derivation("goodput.rate_per_s", "B ÷ T × P", terms, found.rate_per_s, source)]
