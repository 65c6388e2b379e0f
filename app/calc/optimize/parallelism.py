"""One model over several GPUs: tensor, pipeline, expert and data-parallel ranks of the same number of cards.

Where the scenario is already split the best way for its load the door is open, and off is the fewest GPUs that hold
it (or, where it has no more than those, its layers dealt out to stages). Else off is the scenario, and open the best
split.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from app.calc.broadcast import scalar
from app.calc.deployment import Deployment
from app.calc.derivation import Explanation
from app.calc.measure import replica_batch
from app.calc.memory.capacity import memory
from app.calc.memory.engines.parts import MOST_CARDS
from app.calc.memory.rank import holds
from app.calc.model.split import Split, SplitError, stage_sizes
from app.calc.optimize.optimization import (
    Asked,
    Better,
    Figure,
    Level,
    Optimization,
    Quantity,
    Row,
    Spec,
    Variants,
    refusal,
)
from app.calc.optimize.sides import (
    ALIKE,
    ROOM_COLUMN,
    Side,
    best_level,
    figure,
    figures,
    row,
    served_figures,
    side_of,
    working,
)
from app.calc.quantity import quantity, significant
from app.calc.sweep import MEASURED_PARTS, POOL, forgetting, patch_of
from app.calc.time.operators import decode_operators

GPUS = Quantity("gpus", "GPUs", "", read=lambda side: float(side.deployment.gpus))
PER_GPU = Quantity(
    "throughput_per_gpu",
    "Output tokens a second of each GPU",
    "tokens/s",
    better=Better.HIGHER,
    read=lambda side: side.tokens_per_s_per_gpu,
)
LINK = Quantity(
    "link_bytes", "Bytes over the link in a decode step", "B", better=Better.LOWER, read=lambda side: _link_bytes(side)
)
_SOURCE = "Patarasuk and Yuan, JPDC 69(2), 2009: a ring all-reduce after each mixer and each feed-forward part"


@dataclass(frozen=True, slots=True)
class _Way:
    """One way of using the GPUs: its name, how a replica is split, and how many replicas there are."""

    label: str
    split: Split
    replicas: int


@dataclass(frozen=True, slots=True)
class _Measured:
    """A way with its numbers, or why it has none."""

    way: _Way
    side: Side | None
    reason: str = ""
    is_here: bool = False


def _compare(asked: Asked) -> Optimization:
    """The scenario on its GPUs as they are split, and as they would be split best for its load."""
    here = asked.deployment
    if here.prefill_pool is not None:
        return _refused("Prompts have GPUs of their own here: each pool is split for itself, and not told together.")
    found = [_measured(asked, way) for way in _ways(here)]
    running = [
        (each, each.side) for each in found if each.side is not None and each.side.measures.memory.max_concurrency
    ]
    told = [pair for pair in running if pair[1].fits] or running
    if not told:
        return _refused(f"No way of splitting {_gpus(here):,} of these cards holds a single sequence.")
    best, on = _best(told)
    if best.is_here:
        other = _without(asked, found)
        if other is None:
            return _refused(f"{_named(best.way.split, best.way.replicas)} is the only way that holds it.")
        fewer = other.deployment.gpus < here.gpus
        name = _named(other.deployment.split, other.deployment.replicas)
        off, label, target = other, f"{'Back to' if fewer else 'Split it as'} {name}", other.deployment
    else:
        off, label, target = Side(here, asked.measures), f"Split it as {best.way.label}", on.deployment
    columns = _columns(asked)
    return Optimization(
        SPEC,
        best.is_here,
        label,
        _change(here, target),
        (_sentence(told),),
        _figures(off, on),
        _explained(told),
        Variants(columns, tuple(_row(each, columns) for each in found)),
    )


def _refused(reason: str) -> Optimization:
    return refusal(SPEC, reason, label="Several GPUs")


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


def _columns(asked: Asked) -> tuple[Quantity, ...]:
    level = best_level(asked.measures)
    return (
        Quantity("ttft", f"TTFT, {level}", "s", read=lambda side: side.ttft_s),
        Quantity("tpot", f"TPOT, {level}", "s", read=lambda side: side.tpot_s),
        Quantity("throughput", f"Throughput, {level}", "tokens/s", read=lambda side: side.tokens_per_s),
        Quantity(
            "throughput_per_gpu",
            f"Throughput of a GPU, {level}",
            "tokens/s",
            read=lambda side: side.tokens_per_s_per_gpu,
        ),
        ROOM_COLUMN,
        Quantity("link_bytes", "Link bytes a step", "B", read=_link_bytes),
    )


def _named(split: Split, replicas: int) -> str:
    """TP 4 × PP 2, two of them."""
    words = split.words.replace(", ", " × ")
    if not words:
        return f"{replicas:,} replicas" if replicas > 1 else "1 GPU"
    return f"{words}, {replicas:,} times" if replicas > 1 else words


def _best(told: list[tuple[_Measured, Side]]) -> tuple[_Measured, Side]:
    """The way with most throughput; the scenario's own where no other gives notably more."""
    best = max(told, key=lambda pair: pair[1].tokens_per_s)
    return next(
        (pair for pair in told if pair[0].is_here and pair[1].tokens_per_s >= (1 - ALIKE) * best[1].tokens_per_s), best
    )


def _measured(asked: Asked, way: _Way) -> _Measured:
    """The numbers of one way; the scenario's own are always told."""
    here = asked.deployment
    if way.split == here.split and way.replicas == here.replicas:
        return _Measured(way, Side(here, asked.measures), is_here=True)
    reason = _obstacle(here, way.split)
    if reason is not None:
        return _Measured(way, None, reason)
    bare, _ = forgetting(here, *MEASURED_PARTS, POOL)
    changed = replace(bare, split=way.split, replicas=way.replicas)
    if not memory(changed).max_concurrency:
        return _Measured(way, None, "does not fit")
    return _Measured(way, side_of(asked, changed))


def _obstacle(deployment: Deployment, split: Split) -> str | None:
    """Why the model cannot be split so; None where it can."""
    try:
        split.check()
        stage_sizes(deployment.architecture.n_layers, split.pipeline)
        deployment.architecture.split(split)
    except SplitError as error:
        return str(error)
    return None


def _without(asked: Asked, found: list[_Measured]) -> Side | None:
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


def _figures(off: Side, on: Side) -> tuple[Figure, ...]:
    return (
        *figures((GPUS,), off, on),
        *served_figures(off, on),
        figure(PER_GPU, (off.tokens_per_s_per_gpu, on.tokens_per_s_per_gpu), _level((off, on))),
        *figures((LINK,), off, on),
    )


def _level(both: tuple[Side, Side]) -> Level:
    return Level.CEILING if any(side.measures.expected is None for side in both) else Level.EXPECTED


def _row(told: _Measured, columns: tuple[Quantity, ...]) -> Row:
    if told.side is None:
        return Row(told.way.label, (None,) * len(columns), told.is_here, told.reason)
    return row(columns, told.way.label, told.side, is_here=told.is_here)


def _sentence(told: list[tuple[_Measured, Side]]) -> str:
    """Which way is fastest for one user, which gives most at this load, and what all-reduces take."""
    n = max(side.deployment.gpus for _, side in told)
    alike = [pair for pair in told if pair[1].deployment.gpus == n]
    fastest, quick = min(alike, key=lambda pair: pair[1].tpot_s)
    best, most = max(alike, key=lambda pair: pair[1].tokens_per_s)
    pace, rate = quantity(quick.tpot_s, "s", 3), quantity(most.tokens_per_s_per_gpu, "tokens/s", 3)
    running = most.measures.memory.running_sequences
    load = f"{running:,} users" if running > 1 else "one user"
    yields = "it is also the one that yields" if best.way == fastest.way else f"{best.way.label} is the way that yields"
    text = (
        f"Of the ways to use {n:,} GPUs the fastest for each user is {fastest.way.label}, a token in {pace}; at {load} "
        f"{yields} most, {rate} of each GPU."
    )
    fewer = next((side for each, side in told if each.is_here and side.deployment.gpus < n), None)
    if fewer is not None:
        own, gpus = quantity(fewer.tokens_per_s_per_gpu, "tokens/s", 3), fewer.deployment.gpus
        which = "The scenario’s one GPU" if gpus == 1 else f"Each of the scenario’s {gpus:,}"
        text += f" {which} gives {own}."
    return f"{text}{_latency(alike)}"


def _latency(told: list[tuple[_Measured, Side]]) -> str:
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


def _explained(told: list[tuple[_Measured, Side]]) -> tuple[Explanation, ...]:
    best, most = _best(told)
    label = f"Throughput of each GPU, {best.way.label}"
    terms = (
        ("R", "output tokens a second of all of them", most.tokens_per_s, "tokens/s"),
        ("G", "GPUs", float(most.deployment.gpus), ""),
    )
    source = "Definition"
    found = [working("parallelism.per_gpu", label, "R ÷ G", terms, (most.tokens_per_s_per_gpu, "tokens/s", source))]
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


SPEC = Spec(
    "parallelism",
    "Over several GPUs",
    _compare,
    counts=("throughput",),
    shown=("tpot", "throughput_per_gpu"),
    limits=(
        "Hops between pipeline stages cost nothing here, nor does the exchange of context ranks (DCP).",
        "Routing is balanced: no expert is asked for more often than another. Exchanges between expert ranks are in "
        "what is expected, not in the ceiling nor in the bytes over the link.",
        "A link beyond the node is taken to be as fast as inside it.",
        "Replicas are given equally many requests; a real balancer leaves some of them waiting.",
    ),
)
