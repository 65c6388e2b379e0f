"""Prefill and decode on GPUs of their own, against the same GPUs doing both.

Together, prompts and steps take turns on the same arithmetic, and each user's stream stops for other people's prompts.
Apart, each side has the card, the split and the batch that suit it, and a cache has to travel.
Source: Zhong et al., "DistServe", OSDI 2024; Patel et al., "Splitwise", ISCA 2024.
"""

from dataclasses import dataclass, replace
from math import gcd
from typing import Any

from app.calc.broadcast import scalar
from app.calc.deployment import Deployment
from app.calc.derivation import Explanation
from app.calc.measure import measure, replica_batch
from app.calc.memory.engines.parts import MOST_CONCURRENT
from app.calc.optimize.optimization import (
    Asked,
    Better,
    Candidate,
    Figure,
    Level,
    Optimization,
    Quantity,
    Row,
    Sentence,
    Size,
    Spec,
    Variants,
    refusal,
)
from app.calc.optimize.sides import CAPACITY, TPOT, TTFT, Side, at_levels, change_of_time, figure, row, side_of, working
from app.calc.quantity import quantity, significant
from app.calc.time.expected.timing import sent_bytes
from app.calc.time.goodput import goodput
from app.calc.time.prefill_pool import PoolRates, PrefillPool, transfer_s

SENT = Quantity("sent_bytes", "Cache that is sent for a prompt", "B")
ON_ITS_WAY = Quantity("transfer", "Its time over the link", "s", Level.CEILING, Better.LOWER)
WAITED = Quantity("transfer_wait", "Of that not hidden by the prefill", "s", better=Better.LOWER)
GPUS = Quantity("gpus", "GPUs", "", better=Better.LOWER)
EACH = Quantity("throughput_per_gpu", "Output tokens a second for each GPU", "tokens/s", better=Better.HIGHER)
GOOD = Quantity("goodput_per_gpu", "Goodput for each GPU", "requests/s", Level.EXPECTED, Better.HIGHER)
COLUMNS = (
    Quantity("ttft", "TTFT", "s", read=lambda side: _ttft(side)),
    Quantity("tpot", "TPOT", "s", read=lambda side: side.measures.serving.tpot_s.best_known),
    Quantity("throughput", "Throughput", "tokens/s", read=lambda side: side.tokens_per_s),
    Quantity("throughput_per_gpu", "For each GPU", "tokens/s", read=lambda side: side.tokens_per_s_per_gpu),
    Quantity("goodput_per_gpu", "Goodput for each GPU", "requests/s", read=lambda side: _goodput_per_gpu(side)),
    Quantity(
        "taken_on", "Prompts taken on", "requests/s", read=lambda side: pool.per_s if (pool := _pool(side)) else None
    ),
    Quantity("used_up", "Prompts used up", "requests/s", read=lambda side: _used_up(side) if _pool(side) else None),
)
REPLICAS = 4
"""Replicas' worth of GPUs that are compared where the scenario has fewer than two: one cannot be parted."""
MOST_RATIOS = 7
USUAL_LINK, USUAL_RATE = "ib-ndr", 50e9


def _compare(asked: Asked) -> Optimization:
    """The scenario's GPUs together, and parted."""
    here = asked.deployment
    if here.engine.is_static:
        return refusal(SPEC, "A static batch is prefilled together and ends together: there is nothing to part.")
    is_used = here.prefill_pool is not None
    together = _together(here)
    parted = [here] if is_used else []
    parted += [_parted(together, x) for x in _shares(together)]
    sides = [side_of(asked, deployment) for deployment in parted]
    on = sides[0] if is_used else max(sides, key=_score)
    off = side_of(asked, together)
    return Optimization(
        SPEC,
        is_used,
        "Serve both phases on the same GPUs" if is_used else f"Part them: {ratio_words(on.deployment)}",
        _together_again(off.deployment) if is_used else pool_change(on.deployment),
        _sentence(off, on),
        _figures(off, on),
        _explained(on),
        Variants(COLUMNS, tuple(_row(asked, side) for side in (off, *sides))),
    )


def _candidate(deployment: Deployment) -> Candidate | None:
    """Of several replicas some that only prefill; one alone cannot be parted."""
    if deployment.prefill_pool is not None or deployment.engine.is_static or deployment.replicas < 2:
        return None
    changed = split_in_two(deployment)
    change = pool_change(changed)
    if not change:
        return None
    prefill = changed.gpus - changed.decode_gpus
    label = f"Prefill on {prefill:,} of the GPUs and decode on {changed.decode_gpus:,}"
    return Candidate(change, label, changed)


def ratio_words(deployment: Deployment) -> str:
    """Instances that prefill and replicas that decode: 1P3D."""
    pool = deployment.prefill_pool
    return f"{pool.instances if pool else 0:,}P{deployment.replicas:,}D"


def _together(here: Deployment) -> Deployment:
    """The same GPUs doing both; of a scenario with one replica as many as can be parted, with as many more requests.

    A prefill pool on other cards counts by its GPUs: so many more of the scenario's own stand in.
    """
    if here.prefill_pool is not None:
        replicas = max(1, round(here.gpus / here.split.gpus))
        return replace(here, prefill_pool=None, replicas=replicas)
    replicas = here.replicas if here.replicas > 1 else REPLICAS
    asked = here.workload.concurrency
    scaled = None if asked is None else min(MOST_CONCURRENT, asked * replicas // here.replicas)
    return replace(here, replicas=replicas, workload=replace(here.workload, concurrency=scaled))


def _shares(together: Deployment) -> list[int]:
    """How many of the replicas could prefill: all counts where there are few, else evenly chosen ones."""
    most = together.replicas - 1
    if most <= MOST_RATIOS:
        return list(range(1, most + 1))
    return sorted({max(1, round(most * (i + 1) / (MOST_RATIOS + 1))) for i in range(MOST_RATIOS)})


def _parted(together: Deployment, instances: int) -> Deployment:
    rate = together.accelerator.link_bytes_per_s_one_way
    name = f"{together.accelerator.name}'s own link" if rate else "400 Gbit/s a GPU"
    split = replace(together.split, decode_context=1)
    pool = PrefillPool(together.accelerator, split, instances, name, rate or USUAL_RATE)
    return replace(together, replicas=together.replicas - instances, prefill_pool=pool)


def _score(side: Side) -> tuple[float, float]:
    good = goodput(side.deployment, side.measures)
    return (good.rate_per_s if good else 0.0), side.tokens_per_s


def pool_change(parted: Deployment) -> dict[str, Any]:
    """The patch that leads to a parted deployment on cards of one kind; none for a card of one's own, which has no name
    to point at.
    """
    pool, split = parted.prefill_pool, parted.split
    if pool is None or parted.accelerator.id == "custom":
        return {}
    linked, users = parted.accelerator.link_bytes_per_s_one_way is not None, parted.workload.concurrency
    return {
        "hardware": {"count": parted.decode_gpus},
        # As many as find room is said by null, which a patch would read as the default: it is left as it is.
        **({} if users is None else {"workload": {"concurrency": users}}),
        "techniques": {
            "disaggregation": {
                "hardware": {"id": pool.accelerator.id},
                "tensor": split.tensor,
                "pipeline": split.pipeline,
                "data": split.data,
                "expert": split.expert,
                "instances": pool.instances,
                "link": "card" if linked else USUAL_LINK,
            }
        },
    }


def _together_again(together: Deployment) -> dict[str, Any]:
    """The patch that closes the door: the pool’s GPUs come back as replicas."""
    return {"hardware": {"count": together.gpus}, "techniques": {"disaggregation": None}}


def split_in_two(together: Deployment) -> Deployment:
    """Several replicas parted so that, as far as whole ones go, prompts are taken on as fast as they are used up."""
    sides = [_parted(together, x) for x in _shares(together)]
    return max(sides, key=_rate)


def _rate(parted: Deployment) -> float:
    return measure(parted).serving.output_tokens_per_s.best_known


def _figures(off: Side, on: Side) -> tuple[Figure, ...]:
    first, second, both = off.measures.serving, on.measures.serving, (off, on)
    level = Level.EXPECTED if on.measures.expected else Level.CEILING
    sent = _Sent.of(on)
    good = [_goodput_per_gpu(side) for side in both]
    return (
        figure(GPUS, (float(side.deployment.gpus) for side in both)),
        figure(SENT, (0.0, sent.bytes)),
        figure(ON_ITS_WAY, (0.0, sent.took_s)),
        figure(WAITED, (0.0, sent.waited_s), level),
        figure(CAPACITY, (float(side.measures.memory.max_concurrency) for side in both), level),
        *at_levels(TTFT, first.ttft_s, second.ttft_s),
        *at_levels(TPOT, first.tpot_s, second.tpot_s),
        figure(EACH, (side.tokens_per_s_per_gpu for side in both), level),
        *(() if None in good else (figure(GOOD, good),)),
    )


def _goodput_per_gpu(side: Side) -> float | None:
    good = goodput(side.deployment, side.measures)
    return None if good is None else good.rate_per_s / side.deployment.gpus


def _ttft(side: Side) -> float | None:
    expected = side.measures.expected
    return side.measures.serving.ttft_s.best_known if expected is None or expected.refused is None else None


def _pool(side: Side) -> PoolRates | None:
    return side.measures.expected.pool if side.measures.expected else None


@dataclass(frozen=True, slots=True)
class _Sent:
    """A prompt's cache on its way."""

    bytes: float
    took_s: float
    waited_s: float

    @staticmethod
    def of(side: Side) -> "_Sent":
        pool, size, expected = side.deployment.prefill_pool, sent_bytes(side.deployment), side.measures.expected
        assert pool is not None  # noqa: S101  # it is the open side
        took = scalar(transfer_s(size, pool.link_bytes_per_s, pool.senders))
        waited = side.measures.serving.ttft_s.ceiling - side.measures.prefill.ceiling_s / pool.split.pipeline
        return _Sent(size, took, expected.link_wait_s if expected else waited)


def _row(asked: Asked, side: Side) -> Row:
    deployment = side.deployment
    label = ratio_words(deployment) if deployment.prefill_pool else f"{deployment.replicas:,} together"
    return row(COLUMNS, label, side, is_here=deployment == asked.deployment)


def _used_up(side: Side) -> float:
    """Requests a second that the decode side could finish, if prompts came without end: B ÷ (n × TPOT)."""
    running, n = side.measures.memory.served_sequences, side.deployment.workload.output_tokens
    return running / (n * side.tpot_s)


def matched_ratio(side: Side) -> tuple[int, int] | None:
    """Prefill instances to decode replicas at which neither waits for the other, as small whole numbers.

    Seconds of an instance for a prompt against seconds of a replica for an answer: an instance gives r prompts a second
    and a replica uses d, so x : y = d : r. None where nothing is expected.
    """
    expected, pool = side.measures.expected, side.deployment.prefill_pool
    if expected is None or expected.pool is None or pool is None:
        return None
    gives = expected.pool.per_s / pool.instances
    batch = replica_batch(side.deployment, side.measures.memory.served_sequences)
    uses = batch / (side.deployment.workload.output_tokens * side.tpot_s)
    ratio = uses / gives
    small = min(
        ((x, y) for x in range(1, 17) for y in range(1, 17)), key=lambda p: (abs(p[0] / p[1] / ratio - 1) > 0.1, sum(p))
    )
    common = gcd(*small)
    return small[0] // common, small[1] // common


def _sentence(off: Side, on: Side) -> Sentence:
    sent, ratio = _Sent.of(on), matched_ratio(on)
    each = [side.tokens_per_s_per_gpu for side in (off, on)]
    start = (
        f"{ratio_words(on.deployment)} against the same GPUs together: "
        f"{change_of_time('each token comes', off.tpot_s, on.tpot_s)}, and a GPU gives "
        f"{significant(each[1], 3)} tokens a second in place of {significant(each[0], 3)}. A prompt’s cache of "
    )
    took, waited = (quantity(seconds, "s", 3) for seconds in (sent.took_s, sent.waited_s))
    rates = f" The rates would match at about {ratio[0]}P to {ratio[1]}D." if ratio else ""
    return start, Size(sent.bytes), f" is on its way for {took}, of which {waited} are waited for.{rates}"


def _explained(on: Side) -> tuple[Explanation, ...]:
    pool, sent, found = on.deployment.prefill_pool, _Sent.of(on), []
    assert pool is not None  # noqa: S101  # it is the open side
    found.append(
        working(
            "disaggregation.transfer_s",
            "Time of a prompt’s cache over the link",
            "D ÷ (g × v)",
            (
                ("D", "cache of a prompt, each head’s once", sent.bytes, "B"),
                ("g", "GPUs of an instance that send their parts", pool.senders, ""),
                ("v", f"{pool.link_name}, one way", pool.link_bytes_per_s, "B/s"),
            ),
            (sent.took_s, "s", "Bytes ÷ rate; queues are left out"),
        )
    )
    running, n = on.measures.memory.served_sequences, on.deployment.workload.output_tokens
    found.append(
        working(
            "disaggregation.used_up_per_s",
            "Prompts a second that the decode side uses up",
            "B ÷ (n × TPOT)",
            (
                ("B", "sequences that decode at a time", running, ""),
                ("n", "tokens of an answer", n, "tokens"),
                ("TPOT", "time per output token", on.tpot_s, "s"),
            ),
            (_used_up(on), "requests/s", "Little’s law"),
        )
    )
    return tuple(found)


SPEC = Spec(
    "disaggregation",
    "Prefill and decode apart",
    _compare,
    counts=("goodput_per_gpu", "throughput_per_gpu"),
    shown=("ttft", "tpot"),
    limits=(
        "Told in steady state: a pool whose side runs short makes the others idle, and nothing moves GPUs between "
        "them.",
        "A cache waits for the last of its layers; queues on the link, and what else uses it, are left out.",
        "A prefix that is found in the pool’s cache is still sent: the side that decodes has never seen it.",
        "Different cards are told at their own ceilings and efficiencies; that their formats agree is taken for "
        "granted.",
        "No interval is claimed: nothing that was measured for the fit ran apart.",
    ),
    candidate=_candidate,
)
