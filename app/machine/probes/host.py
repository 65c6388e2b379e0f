"""The kernel's small files, read whole, within bounds and never with an exception; and the system's memory in one.

The probe of the machine itself: its processors, and the memory that it can give.
"""

import errno
import os
import re
import stat
import threading
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TypeVar

import psutil

from app.machine.probes.accelerator import BYTES, PERCENT, whole
from app.machine.probes.reading import Absence, Reading
from app.machine.probes.snapshot import HostReadings, Kind, ProbeSnapshot, utc_now

FILE_LIMIT_BYTES = 4096
"""A page: the kernel shows no more of a sysfs file."""

# O_NONBLOCK: a named pipe in the place of a file would hold us until somebody writes to it. Windows has neither flag.
_FLAGS = os.O_RDONLY | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NONBLOCK", 0)

# What is not listed is an unknown error. A card that sleeps or is being reset answers EPERM.
_ABSENCE_OF_ERRNO = {
    errno.EACCES: Absence.NO_PERMISSION,
    errno.EPERM: Absence.NO_PERMISSION,
    errno.ENOENT: Absence.NOT_SUPPORTED,
    errno.ENOTDIR: Absence.NOT_SUPPORTED,
    errno.ELOOP: Absence.NOT_SUPPORTED,
    errno.ENODATA: Absence.NOT_SUPPORTED,
    errno.ENODEV: Absence.NOT_SUPPORTED,
    errno.EOPNOTSUPP: Absence.NOT_SUPPORTED,
    errno.EINVAL: Absence.NOT_SUPPORTED,
    errno.EBUSY: Absence.TIMEOUT,
    errno.EAGAIN: Absence.TIMEOUT,
    errno.ETIMEDOUT: Absence.TIMEOUT,
}


def read_bytes(path: Path, limit_bytes: int = FILE_LIMIT_BYTES) -> bytes | Absence:
    """The content of a regular file, or why there is none; a longer file than the limit is `implausible`."""
    try:
        descriptor = os.open(path, _FLAGS)
    except OSError as error:
        return absence_of(error)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            return Absence.NOT_SUPPORTED
        content = b""
        while len(content) <= limit_bytes and (part := os.read(descriptor, limit_bytes + 1 - len(content))):
            content += part
    except OSError as error:
        return absence_of(error)
    finally:
        os.close(descriptor)
    return content if len(content) <= limit_bytes else Absence.IMPLAUSIBLE


def read_text(path: Path, limit_bytes: int = FILE_LIMIT_BYTES) -> str | Absence:
    """The content as text, without the white space around it; what is not UTF-8 becomes U+FFFD."""
    content = read_bytes(path, limit_bytes)
    return content if isinstance(content, Absence) else content.decode("utf-8", errors="replace").strip()


def read_number(path: Path) -> int | Absence:
    """The one whole number that the file holds, or why there is none; anything besides makes it `implausible`."""
    content = read_text(path)
    if isinstance(content, Absence):
        return content
    return int(content) if re.fullmatch(r"-?[0-9]{1,20}", content) else Absence.IMPLAUSIBLE


def absence_of(error: OSError) -> Absence:
    """What a failed call to the operating system means for a reading."""
    return _ABSENCE_OF_ERRNO.get(error.errno or 0, Absence.UNKNOWN_ERROR)


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


CGROUP = Path("/sys/fs/cgroup")

MEMORY_CEILING_BYTES = 2**53
CPU_CEILING = 65_536

_STATISTICS_LIMIT_BYTES = 65_536
# Linux counts the time of guests twice: in these, and in the user's or the nice time.
_COUNTED_TWICE = ("guest", "guest_nice")
_IDLE = ("idle", "iowait")

T = TypeVar("T")


class HostProbe:
    """Reads the machine's processors and memory. Safe to call from several threads.

    In a container with a limit of memory (version 2 of cgroups, `cgroup` its directory) the limit is what the machine
    gives. `now` is the aware instant stamped on a snapshot.
    """

    name = "host"
    label = "This machine"
    kind: Kind = "host"

    def __init__(self, *, now: Callable[[], datetime] = utc_now, cgroup: Path = CGROUP) -> None:
        self._now, self._cgroup = now, cgroup
        self._times: tuple[float, float] | None = None
        self._lock = threading.Lock()

    def snapshot(self) -> ProbeSnapshot:
        """The readings now. Each may be missing by itself; never raises."""
        with self._lock:
            try:
                readings = self._read()
            except Exception:  # The last wall: a fault of ours must not take the page down.
                return ProbeSnapshot.absent(self.name, self.label, self.kind, Absence.UNKNOWN_ERROR, self._now)
        return ProbeSnapshot(
            source=self.name,
            label=self.label,
            kind=self.kind,
            state="ok",
            absence=None,
            taken_at=self._now(),
            driver_version=Reading.missing(Absence.NOT_SUPPORTED),
            host=readings,
        )

    def close(self) -> None:
        with self._lock:
            self._times = None

    def _read(self) -> HostReadings:
        memory = _ask(psutil.virtual_memory)
        total, available = (
            whole(
                memory if isinstance(memory, Absence) else getattr(memory, part, Absence.NOT_SUPPORTED),
                BYTES,
                ceiling=MEMORY_CEILING_BYTES,
                zero_is_absent=part == "total",
            )
            for part in ("total", "available")
        )
        swap = _ask(psutil.swap_memory)
        total, available = within_limit(self._cgroup, total, available)
        return HostReadings(
            cpu_percent=self._cpu_percent(),
            logical_cpus=whole(_ask(psutil.cpu_count), "", ceiling=CPU_CEILING),
            memory_total_bytes=total,
            memory_available_bytes=available,
            swap_used_bytes=whole(
                swap if isinstance(swap, Absence) else swap.used,
                BYTES,
                ceiling=MEMORY_CEILING_BYTES,
                zero_is_absent=False,
            ),
        )

    def _cpu_percent(self) -> Reading[float]:
        """The busy share of all processors' time since the last sample.

        From the times themselves: psutil's own percentage remembers one last call for the whole process.
        """
        times = _ask(psutil.cpu_times)
        if isinstance(times, Absence):
            return Reading.missing(times, PERCENT)
        seconds = times._asdict()
        idle = sum(seconds.get(part, 0.0) for part in _IDLE)
        total = sum(seconds.values()) - sum(seconds.get(part, 0.0) for part in _COUNTED_TWICE)
        before, self._times = self._times, (idle, total)
        if before is None or total <= before[1]:  # A machine that was moved or slept may count backwards.
            return Reading.missing(Absence.NEEDS_TWO_SAMPLES, PERCENT)
        idle_share = (idle - before[0]) / (total - before[1])
        return Reading(100 * min(1.0, max(0.0, 1 - idle_share)), PERCENT)


def within_limit(cgroup: Path, total: Reading[int], available: Reading[int]) -> tuple[Reading[int], Reading[int]]:
    """Total and available memory under the limit of a container, or as they are where there is none that counts.

    Of the memory in use, cached files that nothing has touched lately are given up before anything fails for want of
    memory, so they count as available. `read_from` names the limit where it is the smaller.
    """
    limit = read_number(cgroup / "memory.max")
    if isinstance(limit, Absence) or limit <= 0 or (total.value is not None and limit >= total.value):
        return total, available
    return Reading(limit, BYTES, read_from="memory.max"), _left(cgroup, limit, available)


def _left(cgroup: Path, limit_bytes: int, available: Reading[int]) -> Reading[int]:
    if available.value is None:
        return available
    used = whole(read_number(cgroup / "memory.current"), BYTES, ceiling=MEMORY_CEILING_BYTES, zero_is_absent=False)
    if used.value is None:
        return used  # The machine's own figure may be far more than the container can have.
    given_up = min(used.value, _inactive_file_bytes(cgroup))
    left = max(0, limit_bytes - used.value + given_up)
    return available if available.value < left else Reading(left, BYTES, read_from="memory.max")


def _inactive_file_bytes(cgroup: Path) -> int:
    statistics = read_text(cgroup / "memory.stat", _STATISTICS_LIMIT_BYTES)
    if isinstance(statistics, Absence):
        return 0
    lines = (line.split() for line in statistics.splitlines())
    found = (line[1] for line in lines if len(line) == 2 and line[0] == "inactive_file")
    value = next(found, "0")
    return int(value) if value.isascii() and value.isdigit() and len(value) < 20 else 0


def _ask(question: Callable[[], T]) -> T | Absence:
    try:
        return question()
    except PermissionError:
        return Absence.NO_PERMISSION
    except (NotImplementedError, AttributeError, FileNotFoundError):
        return Absence.NOT_SUPPORTED
    except Exception:  # psutil raises what the system gives it; one figure less is no reason to have none.
        return Absence.UNKNOWN_ERROR
