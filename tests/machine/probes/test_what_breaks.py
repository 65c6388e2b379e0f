"""Every place where reading an NVIDIA card is known to break, one test for each, in the order of the notes on probes.

The real pynvml binding over a fake library; `test_stub_library.py` meets some of them again over a real shared library.
"""

import asyncio
import json
import time
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from app.machine.probes.nvidia import CARD_REST_S, NvidiaProbe
from app.machine.probes.reading import Absence
from app.machine.probes.sampler import Sampler
from tests.machine.probes.seen import only_card, present, second_look

pynvml = pytest.importorskip("pynvml", reason="nvidia-ml-py (the nvidia extra) is not installed")
fake = import_module("tests.machine.probes.fake_nvml")

KIB = 1024
ProbeOf = Callable[[object], NvidiaProbe]
NAMES = {"name", "uuid", "mig_enabled"}
MEMORY = {"memory_total_bytes", "memory_used_bytes", "memory_free_bytes"}


def gb10(**changes: Any) -> Any:
    return fake.FakeCard(**{"name": b"NVIDIA GB10", "bus_bits": 0, "max_clocks": (3_000, 0), **changes})


# No driver.


def test_no_driver_is_a_calm_answer_and_is_not_asked_for_all_the_time(
    probe_of: ProbeOf, monkeypatch: pytest.MonkeyPatch, clock: Any
) -> None:
    loads: list[str] = []

    def no_such_library(name: str) -> object:
        loads.append(name)
        raise OSError(f"{name}: cannot open shared object file")

    probe = probe_of(None)
    monkeypatch.setattr(pynvml, "CDLL", no_such_library)
    first, second = probe.snapshot(), probe.snapshot()
    assert (first.state, first.absence, first.cards) == ("absent", Absence.NO_DRIVER, ())
    assert second.absence is Absence.NO_DRIVER
    assert len(loads) == 1
    clock.now_s += 1
    probe.snapshot()
    assert len(loads) == 2
    for _ in range(600):
        clock.now_s += 1
        probe.snapshot()
    assert 10 < len(loads) < 20
    probe.close()
    probe.close()


# DGX Spark GB10, some Grace and Jetson: memory that is the machine's.


@pytest.mark.parametrize(
    "card",
    [
        gb10(errors={fake.MEMORY_V1: fake.NOT_SUPPORTED, fake.MEMORY_V2: fake.NOT_SUPPORTED}),
        gb10(total=0, used=0, reserved=0),
        gb10(total=125_829_120 * KIB),
    ],
    ids=["not supported", "success with total 0", "success that counts the page cache"],
)
def test_gb10_shows_the_memory_of_the_machine_and_no_pcie_link(probe_of: ProbeOf, clock: Any, card: Any) -> None:
    seen = second_look(probe_of(fake.FakeNvml(card)), clock)
    assert seen.unified_memory
    assert seen.memory_total_bytes.value == 125_829_120 * KIB
    assert seen.memory_free_bytes.value == 104_857_600 * KIB, "what is available, which is more than what is free"
    assert seen.memory_used_bytes.value == (125_829_120 - 104_857_600) * KIB
    assert seen.memory_reserved_bytes.absence is Absence.NOT_SUPPORTED
    assert seen.peak_bandwidth_bytes_per_s.absence is Absence.ZERO_READING
    assert seen.gpu_utilization_percent.value == 97
    assert not {name for name in present(seen) if name.startswith("pcie")}, (
        "the link inside the package is no PCIe slot"
    )


# The same, other errors.


@pytest.mark.parametrize(
    ("code", "absence"),
    [
        (fake.GPU_IS_LOST, Absence.GPU_LOST),
        (fake.RESET_REQUIRED, Absence.RESET_REQUIRED),
        (fake.NO_PERMISSION, Absence.NO_PERMISSION),
        (fake.UNKNOWN, Absence.UNKNOWN_ERROR),
    ],
)
def test_other_errors_are_not_taken_for_unified_memory(probe_of: ProbeOf, code: int, absence: Absence) -> None:
    card = gb10(errors={fake.MEMORY_V1: code, fake.MEMORY_V2: code})
    seen = only_card(probe_of(fake.FakeNvml(card)).snapshot())
    assert not seen.unified_memory
    assert seen.memory_total_bytes.absence is absence


def test_a_version_mismatch_is_not_taken_for_unified_memory(probe_of: ProbeOf) -> None:
    errors = {fake.MEMORY_V1: fake.VERSION_MISMATCH, fake.MEMORY_V2: fake.VERSION_MISMATCH}
    snapshot = probe_of(fake.FakeNvml(gb10(errors=errors))).snapshot()
    assert (snapshot.absence, snapshot.cards) == (Absence.VERSION_MISMATCH, ())


@pytest.mark.parametrize("kind", ["a MIG slice", "an ordinary card", "an ordinary card with total 0"])
def test_a_mig_slice_or_an_ordinary_card_is_not_unified(probe_of: ProbeOf, kind: str) -> None:
    errors = {fake.MEMORY_V1: fake.NOT_SUPPORTED, fake.MEMORY_V2: fake.NOT_SUPPORTED}
    card = {
        "a MIG slice": gb10(mig=1, errors=errors),
        "an ordinary card": fake.FakeCard(errors=errors),
        "an ordinary card with total 0": fake.FakeCard(total=0),
    }[kind]
    seen = only_card(probe_of(fake.FakeNvml(card)).snapshot())
    assert not seen.unified_memory
    assert seen.memory_total_bytes.value is None


# GH200: coherent memory.


@pytest.mark.parametrize(("mode", "shown"), [(0, "none"), (1, "HMM"), (2, "ATS")])
def test_gh200_says_how_it_shares_addresses_and_keeps_its_own_memory(probe_of: ProbeOf, mode: int, shown: str) -> None:
    card = fake.FakeCard(name=b"NVIDIA GH200 480GB", total=97_871 * KIB**2, addressing=mode)
    seen = only_card(probe_of(fake.FakeNvml(card)).snapshot())
    assert seen.addressing_mode.value == shown
    assert not seen.unified_memory
    assert seen.memory_total_bytes.value == 97_871 * KIB**2


# MIG on.


def test_mig_has_no_percentage_of_the_whole_card_and_lists_its_instances(probe_of: ProbeOf, clock: Any) -> None:
    slices = [
        fake.FakeCard(name=b"NVIDIA H100 80GB HBM3 MIG 3g.40gb", uuid=b"MIG-1", total=40 * fake.GIB, gpu_instance=2),
        None,
        fake.FakeCard(name=b"NVIDIA H100 80GB HBM3 MIG 1g.10gb", uuid=b"MIG-2", total=10 * fake.GIB, gpu_instance=9),
    ]
    slices[2].metrics = {**slices[2].metrics, fake.DRAM_BANDWIDTH: 7.0}
    # What drivers answer for the whole of a split card, if they answer at all, is not to be shown.
    library = fake.FakeNvml(fake.FakeCard(mig=1, instances=slices, gpu=100, memory=100))
    probe = probe_of(library)
    first = only_card(probe.snapshot())
    clock.now_s += 1
    seen = only_card(probe.snapshot())
    assert seen.mig_enabled.value is True
    assert {
        reading.absence
        for reading in (
            seen.gpu_utilization_percent,
            seen.memory_utilization_percent,
            seen.dram_activity_percent,
            seen.tensor_activity_percent,
            seen.sm_activity_percent,
            seen.sm_occupancy_percent,
        )
    } == {Absence.MIG_ENABLED}
    assert [(each.index, each.name.value) for each in seen.mig_instances] == [
        (0, "NVIDIA H100 80GB HBM3 MIG 3g.40gb"),
        (2, "NVIDIA H100 80GB HBM3 MIG 1g.10gb"),
    ]
    assert [each.memory_total_bytes.value for each in seen.mig_instances] == [40 * fake.GIB, 10 * fake.GIB]
    assert {each.dram_activity_percent.absence for each in first.mig_instances} == {Absence.NEEDS_TWO_SAMPLES}
    assert [each.dram_activity_percent.value for each in seen.mig_instances] == [62.0, 7.0]
    assert library.calls["nvmlDeviceGetUtilizationRates()"] == library.calls[fake.GPM_SAMPLE + "()"] == 0


# Container: host PIDs.


def test_processes_are_neither_asked_for_nor_shown(probe_of: ProbeOf, clock: Any) -> None:
    library = fake.FakeNvml(fake.FakeCard(), fake.FakeCard(mig=1, instances=[fake.FakeCard()]))
    probe = probe_of(library)
    probe.snapshot()
    clock.now_s += 1
    shown = json.dumps(probe.snapshot().document()).lower()
    assert not [symbol for symbol in library.calls if "process" in symbol.lower() or "accounting" in symbol.lower()]
    assert "process" not in shown
    assert '"pid' not in shown


# Container after daemon-reload.


def test_a_container_after_daemon_reload_is_stale_and_recovers_by_itself(probe_of: ProbeOf, clock: Any) -> None:
    library = fake.FakeNvml(fake.FakeCard())
    sampler = Sampler([probe_of(library)], interval_s=1, clock=clock)

    async def watch() -> list[tuple[str, int, bool, Absence | None]]:
        seen: list[tuple[str, int, bool, Absence | None]] = []
        for second in range(10):
            library.errors = dict.fromkeys((fake.INIT, fake.COUNT), fake.UNKNOWN) if 1 <= second < 5 else {}
            (snapshot,) = await sampler.latest()
            seen.append((snapshot.state, snapshot.missed_polls, snapshot.stale, snapshot.absence))
            clock.now_s += 1
        await sampler.aclose()
        return seen

    seen = asyncio.run(watch())
    assert seen[0] == ("ok", 0, False, None)
    assert seen[1:3] == [("ok", 1, False, Absence.UNKNOWN_ERROR), ("ok", 2, True, Absence.UNKNOWN_ERROR)]
    assert seen[-1] == ("ok", 0, False, None)
    assert library.calls[fake.INIT + "()"] <= 5, "it is opened again after longer and longer pauses"


def test_a_container_that_starts_with_unknown_error_recovers(probe_of: ProbeOf, clock: Any) -> None:
    library = fake.FakeNvml(fake.FakeCard())
    library.errors[fake.INIT] = fake.UNKNOWN
    probe = probe_of(library)
    for _ in range(5):
        assert probe.snapshot().absence is Absence.UNKNOWN_ERROR
    assert library.calls[fake.INIT + "()"] == 1
    library.errors.clear()
    clock.now_s += 1
    assert probe.snapshot().state == "ok"
    library.errors[fake.HANDLE] = fake.UNKNOWN
    assert probe.snapshot().absence is Absence.UNKNOWN_ERROR
    library.errors.clear()
    clock.now_s += 1
    assert probe.snapshot().state == "ok"


# WSL2.


def test_wsl2_lacks_utilisation_and_memory_v2_but_not_the_rest(probe_of: ProbeOf) -> None:
    errors = {"nvmlDeviceGetUtilizationRates": fake.NOT_SUPPORTED, fake.MEMORY_V2: fake.UNKNOWN}
    seen = only_card(probe_of(fake.FakeNvml(fake.FakeCard(errors=errors))).snapshot())
    assert seen.gpu_utilization_percent.absence is Absence.NOT_SUPPORTED
    assert seen.memory_total_bytes.value == 81_559 * KIB**2
    assert seen.memory_reserved_bytes.absence is Absence.UNKNOWN_ERROR
    assert seen.temperature_c.value == 56


# Old driver, new binding.


def test_an_old_driver_is_read_through_its_older_symbols(probe_of: ProbeOf) -> None:
    newer = (
        *(fake.MEMORY_V2, fake.TEMPERATURE_NEW, fake.REASONS_NEW, fake.ADDRESSING, "nvmlDeviceGetMigMode"),
        *(fake.GPM_SUPPORT, fake.GPM_ALLOC, fake.GPM_SAMPLE, fake.GPM_METRICS, fake.GPM_FREE),
    )
    library = fake.FakeNvml(fake.FakeCard(), missing=newer, driver=b"450.80.02")
    library.cards[0].fields = {}  # No field that is read here was known to it.
    seen = only_card(probe_of(library).snapshot())
    assert seen.memory_used_bytes.value == 10 * fake.GIB + fake.GIB // 2, "version 1 counts the reserve as used"
    assert seen.memory_reserved_bytes.absence is Absence.FUNCTION_NOT_FOUND
    assert seen.temperature_c.value == 56
    assert (seen.throttle_reasons.value, seen.throttle_reasons.read_from) == (("software power cap",), fake.REASONS_OLD)
    assert seen.mig_enabled.value is False
    assert seen.pcie_sent_bytes_per_s.value == 1.2e9
    without = (
        seen.addressing_mode,
        seen.dram_activity_percent,
        seen.memory_temperature_c,
        seen.nvlink_sent_bytes_per_s,
    )
    assert {reading.absence for reading in without} == {Absence.FUNCTION_NOT_FOUND}


# Driver upgraded live.


def test_a_driver_upgraded_live_ends_polling_until_the_next_attempt(probe_of: ProbeOf, clock: Any) -> None:
    card = fake.FakeCard(name=b"NVIDIA GB10")
    library = fake.FakeNvml(card)
    probe = probe_of(library)
    assert probe.snapshot().state == "ok"
    card.errors = {"*": fake.VERSION_MISMATCH}
    snapshot = probe.snapshot()
    assert (snapshot.state, snapshot.absence, snapshot.cards) == ("absent", Absence.VERSION_MISMATCH, ())
    calls = library.calls.total()
    assert probe.snapshot().absence is Absence.VERSION_MISMATCH
    assert library.calls.total() == calls
    card.errors = {}
    clock.now_s += 2
    assert probe.snapshot().state == "ok"


@pytest.mark.parametrize(
    ("code", "fault"), [(fake.GPU_IS_LOST, Absence.GPU_LOST), (fake.RESET_REQUIRED, Absence.RESET_REQUIRED)]
)
def test_a_lost_card_is_reported_and_left_alone_for_a_while(
    probe_of: ProbeOf, clock: Any, code: int, fault: Absence
) -> None:
    good, lost = fake.FakeCard(), fake.FakeCard(uuid=b"GPU-2", errors={"nvmlDeviceGetClockInfo": code})
    library = fake.FakeNvml(good, lost)
    probe = probe_of(library)
    first, second = probe.snapshot().cards
    assert first.fault is None
    assert (second.fault, second.temperature_c.absence, second.memory_total_bytes.absence) == (fault, fault, fault)
    assert second.name.value == "NVIDIA H100 80GB HBM3"
    asked = library.calls["nvmlDeviceGetClockInfo()"]
    assert probe.snapshot().cards[1].fault is fault
    assert library.calls["nvmlDeviceGetClockInfo()"] == asked + 2, "only the good card's two clocks were asked again"
    lost.errors.clear()
    clock.now_s += CARD_REST_S
    assert probe.snapshot().cards[1].fault is None
    assert library.calls[fake.INIT + "()"] == 2, "only a new session brings a lost card back"


# vGPU guest.


def test_a_vgpu_guest_has_names_and_memory(probe_of: ProbeOf) -> None:
    clocks = ["nvmlDeviceGetClockInfo", "nvmlDeviceGetMaxClockInfo", fake.TEMPERATURE_NEW, "nvmlDeviceGetTemperature"]
    links = [fake.PCIE_THROUGHPUT, "nvmlDeviceGetCurrPcieLinkGeneration", "nvmlDeviceGetCurrPcieLinkWidth", fake.FIELDS]
    errors = dict.fromkeys([*clocks, *links, fake.GPM_SAMPLE], fake.NOT_SUPPORTED)
    errors |= dict.fromkeys(["nvmlDeviceGetPowerUsage", "nvmlDeviceGetEnforcedPowerLimit"], fake.NO_PERMISSION)
    seen = only_card(probe_of(fake.FakeNvml(fake.FakeCard(name=b"NVIDIA A40-8Q", gpu=0, errors=errors))).snapshot())
    assert seen.memory_total_bytes.value is not None
    assert seen.gpu_utilization_percent.value == 0
    missing = (seen.sm_clock_mhz, seen.pcie_lanes, seen.pcie_sent_bytes_per_s, seen.nvlink_sent_bytes_per_s)
    assert {reading.absence for reading in missing} == {Absence.NOT_SUPPORTED}
    assert seen.peak_bandwidth_bytes_per_s.absence is seen.dram_activity_percent.absence is Absence.NOT_SUPPORTED
    assert seen.power_draw_w.absence is Absence.NO_PERMISSION


# Jetson.


def jetson(**changes: Any) -> Any:
    """What an Orin answers: success and zero to everything but its name."""
    nothing: dict[str, Any] = dict.fromkeys(
        ["total", "used", "reserved", "gpu", "memory", "power_mw", "limit_mw", "temperature", "bus_bits", "reasons"], 0
    )
    pairs: dict[str, Any] = dict.fromkeys(["clocks", "max_clocks", "pcie", "pcie_kb_per_s", "capability"], (0, 0))
    fields = dict.fromkeys([82, 138, 139, 197, 198], (fake.UNSIGNED_INT, 0))
    rest = {"name": b"Orin (nvgpu)", "addressing": 0, "gpm_supported": 0, "fields": fields}
    return fake.FakeCard(**{**nothing, **pairs, **rest, **changes})


def test_a_jetson_that_answers_zero_to_everything_has_no_readings_but_memory(probe_of: ProbeOf, clock: Any) -> None:
    seen = second_look(probe_of(fake.FakeNvml(jetson())), clock)
    assert present(seen) == NAMES | MEMORY, "no nothing that looks like a zero"
    assert seen.gpu_utilization_percent.absence is seen.throttle_reasons.absence is Absence.ZERO_READING


def test_a_jetson_that_supports_nothing_has_only_names_and_memory(probe_of: ProbeOf) -> None:
    card = fake.FakeCard(name=b"NVIDIA Thor", errors={"*": fake.NOT_SUPPORTED, "nvmlDeviceGetName": 0})
    seen = only_card(probe_of(fake.FakeNvml(card)).snapshot())
    assert seen.unified_memory
    assert present(seen) == {"name", "mig_enabled"} | MEMORY
    assert seen.temperature_c.absence is Absence.NOT_SUPPORTED


def test_a_jetsons_load_and_temperature_come_from_the_kernel(probe_of: ProbeOf, tmp_path: Path) -> None:
    card = jetson()
    load, zone = tmp_path / "sys/devices/platform/gpu.0/load", tmp_path / "sys/class/thermal/thermal_zone1"
    load.parent.mkdir(parents=True)
    zone.mkdir(parents=True)
    load.write_text("874\n")
    (zone / "type").write_text("gpu-thermal\n")
    (zone / "temp").write_text("51375\n")
    probe = probe_of(fake.FakeNvml(card))
    seen = only_card(probe.snapshot())
    assert (seen.gpu_utilization_percent.value, seen.gpu_utilization_percent.read_from) == (87, "sysfs load")
    assert (seen.temperature_c.value, seen.temperature_c.read_from) == (51, "sysfs thermal zone")
    card.gpu, card.temperature = 30, 44
    seen = only_card(probe.snapshot())
    assert (seen.gpu_utilization_percent.value, seen.temperature_c.value) == (30, 44), (
        "a driver that answers goes first"
    )


# Confidential computing.


def test_a_slow_sample_does_not_hold_up_the_event_loop_and_is_cached(probe_of: ProbeOf) -> None:
    library = fake.FakeNvml(fake.FakeCard())
    library.hook = lambda symbol: time.sleep(0.1) if symbol == fake.COUNT else None
    sampler = Sampler([probe_of(library)], interval_s=1)

    async def watch() -> tuple[int, int]:
        turns, task = 0, asyncio.create_task(sampler.latest())
        while not task.done():
            await asyncio.sleep(0.001)
            turns += 1
        assert only_card(task.result()[0]).temperature_c.value == 56
        for _ in range(20):
            assert await sampler.latest() is task.result()
        samples = library.calls[fake.COUNT + "()"]
        await sampler.aclose()
        return turns, samples

    turns, samples = asyncio.run(watch())
    assert turns > 5, "the loop went round while the driver was waited for"
    assert samples == 1
