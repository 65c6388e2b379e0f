"""What the kernel says of a Jetson's GPU where its NVML says nothing: the load and the temperature."""

from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from app.probes.card import CELSIUS, PERCENT
from app.probes.kernel_file import read_number, read_text
from app.probes.plausible import whole
from app.probes.reading import Absence, Reading

SYSFS = Path("/sys")

PER_MILLE = 1000

# Where the file is has changed with the board and the release; the links in class/devfreq are the newest.
_LOAD_FILES = (
    "devices/gpu.0/load",
    "devices/platform/gpu.0/load",
    "class/devfreq/*gpu/device/load",
    "class/devfreq/*.ga10b/device/load",
    "class/devfreq/*.gv11b/device/load",
)
_ZONES = "class/thermal/thermal_zone*"
_ZONE_TYPES = frozenset({"gpu-thermal", "gpu-therm"})
_MILLIDEGREES = 1000
_CEILING_C = 150
_FILES_LOOKED_AT = 64


def gpu_load(sysfs: Path = SYSFS) -> Reading[int]:
    """The share of time in % in which the GPU was busy, from the kernel's per mille; zero is a value here."""
    for path in _found(sysfs, *_LOAD_FILES):
        per_mille = read_number(path)
        if per_mille is not Absence.NOT_SUPPORTED:
            share = whole(per_mille, PERCENT, ceiling=PER_MILLE, zero_is_absent=False)
            percent = None if share.value is None else round(share.value * 100 / PER_MILLE)
            return Reading(percent, PERCENT, share.absence, "sysfs load")
    return Reading.missing(Absence.NOT_SUPPORTED, PERCENT)


def gpu_temperature(sysfs: Path = SYSFS) -> Reading[int]:
    """The temperature in °C of the thermal zone of the GPU; on some boards it cannot be read while the GPU sleeps."""
    for zone in _found(sysfs, _ZONES):
        kind = read_text(zone / "type")
        if not isinstance(kind, Absence) and kind.lower() in _ZONE_TYPES:
            read = read_number(zone / "temp")
            degrees = read if isinstance(read, Absence) else read // _MILLIDEGREES
            reading = whole(degrees, CELSIUS, ceiling=_CEILING_C)
            return Reading(reading.value, CELSIUS, reading.absence, "sysfs thermal zone")
    return Reading.missing(Absence.NOT_SUPPORTED, CELSIUS)


def _found(sysfs: Path, *patterns: str) -> Iterator[Path]:
    for pattern in patterns:
        try:
            yield from sorted(islice(sysfs.glob(pattern), _FILES_LOOKED_AT))
        except OSError:
            continue
