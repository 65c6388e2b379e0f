"""How the tests run the worker over a card that does not exist, and what a probe would say of one."""

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from app.machine.peaks.measure import Rig
from app.machine.peaks.outcome import Progress
from app.machine.peaks.result import RoofStore
from app.machine.peaks.runner import worker_environment
from app.machine.probes.accelerator import CardReadings
from app.machine.probes.nvidia import VENDOR as NVIDIA
from app.machine.probes.reading import Absence, Reading
from app.machine.probes.snapshot import ProbeSnapshot, utc_now

FAKES = Path(__file__).parent / "fakes"
NAME = "NVIDIA H100 80GB HBM3"
TOTAL_BYTES = 85_520_809_984
UUID = "GPU-8f6e8a4c-0000-1111-2222-333344445555"


def own_environment(**card: Any) -> dict[str, str]:
    """The environment of a server beside which the fake libraries are installed, with what the card is told to be."""
    secrets = {"TOKENROOF_OPERATOR_TOKEN": "hush", "HF_TOKEN": "hush", "NVIDIA_API_KEY": "hush"}
    return os.environ | secrets | {"PYTHONPATH": str(FAKES), "TORCH_FAKE_CARD": json.dumps(card)}


def environment(**card: Any) -> dict[str, str]:
    """What of it the worker is given."""
    return worker_environment(own_environment(**card), None)


def no_report(_: Progress) -> None:
    """Nobody listens."""


def card(index: int = 0, **changed: Any) -> CardReadings:
    """An H100 at rest, but for what is changed."""
    readings: dict[str, Reading[Any]] = {
        "uuid": Reading(UUID),
        "name": Reading(NAME),
        "mig_enabled": Reading(False),
        "memory_total_bytes": Reading(TOTAL_BYTES, "B"),
        "memory_used_bytes": Reading(7_800_000, "B"),
        "gpu_utilization_percent": Reading(0, "%"),
        "sm_clock_mhz": Reading(1980, "MHz"),
        "memory_clock_mhz": Reading(2619, "MHz"),
        "power_draw_w": Reading(70.0, "W"),
        "temperature_c": Reading(31, "°C"),
        "throttle_reasons": Reading(("gpu_idle",)),
    }
    others = {name: changed.pop(name) for name in ("unified_memory", "fault", "vendor") if name in changed}
    return CardReadings.of(index, others.pop("vendor", NVIDIA), Absence.NOT_SUPPORTED, **others, **(readings | changed))


def seen(*cards: CardReadings) -> tuple[ProbeSnapshot, ...]:
    """A round of the probes: a driver that shows the cards, and another that is not there."""
    return (
        ProbeSnapshot(
            source="nvidia",
            label="NVIDIA cards",
            kind="cards",
            state="ok",
            absence=None,
            taken_at=utc_now(),
            driver_version=Reading("580.95.05"),
            cards=cards,
        ),
        ProbeSnapshot.absent("amd", "AMD cards", "cards", Absence.NO_DRIVER),
    )


def nothing_seen() -> tuple[ProbeSnapshot, ...]:
    """A round without any driver."""
    return (ProbeSnapshot.absent("nvidia", "NVIDIA cards", "cards", Absence.NO_DRIVER),)


def rig(folder: Path, *rounds: Sequence[ProbeSnapshot], told: dict[str, Any] | None = None, **more: Any) -> Rig:
    """A rig over the fakes: `rounds` are what the probes say, one after the other and then the last for ever."""
    left = list(rounds or (seen(card()),))

    async def readings() -> Sequence[ProbeSnapshot]:
        return left.pop(0) if len(left) > 1 else left[0]

    given: dict[str, Any] = {
        "libraries": ("torch",),
        "lock": folder / "lock",
        "environment": own_environment(**(told or {})),
    }
    return Rig(readings=readings, store=RoofStore(folder), **(given | more))
