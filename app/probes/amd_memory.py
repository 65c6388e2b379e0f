"""The memory of an AMD card: its own, or for a processor with graphics inside its part of the machine's; and how fast
the card's own memory can be at most."""

from dataclasses import dataclass
from pathlib import Path

from app.probes.card import BYTES, BYTES_PER_SECOND
from app.probes.plausible import at_most, whole
from app.probes.reading import Absence, Reading
from app.probes.unified_memory import SystemMemory, system_memory

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
