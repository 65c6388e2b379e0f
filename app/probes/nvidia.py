"""The probe of this machine's NVIDIA cards, through NVML."""

import threading
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from pathlib import Path

from app.probes.card import CardReadings, ProbeSnapshot, utc_now
from app.probes.nvml import Nvml
from app.probes.nvml_card import VENDOR, read_card
from app.probes.plausible import text
from app.probes.reading import Absence
from app.probes.unified_memory import MEMINFO

CARD_LIMIT = 256
"""More cards than any machine holds: a driver that counts more is not believed."""

CARD_REST_S = 30.0
"""How long a card that is lost or needs a reset is left alone."""

_NEEDS_REST = frozenset({Absence.GPU_LOST, Absence.RESET_REQUIRED})


class NvidiaProbe:
    """Reads every NVIDIA card that the driver shows to this process. Safe to call from several threads.

    Without the binding or a driver it answers calmly with the reason, and asks again after a growing pause. A card that
    is lost keeps its last answer for `CARD_REST_S`; then NVML is opened afresh, for only that can bring it back.
    `clock` is in seconds and monotonic, `now` the aware instant stamped on a snapshot, `meminfo` the kernel's file.
    """

    name = "nvidia"

    def __init__(
        self,
        *,
        clock: Callable[[], float] = time.monotonic,
        now: Callable[[], datetime] = utc_now,
        meminfo: Path = MEMINFO,
    ) -> None:
        self._clock, self._now, self._meminfo = clock, now, meminfo
        self._nvml = Nvml(clock)
        self._resting: dict[int, tuple[float, CardReadings]] = {}
        self._lock = threading.Lock()

    def snapshot(self) -> ProbeSnapshot:
        """All cards now, or the reason why there are none. Blocks for as long as the driver does; never raises."""
        with self._lock:
            try:
                return self._snapshot()
            except Exception:  # The last wall: a fault of ours must not take the page down either.
                return ProbeSnapshot.absent(self.name, Absence.UNKNOWN_ERROR, self._now)

    def close(self) -> None:
        """Shuts NVML down; waits for a snapshot in progress."""
        with self._lock:
            self._resting.clear()
            self._nvml.close()

    def _snapshot(self) -> ProbeSnapshot:
        self._wake_rested_cards()
        count = self._nvml.call("nvmlDeviceGetCount")
        if isinstance(count, Absence):
            self._nvml.drop(count)
            return ProbeSnapshot.absent(self.name, count, self._now)
        if not 0 < count <= CARD_LIMIT:
            return ProbeSnapshot.absent(self.name, Absence.IMPLAUSIBLE if count else Absence.NO_CARDS, self._now)
        version = text(self._nvml.call("nvmlSystemGetDriverVersion"))
        cards = tuple(self._card(index) for index in range(count))
        fault = cards[0].fault
        if fault is not None and fault not in _NEEDS_REST and all(card.fault is fault for card in cards):
            # Every card refuses for one reason: it is the library or the container, not a card.
            self._nvml.drop(fault)
            return ProbeSnapshot.absent(self.name, fault, self._now)
        return ProbeSnapshot(self.name, "ok", None, version, cards, self._now())

    def _card(self, index: int) -> CardReadings:
        if index in self._resting:
            return self._resting[index][1]
        card = read_card(self._nvml, index, self._meminfo)
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
            self._nvml.close()
