"""Everything that is expected of a deployment, each figure with its interval."""

from collections.abc import Sequence
from dataclasses import dataclass

from app.calc.broadcast import scalar
from app.calc.deployment import Deployment
from app.calc.time.expected.calibration import Interval, Keys
from app.calc.time.expected.floors import Piece
from app.calc.time.expected.passes import PrefillTime, Stay
from app.calc.time.expected.reached import Efficiency
from app.calc.time.expected.timing import (
    Step,
    efficiency_of,
    expected_pool_rates,
    keys_of,
    on_rank,
    prompts_of,
    request_stay,
    step_time,
)
from app.calc.time.operators import Operator
from app.calc.time.phase import PhaseCost
from app.calc.time.prefill_pool import PoolRates
from app.calc.time.serving import Estimate, Serving, occupied_tokens


@dataclass(frozen=True, slots=True)
class Causes:
    """What a TPOT consists of, in seconds: the ceiling, and what each cause adds to it. The parts sum to the TPOT."""

    ceiling_s: float
    efficiency_s: float
    calls_s: float
    collectives_s: float
    host_s: float
    interference_s: float

    @property
    def total_s(self) -> float:
        return (
            self.ceiling_s + self.efficiency_s + self.calls_s + self.collectives_s + self.host_s + self.interference_s
        )


@dataclass(frozen=True, slots=True)
class Expected:
    """Expected times of a deployment. `is_seen` says that its accelerator's family and its engine were in the fit;
    `refused` why no time to the first token is told; `unclaimed` why no interval is. `prompt_efficiency` is that of
    where prompts are prefilled, `prompt_pieces` what runs there, `link_wait_s` the wait for a cache from there,
    `turnover_s` how long a place is taken.
    """

    keys: Keys
    efficiency: Efficiency
    prompt_efficiency: Efficiency
    calibration_version: str
    batch: int
    step: Step
    prompt: PrefillTime
    prompt_pieces: Sequence[Piece]
    alone_s: float
    link_wait_s: float
    pool: PoolRates | None
    stay: Stay
    turnover_s: float
    causes: Causes
    is_seen: bool
    refused: str | None
    unclaimed: str | None
    decode: Estimate
    prefill: Estimate
    serving: Serving


@dataclass(frozen=True, slots=True)
class Crowd:
    """Sequences that run at a time: of the whole deployment, and of its least busy replica; `capacity` find room, and
    beyond it requests wait for each other.
    """

    running: int
    batch: int
    capacity: int


@dataclass(frozen=True, slots=True)
class Ceilings:
    """What no expected value stays below: of one prompt, of a step of all who were asked for, of what users see.

    `step_of_crowd` is that of those who find room; the operators are those of the prompt and of that step.
    """

    prompt: PhaseCost
    step: PhaseCost
    step_of_crowd: PhaseCost
    serving: Serving
    prompt_operators: Sequence[Operator]
    step_operators: Sequence[Operator]


def expect(deployment: Deployment, crowd: Crowd, ceilings: Ceilings) -> Expected | None:
    """What is expected beside the `ceilings`; None without a calibration.

    Args:
        deployment: what is asked.
        crowd: who runs at a time.
        ceilings: what has been counted already.
    """
    running, batch = crowd.running, crowd.batch
    calibration = deployment.calibration
    if calibration is None:
        return None
    workload, keys = deployment.workload, keys_of(deployment)
    efficiency, n = efficiency_of(deployment, calibration), workload.output_tokens
    served, step_ceiling = ceilings.serving, ceilings.step.ceiling_s
    step = step_time(deployment, efficiency, float(batch), workload.mid_answer_tokens, ceilings.step_operators)
    prompts = prompts_of(deployment, calibration, float(batch), ceilings.prompt_operators)
    stays = request_stay(deployment, efficiency, float(batch), step.total_s, prompts.time, prompts.first_s)
    rates = expected_pool_rates(deployment, prompts)
    if rates is not None:
        stays = stays.behind(running, rates.per_s)
    asked = workload.concurrency or running
    refused = _refusal(asked, crowd.capacity)
    unclaimed = _unclaimed(deployment, keys, batch)
    regimes, own = _Regimes(deployment, keys, asked, claims=unclaimed is None), deployment.own_calibration
    tpot, ttft = scalar(stays.tpot_s), scalar(stays.ttft_s)
    tpot_floor = max(tpot, served.tpot_s.ceiling)
    residency = scalar(stays.residency_s)
    after_it = (occupied_tokens(deployment, batch) - n) * tpot_floor  # until the longest of a static batch ends
    turnover = residency + after_it
    rate = running * n / turnover
    # Who waits for a place is in the system too: by Little's law C ÷ rate of requests, for C asked for.
    latency = residency * max(1.0, asked / running) + after_it * max(0.0, asked / running - 1)
    spread = regimes.interval("throughput")
    answered = Serving(
        ttft_s=Estimate(served.ttft_s.ceiling) if refused else regimes.time("ttft", served.ttft_s.ceiling, ttft),
        tpot_s=regimes.time("tpot", served.tpot_s.ceiling, tpot),
        tpot_inclusive_s=_time(served.tpot_inclusive_s.ceiling, latency / n, _inverse(spread)),
        total_latency_s=_time(served.total_latency_s.ceiling, latency, _inverse(spread)),
        output_tokens_per_s=_rate(served.output_tokens_per_s.ceiling, rate, spread),
        output_tokens_per_s_per_user=_rate(
            served.output_tokens_per_s_per_user.ceiling, 1 / tpot, _inverse(regimes.interval("tpot"))
        ),
        total_tokens_per_s=_rate(served.total_tokens_per_s.ceiling, rate * workload.total_tokens / n, spread),
        residency_s=turnover,
        batch_compute_s=served.batch_compute_s,
        stay_s=Estimate(served.stay_s.ceiling, mid=residency),
    )
    return Expected(
        keys=keys,
        efficiency=efficiency,
        prompt_efficiency=prompts.efficiency,
        calibration_version=calibration.version,
        batch=batch,
        step=step,
        prompt=prompts.time,
        prompt_pieces=prompts.pieces,
        alone_s=prompts.alone_s,
        link_wait_s=prompts.link_wait_s,
        pool=rates,
        stay=stays,
        turnover_s=turnover,
        causes=_causes(deployment, ceilings.step_of_crowd, step, stays, answered.tpot_s.best_known),
        is_seen=calibration.has_seen(keys),
        refused=refused,
        unclaimed=unclaimed if own is None else own.withheld(unclaimed),
        decode=regimes.time("tpot", step_ceiling, scalar(step.total_s)),
        prefill=regimes.time("prefill", ceilings.prompt.ceiling_s, prompts.alone_s),
        serving=answered,
    )


class _Regimes:
    """Which residuals an interval comes from: by metric, stack, and whether one, many or as many as fit are served.

    What a user calibrated comes from the user's own points, whatever else was measured.
    """

    def __init__(self, deployment: Deployment, keys: Keys, asked: int, *, claims: bool) -> None:
        calibration = deployment.calibration
        assert calibration is not None  # noqa: S101  # `expect` has looked
        self._table = calibration.intervals if calibration.has_seen(keys) else calibration.intervals_unseen
        saturated = deployment.workload.concurrency is None
        self._load = "saturated" if saturated else "one" if asked == 1 else "many"
        self._stack, self._claims, self._own = keys.stack, claims, deployment.own_calibration

    def interval(self, metric: str) -> Interval | None:
        """The interval of a metric, most special first; None where none is claimed."""
        own = None if self._own is None else self._own.of_metric(metric)
        if own is not None:
            return _inverse(own.interval) if metric == "throughput" else own.interval
        if not self._claims:
            return None
        for key in (f"{self._stack} {metric} {self._load}", f"{metric} {self._load}", metric):
            if key in self._table:
                return self._table[key]
        return None

    def time(self, metric: str, ceiling: float, mid: float) -> Estimate:
        """A time with the interval of its metric."""
        return _time(ceiling, mid, self.interval(metric))


def _time(ceiling: float, mid: float, interval: Interval | None) -> Estimate:
    """No end of the interval is below the ceiling."""
    mid = max(ceiling, mid)
    if interval is None:
        return Estimate(ceiling, None, mid, None)
    return Estimate(ceiling, max(ceiling, min(mid, mid * interval.low)), mid, max(mid, mid * interval.high))


def _rate(ceiling: float, mid: float, interval: Interval | None) -> Estimate:
    mid = min(ceiling, mid)
    if interval is None:
        return Estimate(ceiling, None, mid, None)
    return Estimate(ceiling, min(mid, mid * interval.low), mid, min(ceiling, max(mid, mid * interval.high)))


def _inverse(interval: Interval | None) -> Interval | None:
    return None if interval is None else Interval(1 / interval.high, 1 / interval.low, interval.n)


def _causes(deployment: Deployment, decode: PhaseCost, step: Step, stays: Stay, tpot_s: float) -> Causes:
    """The parts of a TPOT, a step's for each token that it gives; one that stands at its ceiling has no other."""
    if tpot_s > scalar(stays.tpot_s):
        return Causes(tpot_s, 0.0, 0.0, 0.0, 0.0, 0.0)
    linked = sum(op.time_s for op in decode.operators if op.link_bytes)
    on_gpus, each = step.on_gpus, 1 / deployment.tokens_per_step
    return Causes(
        ceiling_s=decode.ceiling_s * each,
        efficiency_s=(scalar(on_gpus.operators_s) - (decode.ceiling_s - linked)) * each,
        calls_s=scalar(on_gpus.calls_s) * each,
        collectives_s=(scalar(on_gpus.collectives_s) - linked) * each,
        host_s=scalar(step.host_s) * each,
        interference_s=scalar(stays.interference_s),
    )


def _refusal(asked: int, capacity: int) -> str | None:
    if asked <= capacity:
        return None
    return (
        f"{asked:,} requests are more than the {capacity:,} that find room: the others wait for a place, and how long "
        "depends on how they arrive, which the scenario does not say."
    )


def _unclaimed(deployment: Deployment, keys: Keys, batch: int) -> str | None:
    """Why residuals of the measurements say nothing of this deployment."""
    calibration = deployment.calibration
    assert calibration is not None  # noqa: S101  # `expect` has looked
    workload = deployment.workload
    if deployment.engine.draft_tokens:
        return "speculative decoding was not in the measurements that the intervals come from"
    if deployment.prefill_pool is not None:
        return "prefill on GPUs of its own was not in the measurements that the intervals come from"
    if deployment.engine.is_static:
        return "static batches were not in the measurements that the intervals come from"
    if keys.memory == "sram":
        return f"nothing was measured on memory like that of {deployment.accelerator.name}"
    if workload.total_tokens > calibration.longest_request:
        return f"nothing was measured beyond {calibration.longest_request:,} tokens a request"
    if workload.concurrency is not None and on_rank(deployment, batch) > calibration.largest_batch:
        return f"nothing was measured beyond {calibration.largest_batch:,} requests at a time on a rank"
    return None
