"""The probe of this machine's NVIDIA cards, through NVML."""

import threading
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from pathlib import Path

from app.probes.card import CardReadings
from app.probes.kernel_file import MEMINFO
from app.probes.nvml import Device, Nvml
from app.probes.nvml_card import SYSFS, VENDOR, KernelFiles, read_card
from app.probes.nvml_meters import CardStates
from app.probes.plausible import text
from app.probes.reading import Absence
from app.probes.snapshot import Kind, ProbeSnapshot, utc_now

CARD_LIMIT = 256
"""More cards than any machine holds: a driver that counts more is not believed."""

CARD_REST_S = 30.0
"""How long a card that is lost or needs a reset is left alone."""

_NEEDS_REST = frozenset({Absence.GPU_LOST, Absence.RESET_REQUIRED})


class NvidiaProbe:
    """Reads every NVIDIA card that the driver shows to this process. Safe to call from several threads.

    Without the binding or a driver it answers calmly with the reason, and asks again after a growing pause. A card that
    is lost keeps its last answer for `CARD_REST_S`; then NVML is opened afresh, for only that can bring it back.
    `clock` is in seconds and monotonic, `now` the aware instant stamped on a snapshot, `meminfo` the kernel's file and
    `sysfs` its tree.
    """

    name = "nvidia"
    label = "NVIDIA cards"
    kind: Kind = "cards"

    def __init__(
        self,
        *,
        clock: Callable[[], float] = time.monotonic,
        now: Callable[[], datetime] = utc_now,
        meminfo: Path = MEMINFO,
        sysfs: Path = SYSFS,
    ) -> None:
        self._clock, self._now = clock, now
        self._files = KernelFiles(meminfo, sysfs)
        self._nvml = Nvml(clock)
        self._states = CardStates(self._nvml, clock)
        self._resting: dict[int, tuple[float, CardReadings]] = {}
        self._lock = threading.Lock()

    def snapshot(self) -> ProbeSnapshot:
        """All cards now, or the reason why there are none. Blocks for as long as the driver does; never raises."""
        with self._lock:
            try:
                return self._snapshot()
            except Exception:  # The last wall: a fault of ours must not take the page down either.
                return self._absent(Absence.UNKNOWN_ERROR)

    def close(self) -> None:
        """Shuts NVML down; waits for a snapshot in progress."""
        with self._lock:
            self._resting.clear()
            self._forget()
            self._nvml.close()

    def _snapshot(self) -> ProbeSnapshot:
        self._wake_rested_cards()
        count = self._nvml.call("nvmlDeviceGetCount")
        if isinstance(count, Absence):
            self._nvml.drop(count)
            return self._absent(count)
        if not 0 < count <= CARD_LIMIT:
            return self._absent(Absence.IMPLAUSIBLE if count else Absence.NO_CARDS)
        version = text(self._nvml.call("nvmlSystemGetDriverVersion"))
        cards = tuple(self._card(index) for index in range(count))
        fault = cards[0].fault
        if fault is not None and fault not in _NEEDS_REST and all(card.fault is fault for card in cards):
            # Every card refuses for one reason: it is the library or the container, not a card.
            self._nvml.drop(fault)
            return self._absent(fault)
        self._states.keep_only([card.uuid.value for card in cards if card.uuid.value is not None])
        return ProbeSnapshot(
            source=self.name,
            label=self.label,
            kind=self.kind,
            state="ok",
            absence=None,
            taken_at=self._now(),
            driver_version=version,
            cards=cards,
        )

    def _absent(self, absence: Absence) -> ProbeSnapshot:
        self._forget()  # What was counted before does not continue with another session of the library.
        return ProbeSnapshot.absent(self.name, self.label, self.kind, absence, self._now)

    def _forget(self) -> None:
        self._states.keep_only(())

    def _card(self, index: int) -> CardReadings:
        if index in self._resting:
            return self._resting[index][1]
        device = Device(self._nvml, self._nvml.call("nvmlDeviceGetHandleByIndex", index))
        card = read_card(device, index, self._states, self._files)
        if card.fault in _NEEDS_REST:
            # What was read before the card went is void with it; the name still says which card it was.
            lost = CardReadings.unreadable(index, VENDOR, card.fault)
            card = replace(lost, name=card.name, uuid=card.uuid)
            self._resting[index] = (self._clock() + CARD_REST_S, card)
        return card

    def _wake_rested_cards(self) -> None:
        now = self._clock()
        if any(until <= now for until, _ in self._resting.values()):
            self._resting.clear()
            self._forget()
            self._nvml.close()
