"""One measurement from the question to the file: is the card there and free, run the worker, note the card's state."""

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime
from importlib.util import find_spec
from pathlib import Path

from app.machine.peaks.outcome import Fault, MeasureError, Outcome, Progress
from app.machine.peaks.plan import LIBRARIES, MOST_HELD_FRACTION, Plan
from app.machine.peaks.result import CardState, MeasuredRoofs, RoofStore
from app.machine.peaks.runner import WORKER, Limits, held, machine_lock, run_worker, worker_environment
from app.machine.probes.accelerator import CardReadings, text
from app.machine.probes.nvidia import VENDOR as NVIDIA
from app.machine.probes.reading import Absence
from app.machine.probes.snapshot import ProbeSnapshot, utc_now

Readings = Callable[[], Awaitable[Sequence[ProbeSnapshot]]]
"""Asks the probes: what `Sampler.latest` does."""


class NotKeptError(MeasureError):
    """The card was measured, and `roofs` are what came of it; the file could not be written."""

    def __init__(self, roofs: MeasuredRoofs) -> None:
        self.roofs = roofs
        super().__init__(Fault.NOT_KEPT)


def installed_libraries() -> tuple[str, ...]:
    """Which libraries could measure, by their being there: none of them is loaded into this process."""

    def is_there(name: str) -> bool:
        try:
            return find_spec(name) is not None
        except (ImportError, ValueError):
            return False

    return tuple(name for name in LIBRARIES if is_there(name))


@dataclass(frozen=True, slots=True, kw_only=True)
class Rig:
    """What a measurement rests on: the probes, where results go, which libraries there are.

    `plan` is the pattern of every plan; device, time and libraries are filled in. `lock`, `environment`, `limits` and
    `command` are those of the worker; `watch_every_s` is how often the card is looked at while it works.
    """

    readings: Readings
    store: RoofStore
    libraries: tuple[str, ...] = field(default_factory=installed_libraries)
    plan: Plan = field(default_factory=Plan)
    lock: Path = field(default_factory=machine_lock)
    environment: Mapping[str, str] = field(default_factory=lambda: os.environ)
    limits: Limits | None = None
    command: Sequence[str] = WORKER
    watch_every_s: float = 1.0
    now: Callable[[], datetime] = utc_now


async def measure(
    rig: Rig,
    device: int,
    seconds: float,
    *,
    admitted: Callable[[], None] = lambda: None,
    report: Callable[[Progress], None] = lambda _: None,
) -> MeasuredRoofs:
    """The roofs of the card that the driver calls `device`, kept in the store. `admitted` is called once it may begin.

    Raises:
        MeasureError: it was refused, or nothing came of it; nothing was kept.
        NotKeptError: the file could not be written.
        ValueError: there can be no such device or time.
    """
    plan = replace(rig.plan, device=device, seconds=seconds, libraries=rig.libraries)
    if not rig.libraries:
        raise MeasureError(Fault.NO_LIBRARY)
    with held(rig.lock) as lock_descriptor:
        seen = _Seen.of(await rig.readings(), device)
        seen.refuse()
        admitted()
        if seen.card is not None and seen.card.unified_memory:
            plan = replace(plan, most_held_fraction=None)
        if seen.uuid is not None:
            plan = replace(plan, device=0)
        async with _watched(rig, device) as states:
            environment = worker_environment(rig.environment, seen.uuid)
            outcome = await run_worker(
                plan, environment, report, limits=rig.limits, lock_descriptor=lock_descriptor, command=rig.command
            )
        after = _Seen.of(await rig.readings(), device)
        roofs = _roofs(outcome, seen, max(states, key=_power_w, default=None), after, rig.now())
        try:
            await asyncio.to_thread(rig.store.add, roofs)
        except OSError as error:
            raise NotKeptError(roofs) from error
    return roofs


@dataclass(frozen=True, slots=True)
class _Seen:
    """What the probes say of the card: its readings, or why there are none."""

    card: CardReadings | None
    absence: Absence
    count: int | None = None  # of the cards that a driver shows; None where none answers
    driver_version: str | None = None

    @classmethod
    def of(cls, snapshots: Sequence[ProbeSnapshot], device: int) -> "_Seen":
        """Of the first driver that answers: a machine has cards of one vendor, or measures those of the first."""
        absences = []
        for snapshot in snapshots:
            if snapshot.kind == "cards" and snapshot.state == "ok":
                card = next((card for card in snapshot.cards if card.index == device), None)
                return cls(card, Absence.NOT_REPORTED, len(snapshot.cards), snapshot.driver_version.value)
            if snapshot.kind == "cards" and snapshot.absence is not None:
                absences.append(snapshot.absence)
        return cls(None, absences[0] if absences else Absence.NOT_INSTALLED)

    def refuse(self) -> None:
        """Nothing, where the card may be measured. Without a driver to ask, the worker looks for itself."""
        if self.card is not None:
            _refuse(self.card)
        elif self.count is not None:
            raise MeasureError(Fault.NO_SUCH_CARD, str(self.count))

    @property
    def uuid(self) -> str | None:
        """The key by which CUDA can be told to show this card alone."""
        return self.card.uuid.value if self.card is not None and self.card.vendor == NVIDIA else None

    @property
    def state(self) -> CardState:
        return CardState.unknown(self.absence) if self.card is None else CardState.of(self.card)


def _refuse(card: CardReadings) -> None:
    if card.fault is not None:
        raise MeasureError(Fault.CARD_FAULT, card.fault.message)
    if card.mig_enabled.value:
        raise MeasureError(Fault.MIG_ENABLED)
    if card.unified_memory:
        # What others hold is the machine's memory; only what runs says that the card is in use.
        ran = card.gpu_utilization_percent.value
        if ran is not None and ran > 100 * MOST_HELD_FRACTION:
            raise MeasureError(Fault.CARD_IN_USE, f"something ran on it for {ran:.0f} % of the time")
        return
    used, total = card.memory_used_bytes.value, card.memory_total_bytes.value
    if used is not None and total and used > MOST_HELD_FRACTION * total:
        raise MeasureError(Fault.CARD_IN_USE, f"{100 * used / total:.0f} % of its memory")


@asynccontextmanager
async def _watched(rig: Rig, device: int) -> AsyncIterator[list[CardState]]:
    """The card's states while the body runs, one each `watch_every_s`."""
    states: list[CardState] = []

    async def watch() -> None:
        while True:
            await asyncio.sleep(rig.watch_every_s)
            states.append(_Seen.of(await rig.readings(), device).state)

    watching = asyncio.create_task(watch(), name="microbenchmark-watch")
    try:
        yield states
    finally:
        watching.cancel()
        # A card that is lost while it works ends the watching, and the worker by itself.
        await asyncio.gather(watching, return_exceptions=True)


def _power_w(state: CardState) -> float:
    return -1.0 if state.power_draw_w.value is None else state.power_draw_w.value


def _roofs(
    outcome: Outcome, seen: _Seen, under_load: CardState | None, after: _Seen, measured_at: datetime
) -> MeasuredRoofs:
    name, total = text(outcome.card_name).value, outcome.memory_total_bytes
    before_state, after_state = seen.state, after.state
    under_load = under_load or CardState.unknown(Absence.NOT_REPORTED)
    if seen.uuid is not None and seen.card is not None:
        name, total = seen.card.name.value or name, seen.card.memory_total_bytes.value or total
    elif seen.card is not None and seen.card.name.value != name:
        # Without a key nobody knows whether the library counts cards as the driver does.
        before_state = under_load = after_state = CardState.unknown(Absence.NOT_REPORTED)
    driver = {} if seen.driver_version is None else {"driver": seen.driver_version}
    versions = {text(part).value or "": text(version).value or "" for part, version in outcome.versions.items()}
    try:
        return MeasuredRoofs(
            card_name=name or "",
            memory_total_bytes=total,
            measured_at=measured_at,
            library=outcome.library,
            versions=versions | driver,
            before=before_state,
            under_load=under_load,
            after=after_state,
            streams=outcome.streams,
            products=outcome.products,
            skipped=outcome.skipped,
        )
    except ValueError as error:
        raise MeasureError(Fault.GARBLED) from error
