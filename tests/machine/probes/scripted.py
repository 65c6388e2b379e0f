"""A probe that does as a test tells it, and proof that nothing of the sampler is left running."""

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime

from app.machine.probes.reading import Absence, Reading
from app.machine.probes.snapshot import Kind, ProbeSnapshot


class ScriptedProbe:
    """Counts its calls, and those at the same time; `act` decides what a call does."""

    name = "scripted"
    label = "a scripted source"
    kind: Kind = "cards"

    def __init__(self, act: Callable[[], Absence | None] = lambda: None) -> None:
        self.act = act
        self.calls = self.closed = self.at_once = self.most_at_once = 0

    def snapshot(self) -> ProbeSnapshot:
        self.calls += 1
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        call = self.calls
        try:
            absence = self.act()
        finally:
            self.at_once -= 1
        if absence is not None:
            return ProbeSnapshot.absent(self.name, self.label, self.kind, absence)
        return ProbeSnapshot(
            source=self.name,
            label=self.label,
            kind=self.kind,
            state="ok",
            absence=None,
            taken_at=datetime.now(UTC),
            driver_version=Reading(str(call)),
        )

    def close(self) -> None:
        self.closed += 1


def held_by(release: threading.Event) -> Callable[[], None]:
    """A driver call that hangs until it is released."""

    def hang() -> None:
        release.wait(20)

    return hang


def probe_threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name.startswith("probe-")]


async def settled(condition: Callable[[], bool], within_s: float = 2.0) -> bool:
    deadline = time.monotonic() + within_s
    while not condition() and time.monotonic() < deadline:
        await asyncio.sleep(0.005)
    return condition()


@asynccontextmanager
async def nothing_left_behind() -> AsyncIterator[None]:
    tasks, threads = asyncio.all_tasks(), probe_threads()
    yield
    assert await settled(lambda: asyncio.all_tasks() <= tasks)
    assert await settled(lambda: probe_threads() == threads)
