"""Where the machine stands on the roofline, and where it stood in the last minute."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from app.calc.accelerator import Accelerator
from app.calc.dtypes import Dtype
from app.calc.evaluation import Evaluation
from app.live.used import Flow, counted_flow, server_flow
from app.probes.card import CardReadings
from app.probes.snapshot import ProbeSnapshot

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
    """The positions of one source in the last minute, oldest first. `read_from` says how they were come by."""

    source: str
    label: str
    read_from: str
    dots: tuple[Dot, ...]

    def document(self) -> dict[str, object]:
        """The JSON-ready form."""
        return {
            "source": self.source,
            "label": self.label,
            "read_from": self.read_from,
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
    found: Evaluation | None,
) -> list[Trail]:
    """The trail of each card that counts its activity, and of each server that tells its tokens or its FLOP.

    `accelerator` and `compute` say what 100 % of a card's activities are; `found` counts for servers that do not.
    """
    taken: dict[str, list[tuple[float, Flow, str]]] = {}
    now = max((snapshot.taken_at for each in rounds for snapshot in each), default=None)
    if now is None:
        return []
    step = -(-len(rounds) // MOST_DOTS)
    for each in reversed(rounds[::-1][::step]):  # the newest among them, whatever the step
        for snapshot in each:
            age_s = (now - snapshot.taken_at).total_seconds()
            if snapshot.missed_polls or age_s > TAIL_S:
                continue
            for source, label, flow in _flows(snapshot, accelerator, compute, found):
                seen = taken.setdefault(source, [])
                if not seen or seen[-1][0] != age_s:  # a server is asked less often than it is looked at
                    seen.append((age_s, flow, label))
    return [
        Trail(
            source,
            seen[-1][2],
            seen[-1][1].read_from,
            tuple(Dot(age_s, flow.flops_per_s, flow.bytes_per_s) for age_s, flow, _ in seen),
        )
        for source, seen in taken.items()
    ]


def _flows(
    snapshot: ProbeSnapshot, accelerator: Accelerator | None, compute: Dtype | None, found: Evaluation | None
) -> Iterable[tuple[str, str, Flow]]:
    if snapshot.server is not None:
        flow = server_flow(snapshot.server) or counted_flow(snapshot.server, found)
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
    return Flow(tensor / 100 * accelerator.peak(compute), dram / 100 * accelerator.bandwidth_bytes_per_s, GPM)
