"""One model over several GPUs: tensor, pipeline, expert and data-parallel ranks of the same number of cards.

Where the scenario is already split the best way for its load the door is open, and closed is the fewest GPUs that hold
it (or, where it has no more than those, its layers dealt out to stages). Else closed is the scenario, and open the best
split.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from app.calc.broadcast import scalar
from app.calc.deployment import Deployment
from app.calc.doors.door import Asked, Better, Door, DoorId, Figure, Level, Row, Variants
from app.calc.doors.sides import ALIKE, Side, figure, served_figures, side_of, told_as, working
from app.calc.explanation import Explanation
from app.calc.forgetting import MEASURED_PARTS, POOL, forgetting, patch_of
from app.calc.lever_candidates import MOST_CARDS, holds
from app.calc.measure import replica_batch
from app.calc.memory import memory
from app.calc.notation import quantity, significant
from app.calc.operators import decode_operators
from app.calc.split import Split, SplitError, stage_sizes

TITLE = "Over several GPUs"
GPUS, PER_GPU, LINK = "GPUs", "Output tokens a second of each GPU", "Bytes over the link in a decode step"
LIMITS = (
    "Hops between pipeline stages cost nothing here, nor does the exchange of context ranks (DCP).",
    "Routing is balanced: no expert is asked for more often than another. Exchanges between expert ranks are in what "
    "is expected, not in the ceiling nor in the bytes over the link.",
    "A link beyond the node is taken to be as fast as inside it.",
    "Replicas are given equally many requests; a real balancer leaves some of them waiting.",
)
_SOURCE = "Patarasuk and Yuan, JPDC 69(2), 2009: a ring all-reduce after each mixer and each feed-forward part"


@dataclass(frozen=True, slots=True)
class _Way:
    """One way of using the GPUs: its name, how a replica is split, and how many replicas there are."""

    label: str
    split: Split
    replicas: int


@dataclass(frozen=True, slots=True)
class _Told:
    """A way with its numbers, or why it has none."""

    way: _Way
    side: Side | None
    reason: str = ""
    is_here: bool = False


def parallelism_door(asked: Asked) -> Door:
    """The scenario on its GPUs as they are split, and as they would be split best for its load."""
    here = asked.deployment
    if here.prefill_pool is not None:
        return _refused("Prompts have GPUs of their own here: each pool is split for itself, and not told together.")
    found = [_told(asked, way) for way in _ways(here)]
    running = [
        (each, each.side) for each in found if each.side is not None and each.side.measures.memory.max_concurrency
    ]
    told = [pair for pair in running if pair[1].fits] or running
    if not told:
        return _refused(f"No way of splitting {_gpus(here):,} of these cards holds a single sequence.")
    best, opened = _best(told)
    scenario, columns = Side(here, asked.measures), _columns(asked)
    if best.is_here:
        other = _closed(asked, found)
        if other is None:
            return _refused(f"{_named(best.way.split, best.way.replicas)} is the only way that holds it.")
        fewer = other.deployment.gpus < here.gpus
        name = _named(other.deployment.split, other.deployment.replicas)
        closed, label, target = other, f"{'Back to' if fewer else 'Split it as'} {name}", other.deployment
    else:
        closed, label, target = scenario, f"Split it as {best.way.label}", opened.deployment
    return Door(
        DoorId.PARALLELISM,
        TITLE,
        best.is_here,
        label,
        _change(here, target),
        _sentence(told),
        _figures(closed, opened),
        _explained(told),
        Variants(columns, tuple(_row(each, len(columns)) for each in found)),
        LIMITS,
    )


def _refused(reason: str) -> Door:
    return Door(DoorId.PARALLELISM, TITLE, False, "Several GPUs", {}, reason, refused=reason)


def _gpus(deployment: Deployment) -> int:
    """GPUs that the ways share: those of a replica; where it is one GPU those of all replicas; else a node of them."""
    if deployment.split.gpus > 1:
        return deployment.split.gpus
    return deployment.replicas if deployment.replicas > 1 else MOST_CARDS


def _ways(deployment: Deployment) -> Iterator[_Way]:
    """What the GPUs could do, the scenario's own way among them; each so many times as there are groups of them."""
    n, split, has_experts = _gpus(deployment), deployment.split, deployment.architecture.has_experts
    groups = deployment.replicas if split.gpus > 1 else 1
    ways = [Split(tensor=n)]
    if n % 2 == 0 and n > 2:
        ways.append(Split(tensor=n // 2, pipeline=2))
    ways.append(Split(pipeline=n))
    if has_experts:
        ways += [Split(tensor=n, expert=n), Split(data=n, expert=n)]
    found = [_Way(_named(way, groups), way, groups) for way in ways]
    found.append(_Way(_named(Split(), n * groups), Split(), n * groups))
    if not any(way.split == split and way.replicas == deployment.replicas for way in found):
        found.append(_Way(_named(split, deployment.replicas), split, deployment.replicas))
    yield from found


def _columns(asked: Asked) -> tuple[tuple[str, str], ...]:
    level = told_as(asked.measures)
    return (
        (f"TTFT, {level}", "s"),
        (f"TPOT, {level}", "s"),
        (f"Throughput, {level}", "tokens/s"),
        (f"Throughput of a GPU, {level}", "tokens/s"),
        ("Room", "sequences"),
        ("Link bytes a step", "B"),
    )


def _named(split: Split, replicas: int) -> str:
    """TP 4 × PP 2, two of them."""
    words = split.words.replace(", ", " × ")
    if not words:
        return f"{replicas:,} replicas" if replicas > 1 else "1 GPU"
    return f"{words}, {replicas:,} times" if replicas > 1 else words


def _best(told: list[tuple[_Told, Side]]) -> tuple[_Told, Side]:
    """The way with most throughput; the scenario's own where no other gives notably more."""
    best = max(told, key=lambda pair: pair[1].tokens_per_s)
    return next(
        (pair for pair in told if pair[0].is_here and pair[1].tokens_per_s >= (1 - ALIKE) * best[1].tokens_per_s), best
    )


def _told(asked: Asked, way: _Way) -> _Told:
    """The numbers of one way; the scenario's own are always told."""
    here = asked.deployment
    if way.split == here.split and way.replicas == here.replicas:
        return _Told(way, Side(here, asked.measures), is_here=True)
    reason = _obstacle(here, way.split)
    if reason is not None:
        return _Told(way, None, reason)
    bare, _ = forgetting(here, *MEASURED_PARTS, POOL)
    changed = replace(bare, split=way.split, replicas=way.replicas)
    if not memory(changed).max_concurrency:
        return _Told(way, None, "does not fit")
    return _Told(way, side_of(asked, changed))


def _obstacle(deployment: Deployment, split: Split) -> str | None:
    """Why the model cannot be split so; None where it can."""
    try:
        split.check()
        stage_sizes(deployment.architecture.n_layers, split.pipeline)
        deployment.architecture.split(split)
    except SplitError as error:
        return str(error)
    return None


def _closed(asked: Asked, found: list[_Told]) -> Side | None:
    """The fewest GPUs that hold the scenario, if it has more; else its layers dealt out to stages, the plainest of the
    ways; else the slowest of the others; None where there is none.
    """
    here = asked.deployment
    bare, _ = forgetting(here, *MEASURED_PARTS, POOL)
    for ranks in range(1, here.split.gpus):
        for split in (Split(tensor=ranks), Split(pipeline=ranks)):
            changed = replace(bare, split=split)
            if here.split.gpus % ranks == 0 and _obstacle(here, split) is None and holds(changed):
                return side_of(asked, changed)
    if here.split.gpus == 1 and here.replicas > 1:
        alone = replace(bare, replicas=1)
        if holds(alone):
            return side_of(asked, alone)
    others = [each.side for each in found if each.side is not None and not each.is_here]
    staged = (side for side in others if side.deployment.split == Split(pipeline=_gpus(here)))
    return next(staged, min(others, key=lambda side: side.tokens_per_s, default=None))


def _change(here: Deployment, target: Deployment) -> dict[str, Any]:
    _, forgotten = forgetting(here, *MEASURED_PARTS, POOL)
    split = target.split
    sizes = {
        "tensor": split.tensor,
        "pipeline": split.pipeline,
        "data": split.data,
        "expert": split.expert,
        "decode_context": split.decode_context,
    }
    return patch_of(forgotten, hardware={"count": target.gpus}, parallelism=sizes)


def _link_bytes(side: Side) -> float:
    return sum(op.link_bytes for op in side.measures.decode.operators)


def _per_gpu(side: Side) -> float:
    return side.tokens_per_s / side.deployment.gpus


def _figures(closed: Side, opened: Side) -> tuple[Figure, ...]:
    both = closed, opened
    return (
        figure(GPUS, (float(side.deployment.gpus) for side in both), "", Level.EXACT, Better.NEITHER),
        *served_figures(closed, opened),
        figure(PER_GPU, map(_per_gpu, both), "tokens/s", _level(both), Better.HIGHER),
        figure(LINK, map(_link_bytes, both), "B", Level.EXACT, Better.LOWER),
    )


def _level(both: tuple[Side, Side]) -> Level:
    return Level.CEILING if any(side.measures.expected is None for side in both) else Level.EXPECTED


def _row(told: _Told, columns: int) -> Row:
    if told.side is None:
        return Row(told.way.label, (None,) * columns, told.is_here, told.reason)
    served = told.side.measures.serving
    ttft = served.ttft_s.mid if told.side.measures.expected else served.ttft_s.ceiling
    values = (
        ttft,
        told.side.tpot_s,
        told.side.tokens_per_s,
        _per_gpu(told.side),
        float(told.side.measures.memory.max_concurrency),
        _link_bytes(told.side),
    )
    return Row(told.way.label, values, told.is_here, told.side.note)


def _sentence(told: list[tuple[_Told, Side]]) -> str:
    """Which way is fastest for one user, which gives most at this load, and what all-reduces take."""
    n = max(side.deployment.gpus for _, side in told)
    alike = [pair for pair in told if pair[1].deployment.gpus == n]
    fastest, quick = min(alike, key=lambda pair: pair[1].tpot_s)
    best, most = max(alike, key=lambda pair: pair[1].tokens_per_s)
    pace, rate = quantity(quick.tpot_s, "s", 3), quantity(_per_gpu(most), "tokens/s", 3)
    running = most.measures.memory.running_sequences
    load = f"{running:,} users" if running > 1 else "one user"
    yields = "it is also the one that yields" if best.way == fastest.way else f"{best.way.label} is the way that yields"
    text = (
        f"Of the ways to use {n:,} GPUs the fastest for each user is {fastest.way.label}, a token in {pace}; at {load} "
        f"{yields} most, {rate} of each GPU."
    )
    fewer = next((side for each, side in told if each.is_here and side.deployment.gpus < n), None)
    if fewer is not None:
        own, gpus = quantity(_per_gpu(fewer), "tokens/s", 3), fewer.deployment.gpus
        which = "The scenario’s one GPU" if gpus == 1 else f"Each of the scenario’s {gpus:,}"
        text += f" {which} gives {own}."
    return f"{text}{_latency(alike)}"


def _latency(told: list[tuple[_Told, Side]]) -> str:
    """What collectives take of a token under the way where they take most of it."""
    shares = [
        (side.measures.expected.causes.collectives_s / side.tpot_s, each.way.label, side)
        for each, side in told
        if side.measures.expected is not None
    ]
    share, label, side = max(shares, key=lambda entry: entry[0], default=(0.0, "", None))
    if side is None or side.measures.expected is None or share <= 0:
        return ""
    took = quantity(side.measures.expected.causes.collectives_s, "s", 3)
    return f" Under {label} collectives take {took} of each token, {significant(100 * share, 2)} %."


def _explained(told: list[tuple[_Told, Side]]) -> tuple[Explanation, ...]:
    best, most = _best(told)
    label = f"Throughput of each GPU, {best.way.label}"
    terms = (
        ("R", "output tokens a second of all of them", most.tokens_per_s, "tokens/s"),
        ("G", "GPUs", float(most.deployment.gpus), ""),
    )
    source = "Definition"
    found = [working("parallelism.per_gpu", label, "R ÷ G", terms, (_per_gpu(most), "tokens/s", source))]
    whole = next((side for each, side in told if _is_tensor_only(each.way.split)), None)
    if whole is not None:
        found.append(_all_reduce(whole))
    return tuple(found)


def _is_tensor_only(split: Split) -> bool:
    return split.tensor > 1 and split.pipeline == split.data == split.expert == 1


def _all_reduce(side: Side) -> Explanation:
    """Bytes that the all-reduces of a decode step send in one direction, under tensor parallelism alone."""
    deployment, volume = side.deployment, _link_bytes(side)
    ranks, width = deployment.split.tensor, deployment.wide_dtype.bytes
    sequences = replica_batch(deployment, side.measures.memory.running_sequences)
    batch = sequences * deployment.positions
    step = decode_operators(deployment, sequences, deployment.workload.mid_answer_tokens)
    drafted = sum(scalar(op.link_bytes) for op in step if op.is_drafting)
    hidden = deployment.architecture.hidden_size
    calls = sum(g.count * ((g.mixer is not None) + bool(g.feed_forwards)) for g in deployment.architecture.layers)
    terms: tuple[tuple[str, str, float, str], ...] = (
        ("n", "tensor ranks", float(ranks), ""),
        ("c", "all-reduces of a step", float(calls), ""),
        ("B", "positions of all sequences of a step", float(batch), ""),
        ("h", "hidden size", float(hidden), ""),
        ("b", "bytes of an activation", width, "B"),
    )
    formula = "2 × (n − 1) ÷ n × c × B × h × b"
    if drafted:
        formula, terms = f"{formula} + D", (*terms, ("D", "the same of the passes that guess", drafted, "B"))
    return working("parallelism.all_reduce", "Bytes of all-reduces in a step", formula, terms, (volume, "B", _SOURCE))
