"""The probe of this machine's NVIDIA GPUs: one GPU field by field, and which NVML call gives each."""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from app.machine.probes.accelerator import (
    CELSIUS,
    PERCENT,
    WATTS,
    CardReadings,
    text,
    whole,
)
from app.machine.probes.host import MEMINFO, is_integrated
from app.machine.probes.nvml import Device, Nvml
from app.machine.probes.nvml_clocks import SYSFS, clocks, gpu_load, gpu_temperature, peak_bandwidth, throttle_reasons
from app.machine.probes.nvml_links import device_memory, machine_memory, mig_instances, mig_mode
from app.machine.probes.nvml_meters import COUNTER_FIELDS, CardState, CardStates, pcie_link, without_activity
from app.machine.probes.reading import Absence, Reading
from app.machine.probes.snapshot import Kind, ProbeSnapshot, utc_now

VENDOR = "NVIDIA"

# Above these a figure is a sentinel or garbage: far over any part sold, far under 2^32 − 1.
POWER_CEILING_MW = 20_000_000
TEMPERATURE_CEILING_C = 150
CAPABILITY_CEILING = 99

# Constants of nvml.h.
_TEMPERATURE_GPU, _MEMORY_TEMPERATURE = 0, 82
_ADDRESSING_MODES = ("none", "HMM", "ATS")

_SIGNS_OF_LIFE = ("sm_clock_mhz", "memory_clock_mhz", "power_draw_w", "temperature_c")

_Readings = dict[str, Reading[Any]]


@dataclass(frozen=True, slots=True)
class KernelFiles:
    """Where the kernel tells of a machine whose memory and GPU are one with it."""

    meminfo: Path = MEMINFO
    sysfs: Path = SYSFS


def read_card(device: Device, index: int, states: CardStates, files: KernelFiles) -> CardReadings:
    """All readings of the card at `index` of the driver's order; `fault` is set where the card itself cannot be read.

    Power from mW, temperature in °C, clocks in MHz, utilisation in % of the driver's sample window (1/6 to 1 s), rates
    and activity since the last reading of the same card, by its UUID in `states`. Source: the NVML reference; the calls
    are those of nvidia-ml-py 13. No list of processes is read at all: a container would be shown other people's.
    """
    if device.fault is not None:
        return CardReadings.unreadable(index, VENDOR, device.fault)
    uuid, name = text(device.ask("nvmlDeviceGetUUID")), text(device.ask("nvmlDeviceGetName"))
    state = states.of(uuid.value) if uuid.value is not None else None
    mig, integrated = mig_mode(device), is_integrated(name.value)
    split = mig.value is True
    said = device_memory(device)
    readings: _Readings = {"uuid": uuid, "name": name, "mig_enabled": mig, **clocks(device), **_power_and_heat(device)}
    # A driver that answers zero to everything is to be told from a card that idles.
    alive = said.total.value is not None or any(readings[sign].value is not None for sign in _SIGNS_OF_LIFE)
    readings |= {
        "compute_capability": _compute_capability(device),
        "addressing_mode": _addressing_mode(device, alive=alive),
        "peak_bandwidth_bytes_per_s": peak_bandwidth(readings["memory_clock_max_mhz"], readings["memory_bus_bits"]),
        "throttle_reasons": throttle_reasons(device, alive=alive),
        **_utilization(device, split=split, alive=alive),
        **pcie_link(device, integrated=integrated),
        **_fields_and_rates(device, state, integrated=integrated, alive=alive),
        **_activity(device, state, split=split),
    }
    if integrated:
        readings |= _from_the_kernel(readings, files.sysfs)
    instances = mig_instances(device, state) if split else ()
    shared = machine_memory(device, said, files.meminfo) if integrated and not split else None
    return CardReadings.of(
        index,
        VENDOR,
        uuid.absence or Absence.NOT_SUPPORTED,  # What is counted between two snapshots is kept by the card's UUID.
        unified_memory=shared is not None,
        fault=device.fault,
        mig_instances=instances,
        **readings,
        **(shared or said).by_field(),
    )


def _fields_and_rates(device: Device, state: CardState | None, *, integrated: bool, alive: bool) -> _Readings:
    """The temperature of the memory and the rates of the links, from one call for all field values."""
    memory_temperature, *counts = device.field_values(_MEMORY_TEMPERATURE, *COUNTER_FIELDS)
    rates = state.links.rates(device, counts, integrated=integrated, alive=alive) if state is not None else {}
    return {"memory_temperature_c": whole(memory_temperature, CELSIUS, ceiling=TEMPERATURE_CEILING_C), **rates}


def _activity(device: Device, state: CardState | None, *, split: bool) -> _Readings:
    """A split card has none as a whole; its instances have."""
    if split:
        if state is not None:
            state.activity.release(device.nvml)
        return {**without_activity(Absence.MIG_ENABLED)}
    if state is None:
        return {}
    state.keep_instances((), device.nvml)
    return {**state.activity.read(device)}


def _utilization(device: Device, *, split: bool, alive: bool) -> _Readings:
    """Percent of the sample window; an idle zero is believed only of a card that answered something besides."""
    answer = Absence.MIG_ENABLED if split else device.ask("nvmlDeviceGetUtilizationRates")
    gpu, memory = (answer, answer) if isinstance(answer, Absence) else (answer.gpu, answer.memory)
    return {
        "gpu_utilization_percent": whole(gpu, PERCENT, ceiling=100, zero_is_absent=not alive),
        "memory_utilization_percent": whole(memory, PERCENT, ceiling=100, zero_is_absent=not alive),
    }


def _power_and_heat(device: Device) -> _Readings:
    temperature, _ = device.ask_newer_or_older(
        ("nvmlDeviceGetTemperatureV", _TEMPERATURE_GPU), ("nvmlDeviceGetTemperature", _TEMPERATURE_GPU)
    )
    return {
        "power_draw_w": _watts(device.ask("nvmlDeviceGetPowerUsage")),
        "power_limit_w": _watts(device.ask("nvmlDeviceGetEnforcedPowerLimit")),
        "temperature_c": whole(temperature, CELSIUS, ceiling=TEMPERATURE_CEILING_C),
    }


def _watts(answer: object) -> Reading[float]:
    milliwatts = whole(answer, "mW", ceiling=POWER_CEILING_MW)
    return Reading(None if milliwatts.value is None else milliwatts.value / 1000, WATTS, milliwatts.absence)


def _compute_capability(device: Device) -> Reading[str]:
    answer = device.ask("nvmlDeviceGetCudaComputeCapability")
    major, minor = (answer, answer) if isinstance(answer, Absence) else answer
    first = whole(major, "", ceiling=CAPABILITY_CEILING)
    second = whole(minor, "", ceiling=CAPABILITY_CEILING, zero_is_absent=False)
    absence = first.absence or second.absence
    return Reading(None, "", absence) if absence is not None else Reading(f"{first.value}.{second.value}")


def _addressing_mode(device: Device, *, alive: bool) -> Reading[str]:
    """Whether card and machine see each other's memory: not at all, by the kernel's HMM, or in hardware by ATS."""
    answer = device.ask("nvmlDeviceGetAddressingMode")
    mode = whole(answer, "", ceiling=len(_ADDRESSING_MODES) - 1, zero_is_absent=not alive)
    return Reading(None, "", mode.absence) if mode.value is None else Reading(_ADDRESSING_MODES[mode.value])


def _from_the_kernel(readings: _Readings, sysfs: Path) -> _Readings:
    """The load and the temperature of an integrated part, where its driver says neither."""
    asked = {"gpu_utilization_percent": gpu_load, "temperature_c": gpu_temperature}
    found = {name: ask(sysfs) for name, ask in asked.items() if readings[name].value is None}
    return {name: reading for name, reading in found.items() if reading.value is not None}


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
