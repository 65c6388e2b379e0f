"""Rounds of readings for the tests of the live page: cards and servers with the values that a test names."""

from datetime import UTC, datetime, timedelta
from typing import Any

from app.machine.probes.accelerator import CardReadings
from app.machine.probes.reading import Absence, Reading
from app.machine.probes.servers.readings import ServerReadings
from app.machine.probes.snapshot import HostReadings, ProbeSnapshot

MIB = 2**20
TAKEN_AT = datetime(2026, 11, 29, 12, 34, 56, tzinfo=UTC)
H100: dict[str, Any] = {
    "name": "NVIDIA H100 80GB HBM3",
    "memory_total_bytes": 81_559 * MIB,
    "memory_used_bytes": 20 * 1024 * MIB,
    "peak_bandwidth_bytes_per_s": 3.352e12,
}


def reading(value: Any) -> Reading[Any]:
    """A reading of the value, or missing for the reason."""
    return Reading.missing(value) if isinstance(value, Absence) else Reading(value)


def card(index: int = 0, **values: Any) -> CardReadings:
    """An H100 of which these are read besides."""
    readings: dict[str, Any] = {
        name: reading(value) for name, value in (H100 | {"uuid": f"GPU-canary-{index}"} | values).items()
    }
    return CardReadings.of(index, "NVIDIA", Absence.NOT_SUPPORTED, **readings)


def cards(*found: CardReadings, age_s: float = 0.0) -> ProbeSnapshot:
    """The snapshot of a driver with these cards."""
    return ProbeSnapshot(
        source="nvidia",
        label="NVIDIA cards",
        kind="cards",
        state="ok",
        absence=None,
        taken_at=TAKEN_AT - timedelta(seconds=age_s),
        driver_version=Reading("580.95.05"),
        cards=found,
    )


def server(kind: str = "vllm", settings: dict[str, str] | None = None, **values: Any) -> ServerReadings:
    """A server of which these are read."""
    readings: dict[str, Any] = {
        name: Reading(value, read_from=f"{kind}:{name}") if not isinstance(value, Absence) else Reading.missing(value)
        for name, value in values.items()
    }
    return ServerReadings.of(kind, window_s=15.0, settings=settings, **readings)


def served(found: ServerReadings, number: int = 1, label: str = "gpu-host-7", age_s: float = 0.0) -> ProbeSnapshot:
    """The snapshot of a server that its operator called by the name of a host."""
    return ProbeSnapshot(
        source=f"server-{number}",
        label=label,
        kind="server",
        state="ok",
        absence=None,
        taken_at=TAKEN_AT - timedelta(seconds=age_s),
        driver_version=Reading("0.11.0"),
        server=found,
    )


def host() -> ProbeSnapshot:
    """The snapshot of a machine."""
    readings = HostReadings(
        Reading(12.5, "%"), Reading(16), Reading(64 * 2**30, "B"), Reading(40 * 2**30, "B"), Reading(0, "B")
    )
    return ProbeSnapshot(
        source="host",
        label="This machine",
        kind="host",
        state="ok",
        absence=None,
        taken_at=TAKEN_AT,
        driver_version=Reading.missing(Absence.NOT_REPORTED),
        host=readings,
    )


LLAMA: dict[str, Any] = {
    "model_name": "meta-llama/Llama-3.1-8B-Instruct",
    "running": 12.0,
    "waiting": 0.0,
    "kv_cache_usage": 0.04,
    "mean_prompt_tokens": 980.0,
    "mean_output_tokens": 210.0,
    "output_tokens_per_s": 1500.0,
    "prompt_tokens_per_s": 7000.0,
    "ttft_p50_s": 0.045,
    "ttft_p99_s": 0.12,
    "itl_p50_s": 0.0071,
    "itl_p99_s": 0.03,
    "itl_mean_s": 0.0078,
    "latency_p50_s": 1.7,
}
"""A server of Llama-3.1-8B under a light load."""
