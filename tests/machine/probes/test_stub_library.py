"""The whole way once: the probe, the real binding, and a shared library built from `stub_nvml.c` on the loader's path.

In a process of its own, for the loader looks at its path when a process starts.
"""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pynvml", reason="nvidia-ml-py (the nvidia extra) is not installed")

ROOT = Path(__file__).resolve().parents[3]
SOURCE = Path(__file__).with_name("stub_nvml.c")
COMPILER = shutil.which("cc") or shutil.which("gcc")
KIB = 1024
MEMINFO = "MemTotal:       125829120 kB\nMemFree:         1000000 kB\nMemAvailable:   104857600 kB\n"

pytestmark = [
    pytest.mark.skipif(COMPILER is None, reason="no C compiler here: cc and gcc are missing, so no stub can be built"),
    pytest.mark.skipif(sys.platform != "linux", reason="the loader's path is that of Linux"),
]

TWO_SNAPSHOTS = """
import json, sys
from pathlib import Path
from app.machine.probes.nvidia import NvidiaProbe

now_s = [100.0]
folder = Path(sys.argv[1])
probe = NvidiaProbe(clock=lambda: now_s[0], meminfo=folder / "meminfo", sysfs=folder / "sys")
documents = []
for _ in range(2):
    documents.append(probe.snapshot().document())
    now_s[0] += 2
probe.close()
json.dump(documents, sys.stdout, allow_nan=False)
"""

Snapshots = Callable[..., list[dict[str, Any]]]


def build(folder: Path, *flags: str) -> Path:
    """The stub as the library that the binding looks for, in `folder`."""
    folder.mkdir()
    library = folder / "libnvidia-ml.so.1"
    strict = ("-std=c11", "-Wall", "-Wextra", "-Werror", "-O0", "-shared", "-fPIC")
    subprocess.run([str(COMPILER), *strict, *flags, "-o", str(library), str(SOURCE)], check=True)
    return folder


@pytest.fixture(scope="session")
def libraries(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The folders of the stub as today's driver and as an old one, built once for all tests."""
    folder = tmp_path_factory.mktemp("stub")
    return {"today": build(folder / "today"), "old": build(folder / "old", "-DOLD_DRIVER")}


@pytest.fixture
def snapshots(libraries: dict[str, Path], tmp_path: Path) -> Snapshots:
    """Two snapshots' documents, two seconds apart, of a machine that the stub plays."""
    (tmp_path / "meminfo").write_text(MEMINFO)

    def take(machine: str, driver: str = "today") -> list[dict[str, Any]]:
        loader_path = os.pathsep.join(filter(None, (str(libraries[driver]), os.environ.get("LD_LIBRARY_PATH"))))
        environment = os.environ | {"LD_LIBRARY_PATH": loader_path, "STUB_NVML": machine}
        command = [sys.executable, "-c", TWO_SNAPSHOTS, str(tmp_path)]
        done = subprocess.run(
            command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=60, check=False
        )
        assert (done.returncode, done.stderr) == (0, ""), "nothing is leaked, and nothing is complained of"
        documents: list[dict[str, Any]] = json.loads(done.stdout)
        return documents

    return take


def shown(document: dict[str, Any]) -> dict[str, Any]:
    """The value of each reading of the only card, or the code of the reason why it has none."""
    assert document["state"] == "ok"
    (card,) = document["cards"]
    readings = {name: each for name, each in card.items() if isinstance(each, dict) and "unit" in each}
    return {name: each["absence"]["code"] if each["absence"] else each["value"] for name, each in readings.items()}


def test_an_h100_is_read_through_the_real_binding(snapshots: Snapshots) -> None:
    first, second = snapshots("h100")
    assert second["driver_version"]["value"] == "590.44.01"
    card = shown(second)
    assert card["name"] == "NVIDIA H100 80GB HBM3"
    total, used, reserved, free = (card[f"memory_{part}_bytes"] for part in ("total", "used", "reserved", "free"))
    assert (total, free) == (85_520_809_984, total - used - reserved)
    assert (card["sm_clock_mhz"], card["sm_clock_max_mhz"]) == (1_755, 1_980)
    assert (card["memory_clock_mhz"], card["memory_clock_max_mhz"]) == (2_619, 2_619)
    assert card["peak_bandwidth_bytes_per_s"] == pytest.approx(3.352e12, rel=1e-3)
    assert card["throttle_reasons"] == ["software power cap", "software thermal slowdown"]
    assert (card["compute_capability"], card["addressing_mode"], card["mig_enabled"]) == ("9.0", "ATS", False)
    assert (card["temperature_c"], card["memory_temperature_c"], card["power_draw_w"]) == (56, 71, 412.345)
    assert (card["pcie_generation"], card["pcie_lanes"], card["pcie_received_bytes_per_s"]) == (5, 16, 3.4e9)
    assert "canary" not in json.dumps([first, second])


def test_activity_and_nvlink_come_from_two_snapshots(snapshots: Snapshots) -> None:
    first, second = map(shown, snapshots("h100"))
    counted = ("dram_activity_percent", "tensor_activity_percent", "nvlink_sent_bytes_per_s")
    assert {first[name] for name in counted} == {"needs_two_samples"}
    assert (second["dram_activity_percent"], second["tensor_activity_percent"]) == (62.0, 31.0)
    assert second["sm_activity_percent"] == "not_supported", "a metric has a status of its own"
    # Two moments of the stub pass between two snapshots, in two seconds.
    assert second["nvlink_sent_bytes_per_s"] == 3_000_000 * KIB
    assert second["nvlink_received_bytes_per_s"] == 1_000_000 * KIB


def test_an_old_driver_is_read_through_its_older_symbols(snapshots: Snapshots) -> None:
    _, second = snapshots("h100", driver="old")
    card = shown(second)
    assert (card["memory_total_bytes"], card["memory_reserved_bytes"]) == (85_520_809_984, "function_not_found")
    assert (card["temperature_c"], card["mig_enabled"]) == (56, False)
    assert card["throttle_reasons"] == ["software power cap", "software thermal slowdown"]
    assert second["cards"][0]["throttle_reasons"]["read_from"] == "nvmlDeviceGetCurrentClocksThrottleReasons"
    assert (card["dram_activity_percent"], card["addressing_mode"]) == ("function_not_found", "function_not_found")


def test_a_gb10_shows_the_memory_of_the_machine(snapshots: Snapshots) -> None:
    _, second = snapshots("gb10")
    card = shown(second)
    assert second["cards"][0]["unified_memory"] is True
    assert (card["memory_total_bytes"], card["memory_free_bytes"]) == (125_829_120 * KIB, 104_857_600 * KIB)
    assert (card["memory_clock_max_mhz"], card["memory_bus_bits"]) == ("not_supported", "zero_reading")
    assert card["peak_bandwidth_bytes_per_s"] == "zero_reading"
    assert (card["pcie_generation"], card["dram_activity_percent"]) == ("not_supported", "not_supported")
    assert card["compute_capability"] == "12.1"


def test_a_jetson_that_answers_zero_to_everything_has_only_names_and_memory(snapshots: Snapshots) -> None:
    _, second = snapshots("jetson")
    card = shown(second)
    without = {name for name, value in card.items() if value in ("zero_reading", "not_supported")}
    assert set(card) - without == {
        *("name", "mig_enabled", "memory_total_bytes", "memory_used_bytes", "memory_free_bytes"),
    }


def test_a_driver_that_was_changed_is_named(snapshots: Snapshots) -> None:
    for document in snapshots("mismatch"):
        assert (document["state"], document["absence"]["code"]) == ("absent", "version_mismatch")
        assert document["cards"] == []


def test_a_lost_card_is_named(snapshots: Snapshots) -> None:
    for document in snapshots("lost"):
        (card,) = document["cards"]
        assert (card["fault"]["code"], card["temperature_c"]["absence"]["code"]) == ("gpu_lost", "gpu_lost")
