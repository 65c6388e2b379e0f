"""The probe over the REAL binding, where it is installed, with functions of ours in the place of ROCm's library.

The binding takes its C functions from what `ctypes.CDLL` gives it. All of its own code runs: it checks arguments, has
structures filled by reference, and turns codes into exceptions and sentinels into "N/A".
"""

import ctypes
import importlib.util
import sys
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from app.machine.probes.amd import AmdProbe
from app.machine.probes.reading import Absence, Reading

fake = import_module("tests.machine.probes.fake_amdsmi")

SUCCESS, NOT_SUPPORTED, NO_PERMISSION = 0, 2, 10
MIB, GIB = 2**20, 2**30


class Symbol:
    """A C function: the binding sets its types as attributes and calls it."""

    def __init__(self, function: Callable[..., int | None]) -> None:
        self._function = function

    def __call__(self, *arguments: Any) -> int:
        return self._function(*arguments) or SUCCESS


class Library:
    """A library that serves one MI300X; what is not listed is not supported. Figures not set are "all ones"."""

    def __init__(self) -> None:
        self.ticks = 1_000
        self.codes: dict[str, int] = {}
        self.asked: list[str] = []

    def __getattr__(self, name: str) -> Symbol:
        if not name.startswith("amdsmi_"):
            raise AttributeError(name)
        served = getattr(type(self), f"_{name.removeprefix('amdsmi_').removeprefix('get_')}", None)

        def call(*arguments: Any) -> int | None:
            self.asked.append(name)
            if name in self.codes:
                return self.codes[name]
            return NOT_SUPPORTED if served is None else served(self, *arguments)

        return Symbol(call)

    def _init(self, flag: Any) -> None:
        assert int(flag) == 2, "AMD's graphics cards"

    def _shut_down(self) -> None:
        pass

    def _socket_handles(self, count: Any, handles: Any) -> None:
        count._obj.value = 1
        if handles:
            handles[0] = 11

    def _processor_handles(self, socket: Any, count: Any, handles: Any) -> None:
        count._obj.value = 1
        if handles:
            handles[0] = 22

    def _gpu_asic_info(self, handle: Any, info: Any) -> None:
        info._obj.market_name, info._obj.asic_serial = b"AMD Instinct MI300X", b"canary".hex().encode()
        info._obj.target_graphics_version = 0x942

    def _gpu_device_uuid(self, handle: Any, length: Any, uuid: Any) -> None:
        uuid.value = b"12ff74a1-canary"

    def _gpu_memory_total(self, handle: Any, kind: Any, total: Any) -> None:
        assert int(kind) == 0
        total._obj.value = 196_592 * MIB

    def _gpu_memory_usage(self, handle: Any, kind: Any, used: Any) -> None:
        used._obj.value = 20 * GIB

    def _gpu_vram_info(self, handle: Any, info: Any) -> None:
        info._obj.vram_type, info._obj.vram_bit_width = sys.modules["amdsmi"].AmdSmiVramType.HBM3, 8_192
        info._obj.vram_max_bandwidth = fake.UINT64

    def _gpu_activity(self, handle: Any, usage: Any) -> None:
        usage._obj.gfx_activity, usage._obj.umc_activity, usage._obj.mm_activity = fake.UINT16, 41, fake.UINT16

    def _clock_info(self, handle: Any, kind: Any, info: Any) -> None:
        info._obj.clk = 1_300 if int(kind) == 4 else fake.UINT16  # Too narrow for the binding to see.
        info._obj.max_clk = 1_300 if int(kind) == 4 else 2_100

    def _power_info(self, handle: Any, info: Any) -> None:
        info._obj.socket_power = info._obj.current_socket_power = 650
        info._obj.average_socket_power, info._obj.power_limit = fake.UINT16, 750_000_000

    def _temp_metric(self, handle: Any, sensor: Any, metric: Any, temperature: Any) -> int | None:
        temperature._obj.value = {1: 63, 2: 48}.get(int(sensor), 0)
        return SUCCESS if int(sensor) in (1, 2) else NOT_SUPPORTED

    def _pcie_info(self, handle: Any, info: Any) -> None:
        info._obj.pcie_metric.pcie_width, info._obj.pcie_metric.pcie_speed = 16, 32_000

    def _link_metrics(self, handle: Any, metrics: Any) -> None:
        metrics._obj.num_links = 8
        for number in range(8):
            link = metrics._obj.links[number]
            link.read, link.write = (fake.UINT64, fake.UINT64) if number == 7 else (self.ticks, 2 * self.ticks)

    def _gpu_metrics_info(self, handle: Any, metrics: Any) -> None:
        ctypes.memset(ctypes.addressof(metrics._obj), 0xFF, ctypes.sizeof(metrics._obj))
        metrics._obj.common_header.format_revision = 1
        metrics._obj.accumulation_counter, metrics._obj.ppt_residency_acc = self.ticks, self.ticks // 2

    def _gpu_compute_partition(self, handle: Any, mode: Any, length: Any) -> None:
        mode.value = b"SPX"


@pytest.fixture
def library(monkeypatch: pytest.MonkeyPatch) -> Iterator[Library]:
    """Ours, in the place of ROCm's, for a binding that is imported anew."""
    if importlib.util.find_spec("amdsmi") is None:
        pytest.skip("amdsmi (the amd extra) is not installed")
    forget_the_binding()
    library = Library()
    monkeypatch.setattr(ctypes, "CDLL", lambda name: library)
    yield library
    forget_the_binding()


def forget_the_binding() -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == "amdsmi"]:
        del sys.modules[name]


def test_a_card_is_read_through_the_binding(library: Library, tmp_path: Path) -> None:
    clock = fake.FakeClock()
    probe = AmdProbe(clock=clock, sysfs=tmp_path)
    probe.snapshot()
    clock.now_s += 1
    library.ticks = 2_000
    snapshot = probe.snapshot()
    assert snapshot.state == "ok"
    (card,) = snapshot.cards
    assert (card.name.value, card.uuid.value) == ("AMD Instinct MI300X", "12ff74a1-canary")
    assert card.memory_total_bytes.value == 196_592 * MIB
    assert card.memory_used_bytes.value == 20 * GIB
    assert card.gpu_utilization_percent.absence is Absence.NOT_SUPPORTED
    assert card.dram_activity_percent.value == 41
    assert (card.sm_clock_mhz.absence, card.sm_clock_max_mhz.value) == (Absence.NOT_SUPPORTED, 2_100)
    assert (card.memory_clock_mhz.value, card.memory_bus_bits.value) == (1_300, 8_192)
    assert (card.power_draw_w.value, card.power_limit_w.value) == (650.0, 750.0)
    assert (card.temperature_c.value, card.memory_temperature_c.value) == (63, 48)
    assert (card.pcie_generation.value, card.pcie_lanes.value) == (5, 16)
    assert card.peak_bandwidth_bytes_per_s.value == pytest.approx(5.3248e12)
    assert card.throttle_reasons == Reading(("power cap",), read_from="residency counters")
    assert card.nvlink_received_bytes_per_s.value == 7 * 1_000 * 1_000
    assert card.nvlink_sent_bytes_per_s.value == 7 * 2_000 * 1_000
    probe.close()
    assert library.asked[-1] == "amdsmi_shut_down"


def test_codes_of_the_binding_are_understood(library: Library, tmp_path: Path) -> None:
    library.codes = {"amdsmi_get_power_info": NO_PERMISSION, "amdsmi_get_gpu_activity": 9, "amdsmi_get_clock_info": 8}
    (card,) = AmdProbe(sysfs=tmp_path).snapshot().cards
    assert card.power_draw_w.absence is Absence.NO_PERMISSION
    assert card.gpu_utilization_percent.absence is card.sm_clock_mhz.absence is Absence.TIMEOUT
    library.codes = {"amdsmi_init": NO_PERMISSION}
    assert AmdProbe(sysfs=tmp_path).snapshot().absence is Absence.NO_PERMISSION


def test_without_the_library_the_binding_is_silent(
    library: Library, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def missing(name: str) -> None:
        raise OSError(f"{name}: cannot open shared object file")

    monkeypatch.setattr(ctypes, "CDLL", missing)
    assert AmdProbe(sysfs=tmp_path).snapshot().absence is Absence.NO_DRIVER
    assert capfd.readouterr() == ("", "")
