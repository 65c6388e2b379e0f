"""Rounds of readings to record, full of canaries wherever a reading may name a machine, an address or a person."""

from datetime import datetime
from typing import Any

from app.machine.probes.accelerator import CardReadings, MigInstance
from app.machine.probes.reading import Absence, Reading
from app.machine.probes.servers.readings import ServerReadings
from app.machine.probes.snapshot import HostReadings, Kind, ProbeSnapshot

CANARY = "canary-8d1f"
GIB = 1024**3


def cards(taken_at: datetime, **changes: Any) -> ProbeSnapshot:
    """A card without a reading of its temperature, and one that is split."""
    whole = CardReadings.of(
        0,
        "nvidia",
        Absence.NOT_SUPPORTED,
        uuid=Reading(f"GPU-{CANARY}"),
        name=Reading(f"{CANARY} accelerator"),
        throttle_reasons=Reading((CANARY,)),
        memory_used_bytes=Reading(10 * GIB, "B"),
        memory_total_bytes=Reading(80 * GIB, "B"),
        dram_activity_percent=Reading(41.5, "%"),
        tensor_activity_percent=Reading(float("nan"), "%"),
        gpu_utilization_percent=Reading(97, "%"),
        power_draw_w=Reading(412.345, "W"),
        sm_clock_mhz=Reading(1_755, "MHz"),
        pcie_lanes=Reading(16),
    )
    missing = Reading[Any].missing(Absence.NOT_SUPPORTED)
    instance = MigInstance(
        index=1,
        name=Reading(CANARY),
        memory_total_bytes=Reading(20 * GIB, "B"),
        memory_used_bytes=Reading(0, "B"),
        memory_free_bytes=Reading(20 * GIB, "B"),
        dram_activity_percent=missing,
        tensor_activity_percent=Reading(3.25, "%"),
    )
    split = CardReadings.of(
        1, "nvidia", Absence.MIG_ENABLED, mig_instances=(instance,), temperature_c=Reading(56, "°C")
    )
    return _snapshot("nvidia", "cards", taken_at, **{"cards": (whole, split), **changes})


def host(taken_at: datetime, **changes: Any) -> ProbeSnapshot:
    """The machine itself."""
    readings = HostReadings(
        cpu_percent=Reading(0.0, "%"),
        logical_cpus=Reading(64),
        memory_total_bytes=Reading(256 * GIB, "B"),
        memory_available_bytes=Reading(200 * GIB, "B"),
        swap_used_bytes=Reading(0, "B"),
    )
    return _snapshot("host", "host", taken_at, **{"host": readings, **changes})


def server(taken_at: datetime, **changes: Any) -> ProbeSnapshot:
    """A server that says little, under a name that its operator gave it."""
    readings = ServerReadings.of(
        "vllm",
        window_s=10.0,
        settings={"model": f"/home/{CANARY}/weights"},
        model_name=Reading(f"{CANARY}/model"),
        running=Reading(8.0, read_from=f"vllm:{CANARY}"),
        kv_cache_usage=Reading(0.25),
        output_tokens_per_s=Reading(812.5, "tokens/s"),
        ttft_p99_s=Reading(0.5, "s"),
        latency_p50_s=Reading(3.0, "s"),
    )
    return _snapshot(CANARY, "server", taken_at, **{"server": readings, "families": (CANARY,), **changes})


def round_of(taken_at: datetime) -> tuple[ProbeSnapshot, ...]:
    """Cards, the machine and a server at one instant."""
    return cards(taken_at), host(taken_at), server(taken_at)


def _snapshot(source: str, kind: Kind, taken_at: datetime, **changes: Any) -> ProbeSnapshot:
    values: dict[str, Any] = {
        "source": source,
        "label": f"{CANARY} on http://10.0.0.7:8000",
        "kind": kind,
        "state": "ok",
        "absence": None,
        "taken_at": taken_at,
        "driver_version": Reading(CANARY),
    }
    return ProbeSnapshot(**{**values, **changes})
