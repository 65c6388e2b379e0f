"""What an NVIDIA card's counters say between two samples: traffic on PCIe and NVLink, and how busy its units are."""

from collections.abc import Callable, Collection
from typing import Any

from app.machine.probes.accelerator import (
    BYTES,
    BYTES_PER_SECOND,
    LONGEST_WINDOW_S,
    PERCENT,
    SHORTEST_WINDOW_S,
    CounterMeter,
    share_percent,
    whole,
)
from app.machine.probes.nvml import ALL_LINKS, Device, Nvml
from app.machine.probes.reading import Absence, Reading

THROUGHPUT_EVERY_S = 2.0
"""How often the slow PCIe call is made: it waits for 20 ms, once for each direction."""

PCIE_CEILING_BYTES_PER_S = 1e12
NVLINK_CEILING_BYTES_PER_S = 2e13
COUNTER_CEILING = 2**63

# Constants of nvml.h. NVLink counts the payload, without the protocol, in KiB; PCIe counts bytes.
_NVLINK_SENT, _NVLINK_RECEIVED, _PCIE_SENT, _PCIE_RECEIVED = 138, 139, 197, 198
_SENT, _RECEIVED = 0, 1
_BYTES_PER_KIB = 1024
_BYTES_PER_KB = 1000

# Counters that "may wrap" wrap at 32 bits on some drivers, which a busy link fills many times a second. A count beyond
# that is proof of a wider one; until then the difference of two counts proves nothing.
_PROVES_A_WIDE_COUNTER = 2**32

_GENERATION_CEILING, _LANES_CEILING = 10, 32

COUNTER_FIELDS = ((_NVLINK_SENT, ALL_LINKS), (_NVLINK_RECEIVED, ALL_LINKS), _PCIE_SENT, _PCIE_RECEIVED)
"""The fields whose values `LinkMeters.rates` takes, in this order."""


def pcie_link(device: Device, *, integrated: bool) -> dict[str, Reading[int]]:
    """The present generation and number of lanes, by field.

    Both drop while a card idles. An integrated part has no such link, whatever its driver answers.
    """
    generation, lanes = (
        Absence.NOT_SUPPORTED if integrated else device.ask(function)
        for function in ("nvmlDeviceGetCurrPcieLinkGeneration", "nvmlDeviceGetCurrPcieLinkWidth")
    )
    return {
        "pcie_generation": whole(generation, "", ceiling=_GENERATION_CEILING),
        "pcie_lanes": whole(lanes, "", ceiling=_LANES_CEILING),
    }


class LinkMeters:
    """What one card sends and receives, as seen from the card, in bytes per second of `clock`."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._nvlink = [CounterMeter(clock, NVLINK_CEILING_BYTES_PER_S) for _ in range(2)]
        self._pcie = [CounterMeter(clock, PCIE_CEILING_BYTES_PER_S) for _ in range(2)]
        self._pcie_is_wide = False
        self._throughput: tuple[Any, Any] | None = None
        self._throughput_at = 0.0

    def rates(self, device: Device, counts: list[Any], *, integrated: bool, alive: bool) -> dict[str, Reading[float]]:
        """The rates by field, from the values of `COUNTER_FIELDS`; the card is asked for what those do not give.

        NVLink is the sum over all links, of the payload. PCIe is the difference of two counts where the counter is
        sure not to have wrapped, else what went over the link in 20 ms of the last two seconds; `read_from` says which.
        A throughput of zero is believed of a card that is `alive`.
        """
        *nvlink, pcie_sent, pcie_received = counts
        sent, received = (
            meter.rate(_bytes(count, _BYTES_PER_KIB)) for meter, count in zip(self._nvlink, nvlink, strict=True)
        )
        pcie = self._pcie_rates(device, (pcie_sent, pcie_received), integrated, alive)
        return {
            "nvlink_sent_bytes_per_s": sent,
            "nvlink_received_bytes_per_s": received,
            "pcie_sent_bytes_per_s": pcie[_SENT],
            "pcie_received_bytes_per_s": pcie[_RECEIVED],
        }

    def _pcie_rates(
        self, device: Device, counts: tuple[Any, Any], integrated: bool, alive: bool
    ) -> tuple[Reading[float], Reading[float]]:
        if integrated:
            none: Reading[float] = Reading.missing(Absence.NOT_SUPPORTED, BYTES_PER_SECOND)
            return none, none
        readings = [_bytes(count, 1) for count in counts]
        by_count = [meter.rate(reading) for meter, reading in zip(self._pcie, readings, strict=True)]
        self._pcie_is_wide = self._pcie_is_wide or any((r.value or 0) >= _PROVES_A_WIDE_COUNTER for r in readings)
        if self._pcie_is_wide and all(reading.value is not None for reading in readings):
            sent, received = (Reading(r.value, r.unit, r.absence, "PCIe byte counters") for r in by_count)
        else:
            sent, received = (
                _throughput(kilobytes_per_s, alive) for kilobytes_per_s in self._throughput_lately(device)
            )
        return sent, received

    def _throughput_lately(self, device: Device) -> tuple[Any, Any]:
        now = self._clock()
        if self._throughput is None or now - self._throughput_at >= THROUGHPUT_EVERY_S:
            self._throughput = (
                device.ask("nvmlDeviceGetPcieThroughput", _SENT),
                device.ask("nvmlDeviceGetPcieThroughput", _RECEIVED),
            )
            self._throughput_at = now
        return self._throughput


def _bytes(count: Any, bytes_each: int) -> Reading[int]:
    counted = whole(count, BYTES, ceiling=COUNTER_CEILING)
    return Reading(None if counted.value is None else counted.value * bytes_each, BYTES, counted.absence)


def _throughput(kilobytes_per_s: Any, alive: bool) -> Reading[float]:
    ceiling = int(PCIE_CEILING_BYTES_PER_S / _BYTES_PER_KB)
    rate = whole(kilobytes_per_s, BYTES_PER_SECOND, ceiling=ceiling, zero_is_absent=not alive)
    value = None if rate.value is None else float(rate.value * _BYTES_PER_KB)
    return Reading(value, BYTES_PER_SECOND, rate.absence, "nvmlDeviceGetPcieThroughput")


Activity = dict[str, Reading[float]]
"""Readings in % by the names of the fields that show them."""

# Metric numbers of nvml.h: of the multiprocessors' time busy, of their warps in flight, of the time in which any tensor
# pipe worked, and of the memory's bandwidth in use.
METRICS = {
    "sm_activity_percent": 2,
    "sm_occupancy_percent": 3,
    "tensor_activity_percent": 5,
    "dram_activity_percent": 10,
}
_METRICS_VERSION, _UNKNOWN_ERROR = 1, 999

_FOR_GOOD = frozenset({Absence.NOT_SUPPORTED, Absence.FUNCTION_NOT_FOUND})


def without_activity(absence: Absence) -> Activity:
    """No metric, and why."""
    return {name: Reading.missing(absence, PERCENT) for name in METRICS}


class ActivityMeter:
    """The activity of one card, or of one GPU instance of it, between each sample and the one before.

    Holds one sample of the driver's between two readings, and takes none unless it is read: sampling may disturb a
    profiler. A card that says that it has no such metrics is not asked again; one that says that it has them, or does
    not know, is believed only when a sample succeeds. `clock` is in seconds.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._sample: Any = None
        self._sampled_at = 0.0
        self._answer = without_activity(Absence.NEEDS_TWO_SAMPLES)
        self._refusal: Absence | None = None

    def read(self, device: Device, gpu_instance: int | None = None) -> Activity:
        """The activity since the last sample; samples less than 0.1 s apart say nothing, so the last answer stands."""
        if self._refusal is not None:
            return without_activity(self._refusal)
        now = self._clock()
        before = self._sample if device.nvml.holds(self._sample) else None
        if before is not None and now - self._sampled_at < SHORTEST_WINDOW_S:
            return self._answer
        sample = _sample(device, gpu_instance, first=before is None)
        try:
            if isinstance(sample, Absence):
                self._sample = None
                self._refusal = sample if sample in _FOR_GOOD else None
                return without_activity(sample)
            in_time = before is not None and now - self._sampled_at <= LONGEST_WINDOW_S
            self._sample, self._sampled_at = sample, now
            self._answer = _between(device, before, sample) if in_time else without_activity(Absence.NEEDS_TWO_SAMPLES)
            return self._answer
        finally:
            device.nvml.release(before)

    def release(self, nvml: Nvml) -> None:
        """Gives the sample back; the next reading is a first one."""
        nvml.release(self._sample)
        self._sample = None


def _sample(device: Device, gpu_instance: int | None, *, first: bool) -> Any:
    """A filled sample of the driver's, or an `Absence`."""
    if first:
        support = device.ask("nvmlGpmQueryDeviceSupport")
        if not isinstance(support, Absence) and not support.isSupportedDevice:
            return Absence.NOT_SUPPORTED
    sample = device.nvml.allocate("nvmlGpmSampleAlloc", "nvmlGpmSampleFree")
    if isinstance(sample, Absence):
        return sample
    if gpu_instance is None:
        answer = device.ask("nvmlGpmSampleGet", sample)
    else:
        answer = device.ask("nvmlGpmMigSampleGet", gpu_instance, sample)
    if isinstance(answer, Absence):
        device.nvml.release(sample)
        return answer
    return sample


def _between(device: Device, before: Any, sample: Any) -> Activity:
    """All metrics in one call; each has a status of its own."""
    nvml = device.nvml
    request = nvml.call("c_nvmlGpmMetricsGet_t")
    if isinstance(request, Absence):
        return without_activity(request)
    request.version, request.numMetrics = _METRICS_VERSION, len(METRICS)
    request.sample1, request.sample2 = before, sample
    for metric, number in zip(request.metrics, METRICS.values(), strict=False):
        # A metric that the driver passes over must not look like a success with the value zero.
        metric.metricId, metric.nvmlReturn = number, _UNKNOWN_ERROR
    answer = nvml.call("nvmlGpmMetricsGet", request)
    if isinstance(answer, Absence):
        return without_activity(answer)
    return {
        name: share_percent(nvml.absence_of(metric.nvmlReturn) or metric.value)
        for name, metric in zip(METRICS, request.metrics, strict=False)
    }


INSTANCE_LIMIT = 64
"""More MIG instances than any card can be split into."""


class CardState:
    """The meters of one card, and those of its MIG instances by their UUIDs."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._instances: dict[str, ActivityMeter] = {}
        self.links = LinkMeters(clock)
        self.activity = ActivityMeter(clock)

    def instance(self, uuid: str) -> ActivityMeter:
        """The meter of one MIG instance."""
        return self._instances.setdefault(uuid, ActivityMeter(self._clock))

    def keep_instances(self, uuids: Collection[str], nvml: Nvml) -> None:
        """Forgets the instances that are gone."""
        for uuid in self._instances.keys() - set(uuids):
            self._instances.pop(uuid).release(nvml)

    def release(self, nvml: Nvml) -> None:
        """Gives the driver back what it holds for this card."""
        self.activity.release(nvml)
        self.keep_instances((), nvml)


class CardStates:
    """The states of all cards that are there; a card that goes takes its own with it."""

    def __init__(self, nvml: Nvml, clock: Callable[[], float]) -> None:
        self._nvml, self._clock = nvml, clock
        self._states: dict[str, CardState] = {}

    def __len__(self) -> int:
        """How many cards are remembered."""
        return len(self._states)

    def of(self, uuid: str) -> CardState:
        """The state of one card, new for a card that was not there."""
        return self._states.setdefault(uuid, CardState(self._clock))

    def keep_only(self, uuids: Collection[str]) -> None:
        """Forgets the cards that are gone."""
        for uuid in self._states.keys() - set(uuids):
            self._states.pop(uuid).release(self._nvml)
