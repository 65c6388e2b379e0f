"""What a probe says of one card, and of the parts that a card is split into.

From raw driver answers to readings: what cannot be true is an absence, and texts are safe to show.

From a counter that only grows to a rate, by the difference of two samples.
"""

import unicodedata
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

from app.machine.probes.reading import Absence, Reading, in_unit, units_of

BYTES, PERCENT, MEGAHERTZ, WATTS, CELSIUS, BITS, BYTES_PER_SECOND = "B", "%", "MHz", "W", "°C", "bit", "B/s"


@dataclass(frozen=True, slots=True)
class MigInstance:
    """One MIG instance: a slice of a card with memory and compute of its own."""

    index: int
    name: Reading[str] = in_unit("")
    memory_total_bytes: Reading[int] = in_unit(BYTES)
    memory_used_bytes: Reading[int] = in_unit(BYTES)
    memory_free_bytes: Reading[int] = in_unit(BYTES)
    dram_activity_percent: Reading[float] = in_unit(PERCENT)
    tensor_activity_percent: Reading[float] = in_unit(PERCENT)

    def document(self) -> dict[str, object]:
        return {"index": self.index} | {name: getattr(self, name).document() for name in units_of(MigInstance)}


@dataclass(frozen=True, slots=True)
class CardReadings:
    """One card at one instant; every reading has a value or says why not.

    `index` is the driver's order (that of the PCI bus, not of CUDA_VISIBLE_DEVICES) and may change at a reboot; `uuid`
    is the key that does not. It stays inside the server: `document()` and `repr` leave it out.

    `fault` names what is wrong with the card as a whole (lost, reset required, …). `unified_memory` is true where the
    card shares the machine's memory: total is then all that it may take of it, and free what the system could give.
    `gpu_utilization_percent` is the share of the last sample window in which any kernel ran,
    `memory_utilization_percent` that in which memory was read or written: neither is occupancy nor a fraction of the
    bandwidth. `dram_activity_percent` is a fraction of the bandwidth, `tensor_activity_percent` the share of cycles in
    which a tensor pipe was busy; both since the last sample, or in the firmware's own window. `nvlink_…` are the links
    between cards of whatever make. With an old driver `memory_used_bytes` includes the driver's reserve and
    `memory_reserved_bytes` is absent. `peak_bandwidth_bytes_per_s` is derived (2 × maximum memory clock × bus width ÷
    8) or the driver's own figure; `read_from` says which, where there is a choice. `throttle_reasons` are names of what
    holds the clocks down; none is an empty tuple.
    """

    index: int
    vendor: str
    unified_memory: bool
    fault: Absence | None
    uuid: Reading[str] = field(repr=False, metadata={"unit": ""})
    name: Reading[str] = in_unit("")
    mig_enabled: Reading[bool] = in_unit("")
    compute_capability: Reading[str] = in_unit("")
    addressing_mode: Reading[str] = in_unit("")
    memory_total_bytes: Reading[int] = in_unit(BYTES)
    memory_used_bytes: Reading[int] = in_unit(BYTES)
    memory_reserved_bytes: Reading[int] = in_unit(BYTES)
    memory_free_bytes: Reading[int] = in_unit(BYTES)
    gpu_utilization_percent: Reading[int] = in_unit(PERCENT)
    memory_utilization_percent: Reading[int] = in_unit(PERCENT)
    dram_activity_percent: Reading[float] = in_unit(PERCENT)
    tensor_activity_percent: Reading[float] = in_unit(PERCENT)
    sm_activity_percent: Reading[float] = in_unit(PERCENT)
    sm_occupancy_percent: Reading[float] = in_unit(PERCENT)
    sm_clock_mhz: Reading[int] = in_unit(MEGAHERTZ)
    sm_clock_max_mhz: Reading[int] = in_unit(MEGAHERTZ)
    memory_clock_mhz: Reading[int] = in_unit(MEGAHERTZ)
    memory_clock_max_mhz: Reading[int] = in_unit(MEGAHERTZ)
    throttle_reasons: Reading[tuple[str, ...]] = in_unit("")
    power_draw_w: Reading[float] = in_unit(WATTS)
    power_limit_w: Reading[float] = in_unit(WATTS)
    temperature_c: Reading[int] = in_unit(CELSIUS)
    memory_temperature_c: Reading[int] = in_unit(CELSIUS)
    pcie_generation: Reading[int] = in_unit("")
    pcie_lanes: Reading[int] = in_unit("")
    pcie_sent_bytes_per_s: Reading[float] = in_unit(BYTES_PER_SECOND)
    pcie_received_bytes_per_s: Reading[float] = in_unit(BYTES_PER_SECOND)
    nvlink_sent_bytes_per_s: Reading[float] = in_unit(BYTES_PER_SECOND)
    nvlink_received_bytes_per_s: Reading[float] = in_unit(BYTES_PER_SECOND)
    memory_bus_bits: Reading[int] = in_unit(BITS)
    peak_bandwidth_bytes_per_s: Reading[float] = in_unit(BYTES_PER_SECOND)
    mig_instances: tuple[MigInstance, ...] = ()

    @classmethod
    def of(
        cls,
        index: int,
        vendor: str,
        otherwise: Absence,
        *,
        unified_memory: bool = False,
        fault: Absence | None = None,
        mig_instances: tuple[MigInstance, ...] = (),
        **readings: Reading[Any],
    ) -> "CardReadings":
        """A card with the `readings` that there are, by field; what is not given is missing for `otherwise`."""
        missing: dict[str, Any] = {
            name: Reading.missing(otherwise, unit) for name, unit in units_of(cls).items() if name not in readings
        }
        return cls(
            index=index,
            vendor=vendor,
            unified_memory=unified_memory,
            fault=fault,
            mig_instances=mig_instances,
            **readings,
            **missing,
        )

    @classmethod
    def unreadable(cls, index: int, vendor: str, fault: Absence) -> "CardReadings":
        """A card of which nothing can be read, for one reason."""
        return cls.of(index, vendor, fault, fault=fault)

    def document(self) -> dict[str, object]:
        """The JSON-ready form: the card's index, vendor and faults, and a document of each reading but the UUID."""
        readings = {name: getattr(self, name).document() for name in units_of(CardReadings) if name != "uuid"}
        return {
            "index": self.index,
            "vendor": self.vendor,
            "unified_memory": self.unified_memory,
            "fault": self.fault.document() if self.fault is not None else None,
            **readings,
            "mig_instances": [instance.document() for instance in self.mig_instances],
        }


TEXT_LIMIT = 80
"""Characters kept of a name; the longest name sold today has 55."""

_ROUNDED_HUNDRED = 101

N = TypeVar("N", int, float)


def whole(raw: object, unit: str, *, ceiling: int, zero_is_absent: bool = True) -> Reading[int]:
    """A count between zero and `ceiling` in `unit`; an `Absence` given as `raw` passes through.

    Zero is what drivers answer where they have nothing (Jetson does for nearly everything), so it is an absence unless
    it can be meant. A figure over the ceiling or below zero is a sentinel (2^32 − 1, −1) or garbage: `implausible`.
    """
    if isinstance(raw, Absence):
        return Reading.missing(raw, unit)
    if not isinstance(raw, int) or not 0 <= raw <= ceiling:
        return Reading.missing(Absence.IMPLAUSIBLE, unit)
    if raw == 0 and zero_is_absent:
        return Reading.missing(Absence.ZERO_READING, unit)
    return Reading(int(raw), unit)


def share_percent(raw: object) -> Reading[float]:
    """A share in %; an `Absence` given as `raw` passes through.

    Counters that are read one after the other can add up to a little over 100: as much as 101 is taken for 100. What
    is below zero, beyond that, or no number is `implausible`.
    """
    if isinstance(raw, Absence):
        return Reading.missing(raw, PERCENT)
    if not isinstance(raw, int | float) or not 0 <= raw <= _ROUNDED_HUNDRED:
        return Reading.missing(Absence.IMPLAUSIBLE, PERCENT)
    return Reading(min(float(raw), 100.0), PERCENT)


def at_most(reading: Reading[N], limit: Reading[N]) -> Reading[N]:
    """The reading, or `implausible` where it exceeds the limit: a part cannot be larger than its whole."""
    if reading.value is not None and limit.value is not None and reading.value > limit.value:
        return Reading.missing(Absence.IMPLAUSIBLE, reading.unit)
    return reading


def text(raw: object) -> Reading[str]:
    """One line of at most `TEXT_LIMIT` visible characters; an `Absence` given as `raw` passes through.

    Takes str or bytes (bindings differ; undecodable bytes become U+FFFD). Control, format (so bidi), surrogate, private
    and unassigned characters and line separators become spaces, runs of spaces one. Nothing left: `implausible`.
    """
    if isinstance(raw, Absence):
        return Reading.missing(raw)
    if isinstance(raw, bytes):
        raw = raw.decode("utf-8", errors="replace")
    if not isinstance(raw, str):
        return Reading.missing(Absence.IMPLAUSIBLE)
    # Bounded before it is normalised: one character can become eighteen.
    normal = unicodedata.normalize("NFC", raw[: 4 * TEXT_LIMIT])
    visible = "".join(" " if unicodedata.category(c)[0] in "CZ" else c for c in normal)
    cleaned = " ".join(visible.split())[:TEXT_LIMIT].rstrip()
    return Reading(cleaned) if cleaned else Reading.missing(Absence.IMPLAUSIBLE)


SHORTEST_WINDOW_S = 0.1
"""Two samples nearer than this say nothing sure: drivers refresh their counters about that often."""

LONGEST_WINDOW_S = 60.0
"""Two samples further apart than this are a mean of the past, not a rate of now."""


class CounterMeter:
    """The rate of one counter of bytes, per second of `clock`; for the counters of one card only.

    The first count, and one that comes after a long pause, has no rate yet; a counter that went backwards (a reset, or
    a wrap) costs one rate. A rate over `ceiling_bytes_per_s` is not believed.
    """

    def __init__(self, clock: Callable[[], float], ceiling_bytes_per_s: float) -> None:
        self._clock, self._ceiling = clock, ceiling_bytes_per_s
        self._before: tuple[int, float] | None = None
        self._rate: Reading[float] = Reading.missing(Absence.NEEDS_TWO_SAMPLES, BYTES_PER_SECOND)

    def rate(self, count: Reading[int]) -> Reading[float]:
        """The bytes per second since the count before, or why there is no such rate; that count is then forgotten."""
        now = self._clock()
        if count.value is None:
            self._before = None
            return Reading(None, BYTES_PER_SECOND, count.absence)
        if self._before is not None and now - self._before[1] < SHORTEST_WINDOW_S:
            return self._rate
        before, self._before = self._before, (count.value, now)
        self._rate = self._between(before, count.value, now)
        return self._rate

    def _between(self, before: tuple[int, float] | None, count_bytes: int, now: float) -> Reading[float]:
        if before is None or now - before[1] > LONGEST_WINDOW_S:
            return Reading.missing(Absence.NEEDS_TWO_SAMPLES, BYTES_PER_SECOND)
        count_before, then = before
        if count_bytes < count_before:
            return Reading.missing(Absence.COUNTER_RESET, BYTES_PER_SECOND)
        rate = (count_bytes - count_before) / (now - then)
        if rate > self._ceiling:
            return Reading.missing(Absence.IMPLAUSIBLE, BYTES_PER_SECOND)
        return Reading(rate, BYTES_PER_SECOND)
