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
from app.calc.deployment_limits import MOST_CONCURRENT
from app.calc.doors.door import Asked, Better, Door, DoorId, Figure, Level, Row, Variants
from app.calc.doors.sides import ROOM, Side, change_of_time, figure, side_of, told, working
from app.calc.explanation import Explanation
from app.calc.goodput import goodput
from app.calc.measure import measure, replica_batch
from app.calc.notation import quantity, significant
from app.calc.techniques.disaggregation import sent_bytes
from app.calc.techniques.pools import PrefillPool, transfer_s

TITLE = "Prefill and decode apart"
SENT, ON_ITS_WAY, WAITED = (
    "Cache that is sent for a prompt",
    "Its time over the link",
    "Of that not hidden by the prefill",
)
EACH, GOOD = "Output tokens a second for each GPU", "Goodput for each GPU"
COLUMNS = (
    ("TTFT", "s"),
    ("TPOT", "s"),
    ("Throughput", "tokens/s"),
    ("For each GPU", "tokens/s"),
    ("Goodput for each GPU", "requests/s"),
    ("Prompts taken on", "requests/s"),
    ("Prompts used up", "requests/s"),
)
REPLICAS = 4
"""Replicas' worth of GPUs that are compared where the scenario has fewer than two: one cannot be parted."""
MOST_RATIOS = 7
USUAL_LINK, USUAL_RATE = "ib-ndr", 50e9
LIMITS = (
    "Told in steady state: a pool whose side runs short makes the others idle, and nothing moves GPUs between them.",
    "A cache waits for the last of its layers; queues on the link, and what else uses it, are left out.",
    "A prefix that is found in the pool’s cache is still sent: the side that decodes has never seen it.",
    "Different cards are told at their own ceilings and efficiencies; that their formats agree is taken for granted.",
    "No interval is claimed: nothing that was measured for the fit ran apart.",
)


def disaggregation_door(asked: Asked) -> Door:
    """The scenario's GPUs together, and parted."""
    here = asked.deployment
    if here.engine.is_static:
        reason = "A static batch is prefilled together and ends together: there is nothing to part."
        return Door(DoorId.DISAGGREGATION, TITLE, False, TITLE, {}, reason, refused=reason)
    is_open = here.prefill_pool is not None
    together = _together(here)
    parted = [here] if is_open else []
    parted += [_parted(together, x) for x in _shares(together)]
    sides = [side_of(asked, deployment) for deployment in parted]
    opened = sides[0] if is_open else max(sides, key=_score)
    closed = side_of(asked, together)
    pool = opened.deployment.prefill_pool
    assert pool is not None  # noqa: S101  # it is the open side
    return Door(
        DoorId.DISAGGREGATION,
        TITLE,
        is_open,
        "Serve both phases on the same GPUs" if is_open else f"Part them: {ratio_words(opened.deployment)}",
        _together_again(closed.deployment) if is_open else pool_change(opened.deployment),
        _sentence(closed, opened),
        _figures(closed, opened),
        _explained(opened),
        Variants(COLUMNS, tuple(_row(asked, side) for side in (closed, *sides))),
        LIMITS,
    )


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


def _figures(closed: Side, opened: Side) -> tuple[Figure, ...]:
    first, second = closed.measures.serving, opened.measures.serving
    gpus = closed.deployment.gpus, opened.deployment.gpus
    each = (side.tokens_per_s / n for side, n in zip((closed, opened), gpus, strict=True))
    level = Level.EXPECTED if opened.measures.expected else Level.CEILING
    sent = _Sent.of(opened)
    found = [
        figure("GPUs", (float(n) for n in gpus), "", Level.EXACT, Better.LOWER),
        figure(SENT, (0.0, sent.bytes), "B", Level.EXACT, Better.NEITHER),
        figure(ON_ITS_WAY, (0.0, sent.took_s), "s", Level.CEILING, Better.LOWER),
        figure(WAITED, (0.0, sent.waited_s), "s", level, Better.LOWER),
        figure(ROOM, (float(s.measures.memory.max_concurrency) for s in (closed, opened)), "", level, Better.HIGHER),
        *told("Time to first token (TTFT)", first.ttft_s, second.ttft_s, "s", Better.LOWER),
        *told("Time per output token (TPOT)", first.tpot_s, second.tpot_s, "s", Better.LOWER),
        figure(EACH, each, "tokens/s", level, Better.HIGHER),
    ]
    good = [goodput(side.deployment, side.measures) for side in (closed, opened)]
    if all(good):
        rates = (g.rate_per_s / n if g else None for g, n in zip(good, gpus, strict=True))
        found.append(figure(GOOD, rates, "requests/s", Level.EXPECTED, Better.HIGHER))
    return tuple(found)


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
    served, deployment, expected = side.measures.serving, side.deployment, side.measures.expected
    good, gpus = goodput(deployment, side.measures), deployment.gpus
    pool = expected.pool if expected else None
    label = ratio_words(deployment) if deployment.prefill_pool else f"{deployment.replicas:,} together"
    values = (
        served.ttft_s.best_known if expected is None or expected.refused is None else None,
        served.tpot_s.best_known,
        side.tokens_per_s,
        side.tokens_per_s / gpus,
        None if good is None else good.rate_per_s / gpus,
        None if pool is None else pool.per_s,
        _used_up(side) if pool else None,
    )
    return Row(label, values, deployment == asked.deployment, side.note)


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


def _sentence(closed: Side, opened: Side) -> str:
    deployment, sent = opened.deployment, _Sent.of(opened)
    each = [side.tokens_per_s / side.deployment.gpus for side in (closed, opened)]
    ratio = matched_ratio(opened)
    text = (
        f"{ratio_words(deployment)} against the same GPUs together: "
        f"{change_of_time('each token comes', closed.tpot_s, opened.tpot_s)}, and a GPU gives "
        f"{significant(each[1], 3)} tokens a second in place of {significant(each[0], 3)}. A prompt’s cache of "
        f"{quantity(sent.bytes, 'B', 3)} is on its way for {quantity(sent.took_s, 's', 3)}, of which "
        f"{quantity(sent.waited_s, 's', 3)} are waited for"
    )
    return f"{text}." if ratio is None else f"{text}. The rates would match at about {ratio[0]}P to {ratio[1]}D."


def _explained(opened: Side) -> tuple[Explanation, ...]:
    pool, sent, found = opened.deployment.prefill_pool, _Sent.of(opened), []
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
    running, n = opened.measures.memory.served_sequences, opened.deployment.workload.output_tokens
    found.append(
        working(
            "disaggregation.used_up_per_s",
            "Prompts a second that the decode side uses up",
            "B ÷ (n × TPOT)",
            (
                ("B", "sequences that decode at a time", running, ""),
                ("n", "tokens of an answer", n, "tokens"),
                ("TPOT", "time per output token", opened.tpot_s, "s"),
            ),
            (_used_up(opened), "requests/s", "Little’s law"),
        )
    )
    return tuple(found)
