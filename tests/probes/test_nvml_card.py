"""One card over the real pynvml binding and a fake library: every field, and everything that can be wrong with it."""

import json
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from app.probes.card import CardReadings, ProbeSnapshot
from app.probes.nvidia import NvidiaProbe
from app.probes.reading import Absence, Reading

pynvml = pytest.importorskip("pynvml", reason="nvidia-ml-py (the nvidia extra) is not installed")
fake = import_module("tests.probes.fake_nvml")

KIB = 1024
ProbeOf = Callable[[object], NvidiaProbe]


def only_card(snapshot: ProbeSnapshot) -> CardReadings:
    assert snapshot.state == "ok"
    (card,) = snapshot.cards
    return card


def readings(card: CardReadings) -> dict[str, Reading[Any]]:
    return {name: getattr(card, name) for name in card.__slots__ if isinstance(getattr(card, name), Reading)}


def test_a_good_card_has_every_reading(probe_of: ProbeOf) -> None:
    library = fake.FakeNvml(fake.FakeCard())
    snapshot = probe_of(library).snapshot()
    card = only_card(snapshot)
    assert {name for name, reading in readings(card).items() if reading.value is None} == set()
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
    assert card.temperature_c == Reading(56, "°C")
    assert card.peak_bandwidth_bytes_per_s.value == pytest.approx(3.352e12, rel=1e-3)
    assert not card.unified_memory
    assert card.mig_enabled.value is False


def test_neither_the_uuid_nor_processes_leave_the_server(probe_of: ProbeOf) -> None:
    library = fake.FakeNvml(fake.FakeCard())
    snapshot = probe_of(library).snapshot()
    assert only_card(snapshot).uuid.value == "GPU-00000000-canary-uuid"
    assert "canary" not in json.dumps(snapshot.document(), allow_nan=False)
    assert "canary" not in repr(snapshot)
    assert not [symbol for symbol in library.calls if "process" in symbol.lower()]


def gb10(**changes: Any) -> Any:
    return fake.FakeCard(**{"name": b"NVIDIA GB10", "bus_bits": 0, "max_clocks": (3_000, 0), **changes})


@pytest.mark.parametrize(
    "card",
    [
        gb10(errors={fake.MEMORY_V1: fake.NOT_SUPPORTED, fake.MEMORY_V2: fake.NOT_SUPPORTED}),
        gb10(total=0, used=0, reserved=0),
        gb10(total=125_829_120 * KIB),
    ],
    ids=["not supported", "success with total 0", "success that counts the page cache"],
)
def test_gb10_shows_the_memory_of_the_machine(probe_of: ProbeOf, card: Any) -> None:
    seen = only_card(probe_of(fake.FakeNvml(card)).snapshot())
    assert seen.unified_memory
    assert seen.memory_total_bytes.value == 125_829_120 * KIB
    assert seen.memory_free_bytes.value == 104_857_600 * KIB
    assert seen.memory_used_bytes.value == (125_829_120 - 104_857_600) * KIB
    assert seen.memory_reserved_bytes.absence is Absence.NOT_SUPPORTED
    assert seen.peak_bandwidth_bytes_per_s.absence is Absence.ZERO_READING
    assert seen.gpu_utilization_percent.value == 97


@pytest.mark.parametrize(
    ("code", "absence"),
    [
        (fake.GPU_IS_LOST, Absence.GPU_LOST),
        (fake.NO_PERMISSION, Absence.NO_PERMISSION),
        (fake.UNKNOWN, Absence.UNKNOWN_ERROR),
    ],
)
def test_other_failures_are_not_taken_for_unified_memory(probe_of: ProbeOf, code: int, absence: Absence) -> None:
    card = gb10(errors={fake.MEMORY_V1: code, fake.MEMORY_V2: code})
    seen = only_card(probe_of(fake.FakeNvml(card)).snapshot())
    assert not seen.unified_memory
    assert seen.memory_total_bytes.absence is absence


def test_a_mig_slice_or_an_ordinary_card_is_not_unified(probe_of: ProbeOf) -> None:
    errors = {fake.MEMORY_V1: fake.NOT_SUPPORTED, fake.MEMORY_V2: fake.NOT_SUPPORTED}
    for card in (gb10(mig=1, errors=errors), fake.FakeCard(errors=errors), fake.FakeCard(total=0)):
        seen = only_card(probe_of(fake.FakeNvml(card)).snapshot())
        assert not seen.unified_memory
        assert seen.memory_total_bytes.value is None


@pytest.mark.parametrize("content", ["", "MemTotal: 5 kB\n", "MemTotal: 5 kB\nMemAvailable: 9 kB\n", None])
def test_without_the_kernels_account_unified_memory_stays_absent(
    probe_of: ProbeOf, tmp_path: Path, content: str | None
) -> None:
    meminfo = tmp_path / "meminfo"
    meminfo.unlink() if content is None else meminfo.write_text(content)
    seen = only_card(probe_of(fake.FakeNvml(gb10(total=0))).snapshot())
    assert seen.unified_memory
    assert seen.memory_total_bytes.absence is Absence.ZERO_READING


def test_a_jetson_that_answers_zero_to_everything_has_no_readings_but_memory(probe_of: ProbeOf) -> None:
    card = fake.FakeCard(
        name=b"Orin (nvgpu)", total=0, used=0, reserved=0, gpu=0, memory=0, clocks=(0, 0), max_clocks=(0, 0)
    )
    card.power_mw = card.limit_mw = card.temperature = card.bus_bits = 0
    seen = only_card(probe_of(fake.FakeNvml(card)).snapshot())
    present = {name for name, reading in readings(seen).items() if reading.value is not None}
    memory = {"memory_total_bytes", "memory_used_bytes", "memory_free_bytes"}
    assert present == {"uuid", "name", "mig_enabled"} | memory
    assert seen.gpu_utilization_percent.absence is Absence.ZERO_READING


def test_a_jetson_that_supports_nothing_has_only_names_and_memory(probe_of: ProbeOf) -> None:
    card = fake.FakeCard(name=b"NVIDIA Thor", errors={"*": fake.NOT_SUPPORTED, "nvmlDeviceGetName": 0})
    seen = only_card(probe_of(fake.FakeNvml(card)).snapshot())
    assert seen.unified_memory
    assert seen.memory_total_bytes.value == 125_829_120 * KIB
    assert seen.temperature_c.absence is Absence.NOT_SUPPORTED


def test_an_idle_card_keeps_its_zero_utilisation(probe_of: ProbeOf) -> None:
    seen = only_card(probe_of(fake.FakeNvml(fake.FakeCard(gpu=0, memory=0, used=0))).snapshot())
    assert seen.gpu_utilization_percent.value == 0
    assert seen.memory_used_bytes.value == 0


def test_mig_has_no_utilisation_of_the_whole_card(probe_of: ProbeOf) -> None:
    seen = only_card(probe_of(fake.FakeNvml(fake.FakeCard(mig=1))).snapshot())
    assert seen.mig_enabled.value is True
    assert seen.gpu_utilization_percent.absence is Absence.MIG_ENABLED
    assert seen.memory_utilization_percent.absence is Absence.MIG_ENABLED
    assert seen.memory_total_bytes.value == 81_559 * 1024**2


def test_wsl2_lacks_utilisation_and_memory_v2_but_not_the_rest(probe_of: ProbeOf) -> None:
    errors = {"nvmlDeviceGetUtilizationRates": fake.NOT_SUPPORTED, fake.MEMORY_V2: fake.UNKNOWN}
    seen = only_card(probe_of(fake.FakeNvml(fake.FakeCard(errors=errors))).snapshot())
    assert seen.gpu_utilization_percent.absence is Absence.NOT_SUPPORTED
    assert seen.memory_total_bytes.value == 81_559 * 1024**2
    assert seen.memory_reserved_bytes.absence is Absence.UNKNOWN_ERROR
    assert seen.temperature_c.value == 56


def test_an_old_driver_is_read_through_its_older_symbols(probe_of: ProbeOf) -> None:
    library = fake.FakeNvml(
        fake.FakeCard(), missing=(fake.MEMORY_V2, fake.TEMPERATURE_NEW, "nvmlDeviceGetMigMode"), driver=b"450.80.02"
    )
    seen = only_card(probe_of(library).snapshot())
    assert seen.memory_used_bytes.value == 10 * fake.GIB + fake.GIB // 2, "version 1 counts the reserve as used"
    assert seen.memory_reserved_bytes.absence is Absence.FUNCTION_NOT_FOUND
    assert seen.temperature_c.value == 56
    assert seen.mig_enabled.value is False


def test_a_future_driver_without_the_old_temperature_call_keeps_the_reason(probe_of: ProbeOf) -> None:
    card = fake.FakeCard(errors={fake.TEMPERATURE_NEW: fake.NOT_SUPPORTED})
    seen = only_card(probe_of(fake.FakeNvml(card, missing=("nvmlDeviceGetTemperature",))).snapshot())
    assert seen.temperature_c.absence is Absence.NOT_SUPPORTED


def test_a_vgpu_guest_has_names_and_memory(probe_of: ProbeOf) -> None:
    errors = dict.fromkeys(
        ["nvmlDeviceGetClockInfo", "nvmlDeviceGetMaxClockInfo", fake.TEMPERATURE_NEW, "nvmlDeviceGetTemperature"],
        fake.NOT_SUPPORTED,
    ) | {"nvmlDeviceGetPowerUsage": fake.NO_PERMISSION, "nvmlDeviceGetEnforcedPowerLimit": fake.NO_PERMISSION}
    seen = only_card(probe_of(fake.FakeNvml(fake.FakeCard(name=b"NVIDIA A40-8Q", gpu=0, errors=errors))).snapshot())
    assert seen.memory_total_bytes.value is not None
    assert seen.gpu_utilization_percent.value == 0
    assert seen.sm_clock_mhz.absence is seen.peak_bandwidth_bytes_per_s.absence is Absence.NOT_SUPPORTED
    assert seen.power_draw_w.absence is Absence.NO_PERMISSION


@pytest.mark.parametrize(
    ("symbol", "fields"),
    [
        ("nvmlDeviceGetName", {"name"}),
        ("nvmlDeviceGetUUID", {"uuid"}),
        ("nvmlDeviceGetMigMode", {"mig_enabled"}),
        ("nvmlDeviceGetUtilizationRates", {"gpu_utilization_percent", "memory_utilization_percent"}),
        ("nvmlDeviceGetClockInfo", {"sm_clock_mhz", "memory_clock_mhz"}),
        (
            "nvmlDeviceGetMaxClockInfo",
            {"sm_clock_max_mhz", "memory_clock_max_mhz", "peak_bandwidth_bytes_per_s"},
        ),
        ("nvmlDeviceGetPowerUsage", {"power_draw_w"}),
        ("nvmlDeviceGetEnforcedPowerLimit", {"power_limit_w"}),
        ("nvmlDeviceGetMemoryBusWidth", {"memory_bus_bits", "peak_bandwidth_bytes_per_s"}),
    ],
)
@pytest.mark.parametrize(
    ("code", "absence"),
    [
        (fake.NO_PERMISSION, Absence.NO_PERMISSION),
        (fake.TIMEOUT, Absence.TIMEOUT),
        (12_345, Absence.UNKNOWN_ERROR),
    ],
)
def test_one_failing_call_costs_only_its_own_fields(
    probe_of: ProbeOf, symbol: str, fields: set[str], code: int, absence: Absence
) -> None:
    seen = only_card(probe_of(fake.FakeNvml(fake.FakeCard(errors={symbol: code}))).snapshot())
    assert {name for name, reading in readings(seen).items() if reading.value is None} == fields
    assert {getattr(seen, name).absence for name in fields} == {absence}


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
        ({"max_clocks": (1_980, 0)}, "peak_bandwidth_bytes_per_s", Absence.ZERO_READING),
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
