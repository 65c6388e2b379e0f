"""Where the machine stands on the roofline, and where it stood in the last minute."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import NamedTuple

from pydantic import ValidationError

from app.calc.accelerator import Accelerator
from app.calc.dtypes import Dtype
from app.calc.evaluate import Evaluation
from app.catalog.catalog import Catalog
from app.machine.live.machine import is_idle, under_load, workload_of
from app.machine.live.predicted import Flow, counted_flow, server_flow
from app.machine.probes.accelerator import CardReadings
from app.machine.probes.snapshot import ProbeSnapshot
from app.scenario.answer import answer
from app.scenario.refusal import ScenarioError
from app.scenario.scenario import Scenario

Counting = Callable[[ProbeSnapshot], Evaluation | None]
"""The evaluation for a server's snapshot; None where nothing is known of it, or no request runs."""

DIGITS = 2
LOADS_KEPT = 256
_Load = tuple[tuple[str, float], ...]


def counting_by(newest: Iterable[tuple[ProbeSnapshot, Scenario, Evaluation | None]], catalog: Catalog) -> Counting:
    """For a server's snapshot under the load of its newest one the evaluation that there is; for another its own.

    Loads are told apart by two digits: a dot of the tail is off by some hundredths at most, and what hardly differs is
    computed once.
    """
    known = {
        snapshot.source: (scenario.model_dump_json(), None if found is None else _load_of(snapshot), found)
        for snapshot, scenario, found in newest
    }

    def counted_with(snapshot: ProbeSnapshot) -> Evaluation | None:
        if snapshot.server is None or snapshot.source not in known or is_idle(snapshot.server):
            return None
        scenario, now, found = known[snapshot.source]
        load = _load_of(snapshot)
        return found if load == now else _evaluated(scenario, load, catalog)

    return counted_with


def _load_of(snapshot: ProbeSnapshot) -> _Load:
    workload = {} if snapshot.server is None else workload_of(snapshot.server)
    return tuple((name, _coarse(value)) for name, value in workload.items())


def _coarse(value: float) -> float:
    return type(value)(float(f"{value:.{DIGITS}g}"))


@lru_cache(maxsize=LOADS_KEPT)
def _evaluated(scenario: str, load: _Load, catalog: Catalog) -> Evaluation | None:
    try:
        return answer(under_load(Scenario.model_validate_json(scenario), dict(load)), catalog).evaluation
    except (ScenarioError, ValidationError):
        return None


TAIL_S = 60.0
MOST_DOTS = 90
"""Rounds that a tail is made of at most; where more were taken, evenly fewer are looked at."""
GPM = "DRAM and tensor activity"


@dataclass(frozen=True, slots=True)
class Dot:
    """One position: how long ago, and FLOP and bytes a second of one GPU."""

    age_s: float
    flops_per_s: float
    bytes_per_s: float

    @property
    def intensity_flops_per_byte(self) -> float:
        """FLOP of a byte."""
        return self.flops_per_s / self.bytes_per_s


@dataclass(frozen=True, slots=True)
class Trail:
    """The positions of one source in the last minute, oldest first. `read_from` says how they were come by; `is_over`
    that the source is not read any more, so that the last of them is where it stood and not where it stands.
    """

    source: str
    label: str
    read_from: str
    dots: tuple[Dot, ...]
    is_over: bool = False

    def document(self) -> dict[str, object]:
        return {
            "source": self.source,
            "label": self.label,
            "read_from": self.read_from,
            "is_over": self.is_over,
            "dots": [
                {
                    "age_s": dot.age_s,
                    "intensity_flops_per_byte": dot.intensity_flops_per_byte,
                    "flops_per_s": dot.flops_per_s,
                    "bytes_per_s": dot.bytes_per_s,
                }
                for dot in self.dots
            ],
        }


def trails(
    rounds: Sequence[Sequence[ProbeSnapshot]],
    accelerator: Accelerator | None,
    compute: Dtype | None,
    counting: Counting,
) -> list[Trail]:
    """The trail of each card that counts its activity, and of each server that tells its tokens or its FLOP.

    `accelerator` and `compute` say what 100 % of a card's activities are; `counting` counts for servers that do not.
    The last of `rounds` is the newest: a trail that does not reach it is over.
    """
    taken: dict[str, list[_Seen]] = {}
    now = max((snapshot.taken_at for each in rounds for snapshot in each), default=None)
    if now is None:
        return []
    step = -(-len(rounds) // MOST_DOTS)
    for each in reversed(rounds[::-1][::step]):  # the newest among them, whatever the step
        for snapshot in each:
            if snapshot.missed_polls or (now - snapshot.taken_at).total_seconds() > TAIL_S:
                continue
            for source, label, flow in _flows(snapshot, accelerator, compute, counting):
                seen = taken.setdefault(source, [])
                if not seen or seen[-1].taken_at != snapshot.taken_at:  # a server is asked less often than looked at
                    seen.append(_Seen(snapshot.source, snapshot.taken_at, label, flow))
    newest = {each.source: each.taken_at for each in rounds[-1] if each.state == "ok" and not each.stale}
    return [_trail(source, seen, now, newest) for source, seen in taken.items()]


class _Seen(NamedTuple):
    probe: str
    taken_at: datetime
    label: str
    flow: Flow


def _trail(source: str, seen: Sequence[_Seen], now: datetime, newest: Mapping[str, datetime]) -> Trail:
    last = seen[-1]
    dots = [Dot((now - each.taken_at).total_seconds(), each.flow.flops_per_s, each.flow.bytes_per_s) for each in seen]
    is_over = newest.get(last.probe) != last.taken_at
    return Trail(source, last.label, last.flow.read_from, tuple(dots), is_over)


def _flows(
    snapshot: ProbeSnapshot, accelerator: Accelerator | None, compute: Dtype | None, counting: Counting
) -> Iterable[tuple[str, str, Flow]]:
    if snapshot.server is not None:
        flow = server_flow(snapshot.server) or counted_flow(snapshot.server, counting(snapshot))
        if flow is not None and flow.flops_per_s > 0 and flow.bytes_per_s > 0:
            yield snapshot.source, snapshot.label, flow
    if accelerator is None or compute is None:
        return
    for card in snapshot.cards:
        flow = _card_flow(card, accelerator, compute)
        if flow is not None:
            yield f"{snapshot.source}-{card.index}", f"Card {card.index}", flow


def _card_flow(card: CardReadings, accelerator: Accelerator, compute: Dtype) -> Flow | None:
    dram, tensor = card.dram_activity_percent.value, card.tensor_activity_percent.value
    if not dram or not tensor or compute not in accelerator.peak_flops_per_s:
        return None
    return Flow(tensor / 100 * accelerator.peak(compute), dram / 100 * accelerator.bandwidth_bytes_per_s, GPM, GPM)
