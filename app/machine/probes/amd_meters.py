"""An AMD card's memory, and what its counters say between two samples: link traffic, and what held its clocks down."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from app.machine.probes.accelerator import (
    BYTES,
    BYTES_PER_SECOND,
    LONGEST_WINDOW_S,
    SHORTEST_WINDOW_S,
    CounterMeter,
    at_most,
    whole,
)
from app.machine.probes.amd_smi import figure
from app.machine.probes.host import SystemMemory, system_memory
from app.machine.probes.reading import Absence, Reading

MEMORY_CEILING_BYTES = 2**46
BANDWIDTH_CEILING_GB_PER_S = 100_000

_BITS_PER_BYTE = 8

# Transfers per cycle of the memory clock that the driver reports. Checked against published figures: MI100 (1,200 MHz ×
# 2 × 4,096 bit = 1.23 TB/s), MI300X (1,300 MHz × 4 × 8,192 bit = 5.3 TB/s), RX 7900 XTX (1,249 MHz × 16 × 384 bit =
# 0.96 TB/s). Of other kinds of memory nothing is derived.
_TRANSFERS_PER_CLOCK = {"HBM2": 2, "HBM2E": 2, "HBM3": 4, "GDDR6": 16}

# Parts with graphics inside the processor, by LLVM's names of their instruction sets. gfx942 is not among them: it is
# the MI300A's too, but its memory is all HBM and is reported as the card's own.
_INTEGRATED_TARGETS = frozenset(
    {
        *("gfx902", "gfx909", "gfx90c", "gfx1013", "gfx1033", "gfx1035", "gfx1036", "gfx1037", "gfx1103"),
        *("gfx1150", "gfx1151", "gfx1152", "gfx1153"),
    }
)
_INTEGRATED_REVISIONS = frozenset({2, 3})


@dataclass(frozen=True, slots=True)
class Pool:
    """One kind of memory that the driver manages (VRAM, or GTT: the machine's memory that the card may use)."""

    total_bytes: Reading[int]
    used_bytes: Reading[int]

    @classmethod
    def of(cls, total_bytes: object, used_bytes: object) -> "Pool":
        """From raw figures in bytes, or `Absence`s; used is absent with the total, and where it exceeds the total."""
        total = whole(total_bytes, BYTES, ceiling=MEMORY_CEILING_BYTES)
        used = whole(total.absence or used_bytes, BYTES, ceiling=MEMORY_CEILING_BYTES, zero_is_absent=False)
        return cls(total, at_most(used, total))


def is_integrated(metrics_revision: object, target: object = None) -> bool:
    """Whether the card is part of a processor and works in the machine's memory.

    `metrics_revision` is the first version number of the kernel's table of metrics: 2 and 3 are tables of processors,
    1 of cards. `target` is the instruction set, such as "gfx1151", for where that table cannot be read.
    """
    by_table = isinstance(metrics_revision, int) and metrics_revision in _INTEGRATED_REVISIONS
    return by_table or (isinstance(target, str) and target in _INTEGRATED_TARGETS)


def card_memory(vram: Pool, gtt: Pool, *, integrated: bool, meminfo: Path) -> dict[str, Reading[int]]:
    """Total, used and free memory by field.

    Of a card: VRAM, and free is the rest. Of an integrated part VRAM is a small aperture (512 MiB as delivered), and
    GTT is the machine's memory that it may use besides: total and used are the sums, and free is the rest of both, at
    most what the system could still give.
    """
    if not integrated:
        return _fields(vram.total_bytes, vram.used_bytes, _rest(vram), "")
    total = _sum(vram.total_bytes, gtt.total_bytes)
    used = at_most(_sum(vram.used_bytes, gtt.used_bytes), total)
    free = _rest(Pool(total, used))
    system, own = system_memory(meminfo), _rest(vram)
    if isinstance(system, SystemMemory) and free.value is not None and own.value is not None:
        free = Reading(min(free.value, own.value + system.available_bytes), BYTES)
    return _fields(total, used, free, "VRAM + GTT")


def peak_bandwidth(
    gigabytes_per_s: object, memory_clock_max_mhz: Reading[int], bus_bits: Reading[int], kind: str | None
) -> Reading[float]:
    """Peak memory bandwidth in B/s: the driver's own figure (GB/s) where it has a plausible one, else transfers per
    clock × maximum memory clock × bus width ÷ 8 for the kinds of memory whose clock is understood.

    `read_from` says which. To be compared with the catalog's figure, not believed.
    """
    stated = whole(gigabytes_per_s, BYTES_PER_SECOND, ceiling=BANDWIDTH_CEILING_GB_PER_S)
    if stated.value is not None:
        return Reading(stated.value * 1e9, BYTES_PER_SECOND, read_from="vram_max_bandwidth")
    clock_mhz, width_bits = memory_clock_max_mhz.value, bus_bits.value
    transfers = _TRANSFERS_PER_CLOCK.get(kind or "")
    if clock_mhz is None or width_bits is None or transfers is None:
        return Reading(None, BYTES_PER_SECOND, stated.absence)
    rate = transfers * clock_mhz * 1e6 * width_bits / _BITS_PER_BYTE
    if rate > BANDWIDTH_CEILING_GB_PER_S * 1e9:
        return Reading.missing(Absence.IMPLAUSIBLE, BYTES_PER_SECOND)
    return Reading(rate, BYTES_PER_SECOND, read_from=f"{transfers} × memory clock × bus width")


def _sum(first: Reading[int], second: Reading[int]) -> Reading[int]:
    if first.value is None or second.value is None:
        return Reading(None, BYTES, first.absence or second.absence)  # Half of the sum would look like all of it.
    return Reading(first.value + second.value, BYTES)


def _rest(pool: Pool) -> Reading[int]:
    total, used = pool.total_bytes.value, pool.used_bytes.value
    if total is None or used is None:
        return Reading(None, BYTES, pool.total_bytes.absence or pool.used_bytes.absence)
    return Reading(total - used, BYTES)


def _fields(total: Reading[int], used: Reading[int], free: Reading[int], read_from: str) -> dict[str, Reading[int]]:
    return {
        f"memory_{part}_bytes": Reading(reading.value, reading.unit, reading.absence, read_from)
        for part, reading in (("total", total), ("used", used), ("free", free))
    }


LINK_CEILING_BYTES_PER_S = 2e13
COUNTER_CEILING = 2**63
LINK_LIMIT = 64

# The counters are said to be in KB. Whether that is 1,000 or 1,024 bytes is not: the smaller may be 2.4 % too low.
_BYTES_PER_KB = 1000

# Counts of firmware ticks, in the kernel's metrics from MI300 on.
_TICKS = "accumulation_counter"
_RESIDENCY_OF_REASON = {
    "power cap": "ppt_residency_acc",
    "processor hot": "prochot_residency_acc",
    "socket thermal limit": "socket_thm_residency_acc",
    "regulator thermal limit": "vr_thm_residency_acc",
    "memory thermal limit": "hbm_thm_residency_acc",
}
_LEAST_SHARE = 0.01

# Older cards have bit masks, of which the binding says only whether any bit is set.
_FLAGS = ("indep_throttle_status", "throttle_status")

Reasons = Reading[tuple[str, ...]]


class CardMeters:
    """The meters of one card; `clock` is in seconds."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._sent, self._received = LinkMeter(clock, "write"), LinkMeter(clock, "read")
        self._throttle = ThrottleMeter(clock)

    def link_rates(self, answer: object) -> dict[str, Reading[float]]:
        """Bytes per second over all Infinity Fabric (xGMI) links by field, from the answer about links.

        The fields are those of NVLink: links between cards are links between cards.
        """
        return {
            "nvlink_sent_bytes_per_s": self._sent.rate(answer),
            "nvlink_received_bytes_per_s": self._received.rate(answer),
        }

    def throttle_reasons(self, metrics: object) -> Reasons:
        """What held the clocks down since the last sample, from the answer with the metrics."""
        return self._throttle.reasons(metrics)


class LinkMeter:
    """The rate of one direction's counters ("read" or "write"), over all links of a card."""

    def __init__(self, clock: Callable[[], float], direction: str) -> None:
        self._meter = CounterMeter(clock, LINK_CEILING_BYTES_PER_S)
        self._direction = direction
        self._counting: list[int] = []

    def rate(self, answer: object) -> Reading[float]:
        """Bytes per second since the answer before. Links that have no counter are passed over."""
        links = figure(answer, "links")
        if not isinstance(links, list):
            absence = links if isinstance(links, Absence) else Absence.IMPLAUSIBLE
            return self._meter.rate(Reading.missing(absence, BYTES))
        counts = {
            number: count
            for number, link in enumerate(links[:LINK_LIMIT])
            if (count := _count(figure(link, self._direction, wide=True))) is not None
        }
        if not counts:
            return self._meter.rate(Reading.missing(Absence.NOT_SUPPORTED, BYTES))
        if list(counts) != self._counting:  # The sum of other links is no later state of the same counter.
            self._counting = list(counts)
            self._meter.rate(Reading.missing(Absence.NEEDS_TWO_SAMPLES, BYTES))
        # A card without such links may answer zero for each of them.
        total = whole(sum(counts.values()) * _BYTES_PER_KB, BYTES, ceiling=LINK_LIMIT * COUNTER_CEILING * _BYTES_PER_KB)
        rate = self._meter.rate(total)
        return Reading(rate.value, BYTES_PER_SECOND, rate.absence, "xGMI link counters")


class ThrottleMeter:
    """What held a card's clocks down for 1 % of the time or more between each sample and the one before.

    amdsmi has a call for this, which takes both samples itself and sleeps for 0.1 s in between, for each card.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._before: tuple[Mapping[str, int], float] | None = None
        self._reasons: Reasons = Reading.missing(Absence.NEEDS_TWO_SAMPLES)

    def reasons(self, metrics: object) -> Reasons:
        """Names of what held the clocks down, none as an empty tuple; a card without such counters says at most
        whether anything does now, as `unspecified`.
        """
        counts = _counts(metrics)
        if counts is None:
            self._before = None
            return _by_flag(metrics)
        now = self._clock()
        if self._before is not None and now - self._before[1] < SHORTEST_WINDOW_S:
            return self._reasons
        before, self._before = self._before, (counts, now)
        in_time = before is not None and now - before[1] <= LONGEST_WINDOW_S
        self._reasons = (
            _between(before[0], counts) if before and in_time else Reading.missing(Absence.NEEDS_TWO_SAMPLES)
        )
        return self._reasons


def _counts(metrics: object) -> dict[str, int] | None:
    """The ticks and the residencies that this card has, or None where it has not both."""
    counts = {}
    for key in (_TICKS, *_RESIDENCY_OF_REASON.values()):
        count = _count(figure(metrics, key, wide=True))
        if count is not None:
            counts[key] = count
    return counts if _TICKS in counts and len(counts) > 1 else None


def _between(before: Mapping[str, int], after: Mapping[str, int]) -> Reasons:
    if any(after[key] < before.get(key, 0) for key in after):
        return Reading.missing(Absence.COUNTER_RESET)
    ticks = after[_TICKS] - before[_TICKS]
    if ticks == 0:
        return Reading.missing(Absence.NOTHING_TO_MEASURE)
    return Reading(
        tuple(
            reason
            for reason, key in _RESIDENCY_OF_REASON.items()
            if key in before and key in after and (after[key] - before[key]) / ticks >= _LEAST_SHARE
        ),
        read_from="residency counters",
    )


def _by_flag(metrics: object) -> Reasons:
    for key in _FLAGS:
        flag = figure(metrics, key)
        if isinstance(flag, bool):
            return Reading(("unspecified",) if flag else (), read_from=key)
    return Reading.missing(metrics if isinstance(metrics, Absence) else Absence.NOT_SUPPORTED)


def _count(raw: object) -> int | None:
    return whole(raw, "", ceiling=COUNTER_CEILING, zero_is_absent=False).value
