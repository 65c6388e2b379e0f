"""Parts that share the machine's memory (GB10, Jetson): which they are, and what the system says of that memory."""

import re
from dataclasses import dataclass
from pathlib import Path

from app.probes.kernel_file import read_text
from app.probes.reading import Absence

MEMINFO = Path("/proc/meminfo")

INTEGRATED_PARTS = frozenset({"gb10", "jetson", "nvgpu", "orin", "tegra", "thor", "xavier"})
"""Words in the names of parts without a memory of their own, as drivers report them ("NVIDIA GB10", "Orin (nvgpu)")."""

_MEMINFO_LIMIT = 65_536
_BYTES_PER_KB = 1024  # The kernel writes kB and means KiB.


@dataclass(frozen=True, slots=True)
class SystemMemory:
    """Memory of the machine in bytes: all of it, and what could be given to a new process without swapping."""

    total_bytes: int
    available_bytes: int


def is_integrated(name: str | None) -> bool:
    """True where a whole word of the name is that of a known part with unified memory."""
    return name is not None and not INTEGRATED_PARTS.isdisjoint(re.findall(r"[a-z0-9]+", name.lower()))


def system_memory(meminfo: Path = MEMINFO) -> SystemMemory | Absence:
    """MemTotal and MemAvailable of the kernel's /proc/meminfo, in bytes.

    Never MemFree, which counts the page cache as used. An absence where the file is missing (no Linux), is not
    readable, or lacks a field (MemAvailable came with Linux 3.14).
    """
    lines = read_text(meminfo, _MEMINFO_LIMIT)
    if isinstance(lines, Absence):
        return lines
    found = dict(re.findall(r"^(MemTotal|MemAvailable):\s{1,40}(\d{1,15}) kB$", lines, flags=re.MULTILINE | re.ASCII))
    if len(found) < 2:
        return Absence.NOT_SUPPORTED
    total_bytes, available_bytes = (int(found[key]) * _BYTES_PER_KB for key in ("MemTotal", "MemAvailable"))
    if not 0 <= available_bytes <= total_bytes or total_bytes == 0:
        return Absence.IMPLAUSIBLE
    return SystemMemory(total_bytes, available_bytes)
