"""Cards through the kernel's files: what each file gives, and whatever else may lie in its place."""

import json
import os
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from app.machine.probes.accelerator import CardReadings
from app.machine.probes.amd_sysfs import CardNames, KernelCard, find_cards, read_kernel_card
from app.machine.probes.host import FILE_LIMIT_BYTES
from app.machine.probes.reading import Absence, Reading, units_of

tree = import_module("tests.machine.probes.fake_sysfs")

MIB, GIB = 2**20, 2**30


def read(tmp_path: Path, files: dict[str, Any]) -> CardReadings:
    """The readings of the one card of a tree with these files."""
    tree.add_card(tmp_path, files)
    return read_first(tmp_path)


def read_first(root: Path) -> CardReadings:
    found = find_cards(tree.drm(root))
    assert not isinstance(found, Absence)
    meminfo = root / "meminfo"
    meminfo.write_text(tree.MEMINFO)
    card = read_kernel_card(found[0], 0, CardNames(root / "amdgpu.ids"), meminfo)
    json.dumps(card.document(), allow_nan=False)
    return card


def present(card: CardReadings) -> set[str]:
    return {name for name in units_of(CardReadings) if getattr(card, name).value is not None}


def test_a_card_of_its_own(tmp_path: Path) -> None:
    card = read(tmp_path, tree.RX_7900_XTX)
    assert (card.vendor, card.fault, card.unified_memory) == ("AMD", None, False)
    assert card.uuid.value == "canary0123456789"
    assert card.memory_total_bytes == Reading(24_560 * MIB, "B")
    assert card.memory_used_bytes == Reading(6 * GIB, "B")
    assert card.memory_free_bytes == Reading(24_560 * MIB - 6 * GIB, "B")
    assert card.gpu_utilization_percent == Reading(83, "%")
    assert card.memory_utilization_percent == Reading(37, "%")
    assert (card.sm_clock_mhz.value, card.sm_clock_max_mhz.value) == (2_304, 2_526)
    assert (card.memory_clock_mhz.value, card.memory_clock_max_mhz.value) == (1_249, 1_249)
    assert card.power_draw_w == Reading(301.0, "W", read_from="power1_average")
    assert card.power_limit_w == Reading(327.0, "W", read_from="power1_cap")
    assert card.temperature_c == Reading(55, "°C", read_from="edge")
    assert card.memory_temperature_c == Reading(68, "°C", read_from="mem")
    assert (card.pcie_generation.value, card.pcie_lanes.value) == (4, 16)
    assert card.throttle_reasons.absence is card.peak_bandwidth_bytes_per_s.absence is Absence.NOT_SUPPORTED


def test_a_processor_with_graphics(tmp_path: Path) -> None:
    card = read(tmp_path, tree.STRIX_HALO)
    assert card.unified_memory
    assert card.memory_total_bytes == Reading(120 * GIB + GIB // 2, "B", read_from="VRAM + GTT")
    assert card.memory_used_bytes.value == 60 * GIB + GIB // 4
    assert card.memory_free_bytes.value == 60 * GIB + GIB // 4
    assert card.power_draw_w == Reading(85.012, "W", read_from="power1_input")
    assert card.pcie_lanes.absence is Absence.NOT_SUPPORTED
    assert card.memory_temperature_c.absence is Absence.NOT_SUPPORTED


@pytest.mark.parametrize(("major", "minor", "revision"), [(9, 4, 3), (9, 4, 4), (9, 5, 0), (11, 0, 0)])
def test_from_mi300_on_the_memory_is_measured_in_bandwidth(
    tmp_path: Path, major: int, minor: int, revision: int
) -> None:
    block = {"major": major, "minor": minor, "revision": revision}
    files = {f"ip_discovery/die/0/GC/0/{part}": f"{number}\n" for part, number in block.items()}
    card = read(tmp_path, tree.RX_7900_XTX | files)
    of_bandwidth = major == 9
    assert card.dram_activity_percent.value == (37.0 if of_bandwidth else None)
    assert card.memory_utilization_percent.value == (None if of_bandwidth else 37)


@pytest.mark.parametrize(("mode", "share"), [("SPX\n", 0), ("CPX\n", None), ("DPX\n", None)])
def test_a_split_cards_zero_is_no_idleness(tmp_path: Path, mode: str, share: int | None) -> None:
    card = read(tmp_path, tree.RX_7900_XTX | {"current_compute_partition": mode, "gpu_busy_percent": "0\n"})
    assert card.gpu_utilization_percent.value == share


@pytest.mark.parametrize(
    ("file", "content", "field", "value"),
    [
        ("pp_dpm_sclk", "S: 19Mhz *\n0: 500Mhz\n1: 2500Mhz\n", "sm_clock_mhz", 19),
        ("pp_dpm_sclk", "0: 500MHz\n1: 2500MHz *", "sm_clock_mhz", 2_500),
        ("pp_dpm_sclk", "0: 500Mhz\n1: 2500Mhz\n", "sm_clock_mhz", Absence.IMPLAUSIBLE),
        ("pp_dpm_sclk", "", "sm_clock_max_mhz", Absence.IMPLAUSIBLE),
        ("pp_dpm_sclk", "0: 999999Mhz *\n", "sm_clock_mhz", Absence.IMPLAUSIBLE),
        ("pp_dpm_mclk", "0: 0Mhz *\n", "memory_clock_mhz", Absence.ZERO_READING),
        ("current_link_speed", "32.0 GT/s PCIe", "pcie_generation", 5),
        ("current_link_speed", "2.5 GT/s PCIe", "pcie_generation", 1),
        ("current_link_speed", "5 GT/s", "pcie_generation", 2),
        ("current_link_speed", "Unknown", "pcie_generation", Absence.IMPLAUSIBLE),
        ("current_link_speed", "16.5 GT/s PCIe", "pcie_generation", Absence.IMPLAUSIBLE),
        ("current_link_width", "255", "pcie_lanes", Absence.IMPLAUSIBLE),
        ("current_link_width", "0", "pcie_lanes", Absence.ZERO_READING),
        ("gpu_busy_percent", "101", "gpu_utilization_percent", Absence.IMPLAUSIBLE),
        ("gpu_busy_percent", "nan", "gpu_utilization_percent", Absence.IMPLAUSIBLE),
        ("gpu_busy_percent", "-1", "gpu_utilization_percent", Absence.IMPLAUSIBLE),
        ("mem_info_vram_total", "18446744073709551615", "memory_total_bytes", Absence.IMPLAUSIBLE),
        ("mem_info_vram_total", "0", "memory_used_bytes", Absence.ZERO_READING),
        ("mem_info_vram_used", "99999999999999", "memory_free_bytes", Absence.IMPLAUSIBLE),
        ("hwmon/hwmon3/power1_average", "0", "power_draw_w", Absence.ZERO_READING),
        ("hwmon/hwmon3/power1_average", "inf", "power_draw_w", Absence.IMPLAUSIBLE),
        ("hwmon/hwmon3/temp1_input", "-5000", "temperature_c", 71),
        ("hwmon/hwmon3/temp3_input", "4294967295", "memory_temperature_c", Absence.IMPLAUSIBLE),
        ("hwmon/hwmon3/temp1_label", "\x1b[31medge", "temperature_c", 71),
    ],
)
def test_what_a_file_says_and_what_it_cannot_mean(
    tmp_path: Path, file: str, content: str, field: str, value: object
) -> None:
    reading = getattr(read(tmp_path, tree.RX_7900_XTX | {file: content}), field)
    assert value in (reading.value, reading.absence)


def test_a_sensor_without_a_label_is_the_edges(tmp_path: Path) -> None:
    files = {name: content for name, content in tree.RX_7900_XTX.items() if "temp" not in name}
    card = read(tmp_path, files | {"hwmon/hwmon3/temp1_input": "49600\n"})
    assert card.temperature_c == Reading(50, "°C", read_from="edge")


def test_a_card_without_files_has_a_number_and_no_readings(tmp_path: Path) -> None:
    card = read(tmp_path, {"device": "0x744c"})
    assert present(card) == {"name"}
    assert card.name == Reading("AMD GPU 1002:744c", read_from="device")
    assert {getattr(card, name).absence for name in units_of(CardReadings)} == {None, Absence.NOT_SUPPORTED}


def test_cards_stand_in_the_order_of_the_bus_and_others_are_not_amds(tmp_path: Path) -> None:
    for number, address, vendor in (
        (0, "0000:c3:00.0", "0x1002\n"),
        (10, "0000:03:00.0", "0x1002"),
        (2, "0000:01:00.0", "0x10de\n"),
        (3, "0000:02:00.0", "0x10020\n"),
        (4, "0000:04:00.0", ""),
    ):
        tree.add_card(tmp_path, {}, number=number, pci_address=address, vendor=vendor)
    connector = tree.drm(tmp_path) / "card0-DP-1"
    connector.mkdir()
    (connector / "device").symlink_to(tmp_path / "devices" / "0000:c3:00.0")
    (tree.drm(tmp_path) / "card7").mkdir()
    (tree.drm(tmp_path) / "version").write_text("drm 1.1.0 20060810")
    found = find_cards(tree.drm(tmp_path))
    assert isinstance(found, list)
    assert [card.pci_address for card in found] == ["0000:03:00.0", "0000:c3:00.0"]


def test_no_graphics_at_all_is_no_driver(tmp_path: Path) -> None:
    assert find_cards(tmp_path / "none") is Absence.NO_DRIVER
    (tmp_path / "file").write_text("")
    assert find_cards(tmp_path / "file") is Absence.NO_DRIVER
    assert find_cards(tmp_path) == []


def test_a_list_that_may_not_be_read_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: object) -> None:
        raise PermissionError(13, "refused")

    monkeypatch.setattr(os, "scandir", refuse)
    assert find_cards(tmp_path) is Absence.NO_PERMISSION


@pytest.mark.parametrize("header", [b"", b"\x08", b"\x08\x01\x03", b"\xff" * FILE_LIMIT_BYTES * 2])
def test_a_table_of_metrics_that_is_no_table_is_none(tmp_path: Path, header: bytes) -> None:
    (tmp_path / "gpu_metrics").write_bytes(header)
    assert KernelCard(tmp_path, "0000:03:00.0").metrics_revision is None


def test_what_is_no_file_costs_only_its_reading(tmp_path: Path) -> None:
    device = tree.add_card(tmp_path, tree.RX_7900_XTX)
    for name in ("mem_busy_percent", "unique_id", "pp_dpm_sclk", "current_link_width", "gpu_metrics"):
        (device / name).unlink()
    os.mkfifo(device / "mem_busy_percent")
    (device / "unique_id").mkdir()
    (device / "pp_dpm_sclk").symlink_to("pp_dpm_sclk")
    with (device / "gpu_metrics").open("wb") as file:
        file.truncate(2**40)
    card = read_first(tmp_path)
    for name in ("memory_utilization_percent", "uuid", "sm_clock_mhz", "sm_clock_max_mhz", "pcie_lanes"):
        assert getattr(card, name).absence is Absence.NOT_SUPPORTED
    assert card.gpu_utilization_percent.value == 83


@pytest.mark.parametrize("errno", [1, 5, 16, 19, 95])
def test_a_read_that_fails_costs_only_its_reading(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, errno: int) -> None:
    tree.add_card(tmp_path, tree.RX_7900_XTX)
    opened = os.open

    def refuse(path: Path, *arguments: Any, **named: Any) -> int:
        if Path(path).name == "gpu_busy_percent":
            raise OSError(errno, "refused")
        return opened(path, *arguments, **named)

    monkeypatch.setattr(os, "open", refuse)
    card = read_first(tmp_path)
    assert card.gpu_utilization_percent.value is None
    assert card.memory_utilization_percent.value == 37


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_files_of_any_bytes_are_readings_or_absences(tmp_path: Path, data: st.DataObject) -> None:
    root = tmp_path / str(len(os.listdir(tmp_path)))
    names = data.draw(st.sets(st.sampled_from(sorted(tree.RX_7900_XTX)), min_size=1))
    tree.add_card(root, tree.RX_7900_XTX | {name: data.draw(st.binary(max_size=40)) for name in sorted(names)})
    card = read_first(root)
    assert card.fault is None
    used, total = card.memory_used_bytes.value, card.memory_total_bytes.value
    assert used is None or total is None or 0 <= used <= total
