"""What is kept of a round of readings: numbers by name, and nothing that tells which machine they are of."""

from collections.abc import Iterable, Iterator
from itertools import count
from typing import Any

from app.probes.card import CardReadings, MigInstance
from app.probes.host_readings import HostReadings
from app.probes.reading import units_of
from app.probes.servers.readings import ServerReadings
from app.probes.snapshot import ProbeSnapshot
from app.store.samples import Sample

CARD_FIGURES = (
    "memory_used_bytes",
    "memory_total_bytes",
    "dram_activity_percent",
    "tensor_activity_percent",
    "gpu_utilization_percent",
    "power_draw_w",
    "temperature_c",
    "sm_clock_mhz",
)
INSTANCE_FIGURES = CARD_FIGURES[:4]
HOST_FIGURES = ("cpu_percent", "memory_available_bytes")
SERVER_FIGURES = (
    "running",
    "waiting",
    "kv_cache_usage",
    "output_tokens_per_s",
    "prompt_tokens_per_s",
    "ttft_p50_s",
    "ttft_p99_s",
    "itl_p50_s",
    "itl_p99_s",
    "flops_per_s",
    "bytes_per_s",
)
UNITS: dict[str, str] = {
    name: units_of(kind)[name]
    for kind, names in (
        (CardReadings, CARD_FIGURES),
        (HostReadings, HOST_FIGURES),
        (ServerReadings, SERVER_FIGURES),
    )
    for name in names
}
"""The unit of each figure, "" where it is a count or a share, in the order in which figures are shown."""


def samples_of(snapshots: Iterable[ProbeSnapshot]) -> tuple[Sample, ...]:
    """A sample of each source that was read just now and has any of the figures.

    Sources are "nvidia/0" for a card, by the driver's order, "nvidia/0/1" for an instance on it, "host", and "server-1"
    for the first server of the round, whatever the operator calls it. An absent source, and one whose snapshot is an
    earlier one, gives nothing: what was not measured is not recorded.
    """
    numbers = count(1)
    named = [
        (f"server-{next(numbers)}" if snapshot.kind == "server" else snapshot.source, snapshot)
        for snapshot in snapshots
    ]
    return tuple(
        Sample(snapshot.taken_at, source, figures)
        for name, snapshot in named
        if snapshot.state == "ok" and snapshot.missed_polls == 0
        for source, figures in _parts_of(name, snapshot)
        if figures
    )


def _parts_of(name: str, snapshot: ProbeSnapshot) -> Iterator[tuple[str, dict[str, float]]]:
    for card in snapshot.cards:
        yield f"{name}/{card.index}", _present(card, CARD_FIGURES)
        for instance in card.mig_instances:
            yield f"{name}/{card.index}/{instance.index}", _present(instance, INSTANCE_FIGURES)
    if snapshot.host is not None:
        yield name, _present(snapshot.host, HOST_FIGURES)
    if snapshot.server is not None:
        yield name, _present(snapshot.server, SERVER_FIGURES)


def _present(
    readings: CardReadings | MigInstance | HostReadings | ServerReadings, names: Iterable[str]
) -> dict[str, float]:
    values: dict[str, Any] = {name: getattr(readings, name).value for name in names}
    return {name: value for name, value in values.items() if value is not None}
