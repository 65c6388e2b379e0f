"""The kernel's account of a Jetson's GPU, from trees of files as different releases lay them out."""

from pathlib import Path

import pytest

from app.machine.probes.nvml_clocks import gpu_load, gpu_temperature
from app.machine.probes.reading import Absence, Reading


def write(root: Path, **files: str) -> Path:
    """The files by their paths, in which two underscores stand for a slash."""
    for name, content in files.items():
        path = root / name.replace("__", "/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    return root


@pytest.mark.parametrize(
    "path",
    [
        "devices/gpu.0/load",
        "devices/platform/gpu.0/load",
        "class/devfreq/17000000.gpu/device/load",
        "class/devfreq/17000000.ga10b/device/load",
        "class/devfreq/17000000.gv11b/device/load",
    ],
)
def test_the_load_is_found_where_each_release_puts_it(tmp_path: Path, path: str) -> None:
    (tmp_path / path).parent.mkdir(parents=True)
    (tmp_path / path).write_text("993\n")
    assert gpu_load(tmp_path) == Reading(99, "%", None, "sysfs load")


@pytest.mark.parametrize(("content", "percent"), [("0", 0), ("4", 0), ("6", 1), ("1000\n", 100)])
def test_the_load_is_per_mille_and_zero_is_a_value(tmp_path: Path, content: str, percent: int) -> None:
    assert gpu_load(write(tmp_path, **{"devices__gpu.0__load": content})).value == percent


@pytest.mark.parametrize("content", ["1001", "-1", "9" * 500, "", "busy", "\x00", "12.5"])
def test_what_is_no_share_of_a_thousand_is_implausible(tmp_path: Path, content: str) -> None:
    assert gpu_load(write(tmp_path, **{"devices__gpu.0__load": content})).absence is Absence.IMPLAUSIBLE


def test_the_zone_of_the_gpu_is_told_from_the_others(tmp_path: Path) -> None:
    files = {
        "class__thermal__thermal_zone0__type": "cpu-thermal\n",
        "class__thermal__thermal_zone0__temp": "99000\n",
        "class__thermal__thermal_zone7__type": "GPU-therm\n",
        "class__thermal__thermal_zone7__temp": "47500\n",
    }
    assert gpu_temperature(write(tmp_path, **files)) == Reading(47, "°C", None, "sysfs thermal zone")


@pytest.mark.parametrize(
    ("temperature", "absence"),
    [("-256000", Absence.IMPLAUSIBLE), ("900000", Absence.IMPLAUSIBLE), ("", Absence.IMPLAUSIBLE)],
    ids=["asleep", "absurd", "empty"],
)
def test_a_temperature_that_cannot_be_is_an_absence(tmp_path: Path, temperature: str, absence: Absence) -> None:
    zone = {"class__thermal__thermal_zone0__type": "gpu-thermal", "class__thermal__thermal_zone0__temp": temperature}
    assert gpu_temperature(write(tmp_path, **zone)).absence is absence


def test_a_machine_without_these_files_has_neither(tmp_path: Path) -> None:
    assert gpu_load(tmp_path / "none").absence is Absence.NOT_SUPPORTED
    assert gpu_temperature(tmp_path / "none").absence is Absence.NOT_SUPPORTED
    (tmp_path / "devices/gpu.0/load").mkdir(parents=True)
    assert gpu_load(tmp_path).absence is Absence.NOT_SUPPORTED
