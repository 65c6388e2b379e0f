"""The probe of this machine's AMD cards: through ROCm's library where it is, and through the kernel's files."""

import platform
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

from app.machine.probes.accelerator import CardReadings, text
from app.machine.probes.amd_card import ENDS_THE_CARD, VENDOR, read_card
from app.machine.probes.amd_meters import CardMeters
from app.machine.probes.amd_smi import AmdSmi, figure
from app.machine.probes.amd_sysfs import DRM, NAMES, CardNames, KernelCard, find_cards, read_kernel_card
from app.machine.probes.host import MEMINFO, read_text
from app.machine.probes.reading import Absence, Reading, units_of
from app.machine.probes.snapshot import Kind, ProbeSnapshot, utc_now

CARD_LIMIT = 256
"""More cards and partitions than any machine holds: a driver that counts more is not believed."""

CARD_REST_S = 30.0
"""How long the library is used on after a card is lost; then it is opened afresh, for only that finds it again."""

_NEEDS_REST = frozenset({Absence.GPU_LOST, Absence.RESET_REQUIRED})

# Where the library cannot speak of a card, and the kernel may. Zeros and garbage are not among them: where the library
# reads the same files they would only be read again.
_UNSPOKEN = frozenset({Absence.NOT_SUPPORTED, Absence.FUNCTION_NOT_FOUND})

# What every card has: where the library tells all of it, the kernel is spared the same questions.
_USUAL = ("memory_used_bytes", "gpu_utilization_percent", "sm_clock_max_mhz", "memory_clock_mhz", "power_draw_w")

# What the library says of itself, when the kernel shows no card either, that tells more than that there is none.
_TELLING = frozenset({Absence.NO_CARDS, Absence.NO_PERMISSION, Absence.TIMEOUT, Absence.IMPLAUSIBLE})


class AmdProbe:
    """Reads every AMD card. Safe to call from several threads.

    First through amdsmi (the extra `amd` and ROCm's library); what it does not know of a card (on processors with
    graphics that is nearly everything), and all cards where it is missing, through the kernel's files.
    `driver_version.read_from` says which way was taken. Without either it answers calmly that there is no driver.

    `clock` is in seconds and monotonic, `now` the aware instant stamped on a snapshot; `sysfs` and `meminfo` are the
    kernel's files, `names` libdrm's list of names.
    """

    name = "amd"
    label = "AMD cards"
    kind: Kind = "cards"

    def __init__(
        self,
        *,
        clock: Callable[[], float] = time.monotonic,
        now: Callable[[], datetime] = utc_now,
        sysfs: Path = DRM,
        meminfo: Path = MEMINFO,
        names: Path = NAMES,
    ) -> None:
        self._clock, self._now, self._sysfs, self._meminfo = clock, now, sysfs, meminfo
        self._smi = AmdSmi(clock)
        self._names = CardNames(names)
        self._meters: dict[tuple[str | None, int], CardMeters] = {}
        self._reopen_at: float | None = None
        self._lock = threading.Lock()

    def snapshot(self) -> ProbeSnapshot:
        """All cards now, or the reason why there are none. Blocks for as long as the driver does; never raises."""
        with self._lock:
            try:
                return self._snapshot()
            except Exception:  # The last wall: a fault of ours must not take the page down either.
                return self._absent(Absence.UNKNOWN_ERROR)

    def close(self) -> None:
        """Shuts the library down; waits for a snapshot in progress."""
        with self._lock:
            self._meters.clear()
            self._reopen_at = None
            self._smi.close()

    def _snapshot(self) -> ProbeSnapshot:
        if self._reopen_at is not None and self._reopen_at <= self._clock():
            self._reopen_at = None
            self._smi.close()
        kernel = find_cards(self._sysfs)
        kernel_cards = [] if isinstance(kernel, Absence) else kernel[:CARD_LIMIT]
        handles = self._handles()
        cards = handles if isinstance(handles, Absence) else self._through_library(handles, kernel_cards)
        if not isinstance(cards, Absence) and not isinstance(handles, Absence):
            return self._ok(cards, self._library_version(handles[0]))
        if not kernel_cards:
            return self._absent(_why_none(cards if isinstance(cards, Absence) else None, kernel))
        return self._ok(
            tuple(read_kernel_card(card, index, self._names, self._meminfo) for index, card in enumerate(kernel_cards)),
            self._kernel_version(),
        )

    def _handles(self) -> list[Any] | Absence:
        handles = self._smi.call("amdsmi_get_processor_handles")
        if isinstance(handles, Absence):
            self._smi.drop(handles)
            return handles
        if not isinstance(handles, list) or len(handles) > CARD_LIMIT:
            return Absence.IMPLAUSIBLE
        return handles or Absence.NO_CARDS

    def _through_library(
        self, handles: list[Any], kernel_cards: Sequence[KernelCard]
    ) -> tuple[CardReadings, ...] | Absence:
        cards = tuple(self._card(index, handle, kernel_cards) for index, handle in enumerate(handles))
        fault = cards[0].fault
        if fault is not None and fault not in _NEEDS_REST and all(card.fault is fault for card in cards):
            self._smi.drop(fault)  # It is the library or the driver, not a card.
            return fault
        if any(card.fault is not None for card in cards) and self._reopen_at is None:
            self._reopen_at = self._clock() + CARD_REST_S
        present = {(card.uuid.value, card.index) for card in cards}
        self._meters = {key: meters for key, meters in self._meters.items() if key in present}
        return cards

    def _card(self, index: int, handle: object, kernel_cards: Sequence[KernelCard]) -> CardReadings:
        uuid = text(self._smi.call("amdsmi_get_gpu_device_uuid", handle))
        if uuid.absence in ENDS_THE_CARD:
            return CardReadings.unreadable(index, VENDOR, uuid.absence)
        address = self._smi.call("amdsmi_get_gpu_device_bdf", handle)
        by_kernel = next((card for card in kernel_cards if card.pci_address == address), None)
        # Partitions of one card may share its UUID.
        meters = self._meters.setdefault((uuid.value, index), CardMeters(self._clock))
        card, is_whole = read_card(
            self._smi,
            handle,
            index,
            uuid=uuid,
            meters=meters,
            revision=lambda: None if by_kernel is None else by_kernel.metrics_revision,
            meminfo=self._meminfo,
        )
        if by_kernel is None or card.fault is not None or not is_whole or _is_told(card):
            return card
        return completed(card, read_kernel_card(by_kernel, index, self._names, self._meminfo))

    def _library_version(self, handle: object) -> Reading[str]:
        version = text(figure(self._smi.call("amdsmi_get_gpu_driver_info", handle), "driver_version"))
        return Reading(version.value, "", version.absence, "amdsmi")

    def _kernel_version(self) -> Reading[str]:
        # Only a driver that was installed apart from the kernel has a version of its own.
        version = text(read_text(self._sysfs.parent.parent / "module" / "amdgpu" / "version"))
        value = text(f"Linux {platform.release()}").value if version.value is None else version.value
        return Reading(value, "", None, "sysfs")

    def _ok(self, cards: tuple[CardReadings, ...], driver_version: Reading[str]) -> ProbeSnapshot:
        return ProbeSnapshot(
            source=self.name,
            label=self.label,
            kind=self.kind,
            state="ok",
            absence=None,
            taken_at=self._now(),
            driver_version=driver_version,
            cards=cards,
        )

    def _absent(self, absence: Absence) -> ProbeSnapshot:
        return ProbeSnapshot.absent(self.name, self.label, self.kind, absence, self._now)


def _is_told(card: CardReadings) -> bool:
    return all(getattr(card, name).absence not in _UNSPOKEN for name in _USUAL)


def completed(card: CardReadings, by_kernel: CardReadings) -> CardReadings:
    """The card, with the kernel's reading wherever the library has none to offer and the kernel has.

    But not its key: the kernel's is of another form, and the meters go by the library's.
    """
    additions: dict[str, Any] = {}
    for name in units_of(CardReadings).keys() - {"uuid"}:
        ours, theirs = getattr(card, name), getattr(by_kernel, name)
        if ours.absence in _UNSPOKEN and theirs.value is not None:
            additions[name] = theirs
    return replace(card, **additions)


def _why_none(library: Absence | None, kernel: list[KernelCard] | Absence) -> Absence:
    """Why there is no card: what the library says if that tells anything, else that there is no driver.

    A missing package is no reason where the kernel shows that no card is there either.
    """
    if library in _TELLING:
        return library
    return Absence.NO_PERMISSION if kernel is Absence.NO_PERMISSION else Absence.NO_DRIVER
