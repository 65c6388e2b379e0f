"""One card over the real pynvml binding and a fake library: every field, and everything that can be wrong with it."""

import json
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from app.machine.probes.accelerator import CardReadings
from app.machine.probes.nvidia import NvidiaProbe
from app.machine.probes.reading import Absence, Reading
from tests.machine.probes.seen import only_card, readings, second_look

pynvml = pytest.importorskip("pynvml", reason="nvidia-ml-py (the nvidia extra) is not installed")
fake = import_module("tests.machine.probes.fake_nvml")

MISSING_AT_FIRST = {
    *("nvlink_sent_bytes_per_s", "nvlink_received_bytes_per_s", "pcie_sent_bytes_per_s", "pcie_received_bytes_per_s"),
    *("dram_activity_percent", "tensor_activity_percent", "sm_activity_percent", "sm_occupancy_percent"),
}
ProbeOf = Callable[[object], NvidiaProbe]


def missing(card: CardReadings) -> set[str]:
    return {name for name, reading in readings(card).items() if reading.value is None}


def test_a_good_card_has_every_reading(probe_of: ProbeOf, clock: Any) -> None:
    hopper = fake.FakeCard()
    probe = probe_of(fake.FakeNvml(hopper))
    first = only_card(probe.snapshot())
    assert missing(first) == MISSING_AT_FIRST
    assert {getattr(first, name).absence for name in MISSING_AT_FIRST} == {Absence.NEEDS_TWO_SAMPLES}
    hopper.count(nvlink_sent=2_000, nvlink_received=3_000, pcie_sent=4_000, pcie_received=5_000)
    clock.now_s += 2
    snapshot = probe.snapshot()
    card = only_card(snapshot)
    assert missing(card) == set()
    assert (snapshot.driver_version.value, card.name.value) == ("590.44.01", "NVIDIA H100 80GB HBM3")
    total, used, reserved, free = (
        getattr(card, f"memory_{part}_bytes").value for part in ("total", "used", "reserved", "free")
    )
    assert total == 81_559 * 1024**2
    assert free == total - used - reserved
    assert (card.gpu_utilization_percent.value, card.memory_utilization_percent.value) == (97, 41)
    assert (card.sm_clock_mhz.value, card.sm_clock_max_mhz.value) == (1_755, 1_980)
    assert (card.memory_clock_mhz.value, card.memory_clock_max_mhz.value) == (2_619, 2_619)
    assert (card.power_draw_w, card.power_limit_w) == (Reading(412.345, "W"), Reading(700.0, "W"))
    assert (card.temperature_c, card.memory_temperature_c) == (Reading(56, "°C"), Reading(71, "°C"))
    assert (card.compute_capability.value, card.addressing_mode.value) == ("9.0", "HMM")
    assert card.throttle_reasons.value == ("software power cap",)
    assert (card.pcie_generation.value, card.pcie_lanes.value) == (5, 16)
    assert (card.nvlink_sent_bytes_per_s, card.nvlink_received_bytes_per_s) == (
        Reading(1_000 * 1024.0, "B/s"),
        Reading(1_500 * 1024.0, "B/s"),
    )
    assert (card.pcie_sent_bytes_per_s.value, card.pcie_received_bytes_per_s.value) == (2_000, 2_500)
    assert (card.dram_activity_percent, card.tensor_activity_percent) == (Reading(62.0, "%"), Reading(31.0, "%"))
    assert (card.sm_activity_percent.value, card.sm_occupancy_percent.value) == (88.0, 41.5)
    assert card.peak_bandwidth_bytes_per_s.value == pytest.approx(3.352e12, rel=1e-3)
    assert not card.unified_memory
    assert card.mig_enabled.value is False
    assert card.mig_instances == ()


@pytest.mark.parametrize("content", ["", "MemTotal: 5 kB\n", "MemTotal: 5 kB\nMemAvailable: 9 kB\n", None])
def test_without_the_kernels_account_unified_memory_stays_absent(
    probe_of: ProbeOf, tmp_path: Path, content: str | None
) -> None:
    meminfo = tmp_path / "meminfo"
    meminfo.unlink() if content is None else meminfo.write_text(content)
    seen = only_card(probe_of(fake.FakeNvml(fake.FakeCard(name=b"NVIDIA GB10", total=0))).snapshot())
    assert seen.unified_memory
    assert seen.memory_total_bytes.absence is Absence.ZERO_READING


def test_a_driver_that_changes_after_the_memory_was_read_is_not_taken_for_unified_memory(probe_of: ProbeOf) -> None:
    part = fake.FakeCard(name=b"NVIDIA GB10", errors={"nvmlDeviceGetPowerUsage": fake.VERSION_MISMATCH})
    _, seen = probe_of(fake.FakeNvml(fake.FakeCard(), part)).snapshot().cards
    assert (seen.fault, seen.unified_memory) == (Absence.VERSION_MISMATCH, False)


def test_an_idle_card_keeps_its_zero_utilisation(probe_of: ProbeOf) -> None:
    seen = only_card(probe_of(fake.FakeNvml(fake.FakeCard(gpu=0, memory=0, used=0))).snapshot())
    assert seen.gpu_utilization_percent.value == 0
    assert seen.memory_used_bytes.value == 0


def test_a_future_driver_without_the_old_temperature_call_keeps_the_reason(probe_of: ProbeOf) -> None:
    card = fake.FakeCard(errors={fake.TEMPERATURE_NEW: fake.NOT_SUPPORTED})
    seen = only_card(probe_of(fake.FakeNvml(card, missing=("nvmlDeviceGetTemperature",))).snapshot())
    assert seen.temperature_c.absence is Absence.NOT_SUPPORTED


COSTS = {
    "nvmlDeviceGetName": {"name"},
    "nvmlDeviceGetUUID": {"uuid", *MISSING_AT_FIRST},
    "nvmlDeviceGetMigMode": {"mig_enabled"},
    "nvmlDeviceGetUtilizationRates": {"gpu_utilization_percent", "memory_utilization_percent"},
    "nvmlDeviceGetClockInfo": {"sm_clock_mhz", "memory_clock_mhz"},
    "nvmlDeviceGetMaxClockInfo": {"sm_clock_max_mhz", "memory_clock_max_mhz", "peak_bandwidth_bytes_per_s"},
    "nvmlDeviceGetPowerUsage": {"power_draw_w"},
    "nvmlDeviceGetEnforcedPowerLimit": {"power_limit_w"},
    "nvmlDeviceGetMemoryBusWidth": {"memory_bus_bits", "peak_bandwidth_bytes_per_s"},
    "nvmlDeviceGetCudaComputeCapability": {"compute_capability"},
    "nvmlDeviceGetAddressingMode": {"addressing_mode"},
    "nvmlDeviceGetCurrPcieLinkGeneration": {"pcie_generation"},
    "nvmlDeviceGetCurrPcieLinkWidth": {"pcie_lanes"},
    "nvmlDeviceGetFieldValues": {"memory_temperature_c", "nvlink_sent_bytes_per_s", "nvlink_received_bytes_per_s"},
    "nvmlGpmSampleGet": {name for name in MISSING_AT_FIRST if name.endswith("_percent")},
    "nvmlGpmMetricsGet": {name for name in MISSING_AT_FIRST if name.endswith("_percent")},
    "nvmlGpmSampleAlloc": {name for name in MISSING_AT_FIRST if name.endswith("_percent")},
    "nvmlGpmQueryDeviceSupport": set(),
    "nvmlDeviceGetPcieThroughput": set(),
}


@pytest.mark.parametrize("symbol", list(COSTS))
@pytest.mark.parametrize(
    ("code", "absence"),
    [
        (fake.NO_PERMISSION, Absence.NO_PERMISSION),
        (fake.TIMEOUT, Absence.TIMEOUT),
        (12_345, Absence.UNKNOWN_ERROR),
    ],
)
def test_one_failing_call_costs_only_its_own_fields(
    probe_of: ProbeOf, clock: Any, symbol: str, code: int, absence: Absence
) -> None:
    library = fake.FakeNvml(fake.FakeCard())
    library.errors[symbol] = code
    seen = second_look(probe_of(library), clock)
    assert missing(seen) == COSTS[symbol]
    assert {getattr(seen, name).absence for name in COSTS[symbol]} <= {absence}


@pytest.mark.parametrize(
    ("changes", "field", "absence"),
    [
        ({"used": 2**40}, "memory_used_bytes", Absence.IMPLAUSIBLE),
        ({"total": 2**64 - 1}, "memory_total_bytes", Absence.IMPLAUSIBLE),
        ({"total": 2**64 - 1}, "memory_used_bytes", Absence.IMPLAUSIBLE),
        ({"power_mw": 2**32 - 1}, "power_draw_w", Absence.IMPLAUSIBLE),
        ({"limit_mw": 0}, "power_limit_w", Absence.ZERO_READING),
        ({"temperature": 0xFFFFFFFF}, "temperature_c", Absence.IMPLAUSIBLE),
        ({"gpu": 2**32 - 1}, "gpu_utilization_percent", Absence.IMPLAUSIBLE),
        ({"memory": 101}, "memory_utilization_percent", Absence.IMPLAUSIBLE),
        ({"max_clocks": (2**32 - 1, 2_619)}, "sm_clock_max_mhz", Absence.IMPLAUSIBLE),
        ({"bus_bits": 2**32 - 1}, "peak_bandwidth_bytes_per_s", Absence.IMPLAUSIBLE),
        ({"capability": (0, 0)}, "compute_capability", Absence.ZERO_READING),
        ({"capability": (9, -1)}, "compute_capability", Absence.IMPLAUSIBLE),
        ({"capability": (2**31 - 1, 0)}, "compute_capability", Absence.IMPLAUSIBLE),
        ({"addressing": 3}, "addressing_mode", Absence.IMPLAUSIBLE),
        ({"pcie": (2**32 - 1, 16)}, "pcie_generation", Absence.IMPLAUSIBLE),
        ({"pcie": (0, 0)}, "pcie_lanes", Absence.ZERO_READING),
        ({"fields": {82: (1, 2**32 - 1)}}, "memory_temperature_c", Absence.IMPLAUSIBLE),
        ({"fields": {82: (0, 1e300)}}, "memory_temperature_c", Absence.IMPLAUSIBLE),
        ({"fields": {82: (77, 5)}}, "memory_temperature_c", Absence.IMPLAUSIBLE),
        ({"fields": {82: (1, 0)}}, "memory_temperature_c", Absence.ZERO_READING),
        ({"fields": {}}, "memory_temperature_c", Absence.FUNCTION_NOT_FOUND),
    ],
)
def test_an_absurd_figure_is_an_absence(
    probe_of: ProbeOf, changes: dict[str, Any], field: str, absence: Absence
) -> None:
    snapshot = probe_of(fake.FakeNvml(fake.FakeCard(**changes))).snapshot()
    assert getattr(only_card(snapshot), field).absence is absence
    json.dumps(snapshot.document(), allow_nan=False)


def test_used_over_total_costs_only_that_figure(probe_of: ProbeOf) -> None:
    seen = only_card(probe_of(fake.FakeNvml(fake.FakeCard(total=10, used=11, reserved=2))).snapshot())
    assert seen.memory_total_bytes.value == 10
    assert seen.memory_used_bytes.absence is Absence.IMPLAUSIBLE


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        (b"NVIDIA \xff\xfeH200", "NVIDIA \ufffd\ufffdH200"),
        ("NVIDIA \u202eH200\x1b[2J".encode(), "NVIDIA H200 [2J"),
        (b"<script>alert(1)</script>", "<script>alert(1)</script>"),
        (b"A" * 500, "A" * 80),
    ],
)
def test_a_hostile_name_is_cleaned_and_capped(probe_of: ProbeOf, raw: bytes, shown: str) -> None:
    assert only_card(probe_of(fake.FakeNvml(fake.FakeCard(name=raw))).snapshot()).name.value == shown


@pytest.mark.parametrize("answer", [b"Tesla T4", "Tesla T4"])
def test_old_and_new_bindings_give_bytes_or_text(
    probe_of: ProbeOf, monkeypatch: pytest.MonkeyPatch, answer: object
) -> None:
    probe = probe_of(fake.FakeNvml(fake.FakeCard()))
    monkeypatch.setattr(pynvml, "nvmlDeviceGetName", lambda handle: answer)
    assert only_card(probe.snapshot()).name.value == "Tesla T4"


def test_an_older_binding_costs_only_what_it_lacks(probe_of: ProbeOf, monkeypatch: pytest.MonkeyPatch) -> None:
    probe = probe_of(fake.FakeNvml(fake.FakeCard()))
    monkeypatch.delattr(pynvml, "nvmlDeviceGetTemperatureV")
    monkeypatch.delattr(pynvml, "nvmlDeviceGetMemoryBusWidth")
    monkeypatch.setattr(pynvml, "nvmlDeviceGetEnforcedPowerLimit", lambda: None)
    seen = only_card(probe.snapshot())
    assert seen.temperature_c.value == 56
    assert seen.memory_bus_bits.absence is Absence.FUNCTION_NOT_FOUND
    assert seen.power_limit_w.absence is Absence.UNKNOWN_ERROR
