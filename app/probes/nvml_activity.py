"""How busy the memory and the tensor pipes are: NVML's GPM metrics, between two samples (Hopper and newer)."""

from collections.abc import Callable
from typing import Any

from app.probes.card import PERCENT
from app.probes.counter_rates import LONGEST_WINDOW_S, SHORTEST_WINDOW_S
from app.probes.nvml import Nvml
from app.probes.nvml_device import Device
from app.probes.plausible import share_percent
from app.probes.reading import Absence, Reading

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
