"""One card over the fake binding: every field, its unit, and everything that the library is known to get wrong."""

import json
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from app.machine.probes.accelerator import CardReadings
from app.machine.probes.amd import AmdProbe
from app.machine.probes.reading import Absence, Reading, units_of

fake = import_module("tests.machine.probes.fake_amdsmi")

MIB, GIB = 2**20, 2**30
UINT16, UINT32, UINT64 = fake.UINT16, fake.UINT32, fake.UINT64

ReadCard = Callable[..., CardReadings]

NOT_FOR_AMD = {
    *("mig_enabled", "compute_capability", "addressing_mode", "memory_reserved_bytes"),
    *("tensor_activity_percent", "sm_activity_percent", "sm_occupancy_percent"),
    *("pcie_sent_bytes_per_s", "pcie_received_bytes_per_s"),
}
NEED_TWO_SAMPLES = {"throttle_reasons", "nvlink_sent_bytes_per_s", "nvlink_received_bytes_per_s"}


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> ReadCard:
    """The first and only reading of a card, in a machine whose kernel shows no files of it."""

    def first(card: Any) -> CardReadings:
        fake.FakeAmdSmi(card).install(monkeypatch)
        (tmp_path / "meminfo").write_text("MemTotal: 134217728 kB\nMemAvailable: 50331648 kB\n")
        probe = AmdProbe(clock=fake.FakeClock(), sysfs=tmp_path / "none", meminfo=tmp_path / "meminfo")
        snapshot = probe.snapshot()
        assert snapshot.state == "ok", snapshot.absence
        json.dumps(snapshot.document(), allow_nan=False)
        (seen,) = snapshot.cards
        return seen

    return first


def absent(card: CardReadings) -> set[str]:
    return {name for name in units_of(CardReadings) if getattr(card, name).value is None}


def test_a_good_card_has_every_reading_that_there_is(read: ReadCard) -> None:
    card = read(fake.FakeCard())
    assert absent(card) == NOT_FOR_AMD | NEED_TWO_SAMPLES | {"memory_utilization_percent"}
    assert {getattr(card, name).absence for name in NOT_FOR_AMD} == {Absence.NOT_SUPPORTED}
    assert {getattr(card, name).absence for name in NEED_TWO_SAMPLES} == {Absence.NEEDS_TWO_SAMPLES}
    assert (card.index, card.vendor, card.fault, card.unified_memory) == (0, "AMD", None, False)
    assert card.name.value == "AMD Instinct MI300X"
    assert card.memory_total_bytes == Reading(196_592 * MIB, "B")
    assert card.memory_used_bytes == Reading(20 * GIB, "B")
    assert card.memory_free_bytes.value == 196_592 * MIB - 20 * GIB
    assert (card.sm_clock_mhz.value, card.sm_clock_max_mhz.value) == (2_100, 2_100)
    assert (card.memory_clock_mhz.value, card.memory_clock_max_mhz.value) == (1_300, 1_300)
    assert card.power_draw_w == Reading(650.0, "W", read_from="current_socket_power")
    assert card.power_limit_w == Reading(750.0, "W", read_from="power_limit")
    assert card.temperature_c == Reading(63, "°C", read_from="hotspot")
    assert card.memory_temperature_c == Reading(48, "°C", read_from="vram")
    assert (card.pcie_generation.value, card.pcie_lanes.value) == (5, 16)
    assert card.memory_bus_bits.value == 8_192
    assert card.peak_bandwidth_bytes_per_s == Reading(5.3e12, "B/s", read_from="vram_max_bandwidth")


@pytest.mark.parametrize("target", ["gfx942", "gfx950"])
def test_from_mi300_on_the_memory_activity_is_a_share_of_the_bandwidth(read: ReadCard, target: str) -> None:
    card = read(fake.FakeCard(target=target))
    assert card.dram_activity_percent == Reading(41.0, "%", read_from="umc_activity")
    assert card.memory_utilization_percent.absence is Absence.NOT_SUPPORTED


@pytest.mark.parametrize("target", ["gfx90a", "gfx1100", "gfx1201", "N/A", ""])
def test_of_other_cards_it_is_a_share_of_the_time(read: ReadCard, target: str) -> None:
    card = read(fake.FakeCard(target=target))
    assert card.memory_utilization_percent == Reading(41, "%")
    assert card.dram_activity_percent.absence is Absence.NOT_SUPPORTED


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"gfx": UINT16}, "gpu_utilization_percent"),
        ({"gfx": UINT32}, "gpu_utilization_percent"),
        ({"umc": UINT16}, "dram_activity_percent"),
        ({"clocks": (UINT32, 2_100)}, "sm_clock_mhz"),
        ({"clocks": (UINT16, 2_100)}, "sm_clock_mhz"),
        ({"clocks": (2_100, UINT32)}, "sm_clock_max_mhz"),
        ({"memory_clocks": (UINT16, 1_300)}, "memory_clock_mhz"),
        ({"power": {"socket_power": UINT32, "power_limit": 750}}, "power_draw_w"),
        ({"power": {"socket_power": UINT16, "power_limit": 750}}, "power_draw_w"),
        ({"pcie": (UINT16, 32_000)}, "pcie_lanes"),
        ({"pcie": (16, UINT32)}, "pcie_generation"),
        ({"bus_bits": UINT32}, "memory_bus_bits"),
        ({"temperatures": {"VRAM": UINT16, "HOTSPOT": 60}}, "memory_temperature_c"),
        ({"links": [(UINT64, UINT64)] * 8}, "nvlink_sent_bytes_per_s"),
        ({"name": ""}, "name"),
    ],
)
def test_a_sentinel_is_a_reading_that_this_card_does_not_have(
    read: ReadCard, changes: dict[str, Any], field: str
) -> None:
    assert getattr(read(fake.FakeCard(**changes)), field).absence is Absence.NOT_SUPPORTED


@pytest.mark.parametrize(
    ("changes", "field", "absence"),
    [
        ({"gfx": 101}, "gpu_utilization_percent", Absence.IMPLAUSIBLE),
        ({"clocks": (60_000, 2_100)}, "sm_clock_mhz", Absence.IMPLAUSIBLE),
        ({"clocks": (0, 2_100)}, "sm_clock_mhz", Absence.ZERO_READING),
        ({"power": {"current_socket_power": 30_000}}, "power_draw_w", Absence.IMPLAUSIBLE),
        ({"temperatures": {"EDGE": -40}}, "temperature_c", Absence.IMPLAUSIBLE),
        ({"temperatures": {"EDGE": 63_000}}, "temperature_c", Absence.IMPLAUSIBLE),
        ({"vram": (UINT64, 5)}, "memory_total_bytes", Absence.IMPLAUSIBLE),
        ({"vram": (0, 0)}, "memory_total_bytes", Absence.ZERO_READING),
        ({"vram": (8 * GIB, 2**64 - 4_096)}, "memory_used_bytes", Absence.IMPLAUSIBLE),
        ({"vram": (8 * GIB, 9 * GIB)}, "memory_free_bytes", Absence.IMPLAUSIBLE),
        ({"bus_bits": 2**20}, "memory_bus_bits", Absence.IMPLAUSIBLE),
        (
            {"max_bandwidth": UINT64, "bus_bits": 65_536, "memory_clocks": (9_000, 40_000)},
            "peak_bandwidth_bytes_per_s",
            Absence.IMPLAUSIBLE,
        ),
        ({"pcie": (255, 32_000)}, "pcie_lanes", Absence.IMPLAUSIBLE),
        ({"pcie": (16, 31_999)}, "pcie_generation", Absence.IMPLAUSIBLE),
    ],
)
def test_an_absurd_figure_is_an_absence(read: ReadCard, changes: dict[str, Any], field: str, absence: Absence) -> None:
    assert getattr(read(fake.FakeCard(**changes)), field).absence is absence


@pytest.mark.parametrize(
    ("changes", "bandwidth_tb_per_s", "read_from"),
    [
        ({"max_bandwidth": UINT64}, 5.3248, "4 × memory clock × bus width"),
        ({"max_bandwidth": 0}, 5.3248, "4 × memory clock × bus width"),
        ({"max_bandwidth": 10**9}, 5.3248, "4 × memory clock × bus width"),
        (
            {"max_bandwidth": UINT64, "vram_type": 18, "bus_bits": 384, "memory_clocks": (96, 1_249)},
            0.9592,
            "16 × memory clock × bus width",
        ),
        ({"max_bandwidth": UINT64, "vram_type": 3, "memory_clocks": (1_600, 1_600)}, 3.2768, "2 × memory clock"),
        ({"max_bandwidth": UINT64, "bus_bits": UINT32}, None, ""),
        ({"max_bandwidth": UINT64, "memory_clocks": (1_300, 0)}, None, ""),
        ({"max_bandwidth": UINT64, "vram_type": 12}, None, ""),
        ({"max_bandwidth": UINT64, "vram_type": 999}, None, ""),
    ],
)
def test_the_bandwidth_is_the_drivers_or_derived_and_never_a_sentinel(
    read: ReadCard, changes: dict[str, Any], bandwidth_tb_per_s: float | None, read_from: str
) -> None:
    reading = read(fake.FakeCard(**changes)).peak_bandwidth_bytes_per_s
    if bandwidth_tb_per_s is None:
        assert reading == Reading.missing(Absence.NOT_SUPPORTED, "B/s")
    else:
        assert reading.value == pytest.approx(bandwidth_tb_per_s * 1e12, rel=1e-3)
        assert reading.read_from.startswith(read_from)


@pytest.mark.parametrize(
    ("power", "draw_w", "limit_w", "limit_from"),
    [
        ({"socket_power": 305, "average_socket_power": 300, "power_limit": 327}, 300.0, 327.0, "power_limit"),
        ({"socket_power": 305, "power_limit": 327_000_000}, 305.0, 327.0, "power_limit"),
        ({"socket_power": 305_250_000, "power_limit": UINT16}, 305.25, 760.0, "power_cap"),
        ({"socket_power": 305}, 305.0, 760.0, "power_cap"),
        ({"current_socket_power": 0, "average_socket_power": 88}, 88.0, 760.0, "power_cap"),
    ],
)
def test_power_is_read_in_watts_or_microwatts(
    read: ReadCard, power: dict[str, int], draw_w: float, limit_w: float, limit_from: str
) -> None:
    card = read(fake.FakeCard(power=power))
    assert (card.power_draw_w.value, card.power_limit_w.value) == (draw_w, limit_w)
    assert card.power_limit_w.read_from == limit_from


def test_the_edge_comes_before_the_hottest_spot(read: ReadCard) -> None:
    card = read(fake.FakeCard(temperatures={"EDGE": 51, "HOTSPOT": 70, "VRAM": 66}))
    assert card.temperature_c == Reading(51, "°C", read_from="edge")


def test_without_the_table_of_levels_the_metrics_know_the_clock(read: ReadCard) -> None:
    metrics = {"current_gfxclk": 1_999, "current_uclk": "N/A"}
    card = read(fake.FakeCard(metrics=metrics, errors={"amdsmi_get_clock_info": fake.NOT_SUPPORTED}))
    assert card.sm_clock_mhz.value == 1_999
    assert card.memory_clock_mhz.absence is card.sm_clock_max_mhz.absence is Absence.NOT_SUPPORTED


def test_without_the_kernels_memory_files_the_driver_knows_the_memory(read: ReadCard) -> None:
    errors = {f"amdsmi_get_gpu_memory_{what}": fake.NOT_SUPPORTED for what in ("total", "usage")}
    card = read(fake.FakeCard(errors=errors))
    assert card.memory_total_bytes.value == 196_592 * MIB
    assert card.memory_used_bytes.value == 20 * GIB


def test_a_use_of_65535_mib_is_no_sentinel(read: ReadCard) -> None:
    errors = {f"amdsmi_get_gpu_memory_{what}": fake.NOT_SUPPORTED for what in ("total", "usage")}
    card = read(fake.FakeCard(errors=errors, vram=(196_592 * MIB, 65_535 * MIB)))
    assert card.memory_used_bytes.value == 65_535 * MIB


@pytest.mark.parametrize("mode", ["DPX", "TPX", "QPX", "CPX"])
def test_a_partition_says_what_is_its_own_and_its_zero_is_no_idleness(read: ReadCard, mode: str) -> None:
    card = read(fake.FakeCard(partition=mode, gfx=0, umc=0, vram=(24_574 * MIB, 3 * GIB)))
    assert card.gpu_utilization_percent.absence is Absence.ZERO_READING
    assert card.dram_activity_percent.absence is Absence.ZERO_READING
    assert card.memory_total_bytes.value == 24_574 * MIB
    assert card.mig_enabled.absence is Absence.NOT_SUPPORTED
    busy = read(fake.FakeCard(partition=mode, gfx=12, vram=(24_574 * MIB, 30 * GIB)))
    assert busy.gpu_utilization_percent.value == 12
    assert busy.memory_used_bytes.absence is Absence.IMPLAUSIBLE


@pytest.mark.parametrize("mode", ["SPX", "N/A", "", "UNKNOWN"])
def test_a_whole_card_may_be_idle(read: ReadCard, mode: str) -> None:
    card = read(fake.FakeCard(partition=mode, gfx=0, umc=0))
    assert (card.gpu_utilization_percent.value, card.dram_activity_percent.value) == (0, 0.0)


def test_a_card_that_answers_zero_to_everything_is_not_idle(read: ReadCard) -> None:
    card = read(
        fake.FakeCard(
            gfx=0,
            umc=0,
            vram=(0, 0),
            clocks=(0, 0),
            memory_clocks=(0, 0),
            power={"socket_power": 0, "power_limit": 750},
            temperatures={"EDGE": 0, "VRAM": 0},
        )
    )
    assert card.gpu_utilization_percent.absence is Absence.ZERO_READING


def strix_halo(**changes: Any) -> Any:
    return fake.FakeCard(
        **{
            "name": "Radeon 8060S Graphics",
            "target": "gfx1151",
            "vram": (GIB // 2, GIB // 4),
            "gtt": (120 * GIB, 60 * GIB),
            **changes,
        }
    )


def test_a_processor_with_graphics_has_its_aperture_and_the_machines_memory(read: ReadCard) -> None:
    card = read(strix_halo())
    assert card.unified_memory
    assert card.memory_total_bytes == Reading(120 * GIB + GIB // 2, "B", read_from="VRAM + GTT")
    assert card.memory_used_bytes.value == 60 * GIB + GIB // 4
    assert card.memory_free_bytes.value == GIB // 4 + 48 * GIB, "the system has but 48 GiB to give"
    assert card.pcie_generation.absence is card.pcie_lanes.absence is Absence.NOT_SUPPORTED


def test_it_is_known_by_the_kernels_table_too(read: ReadCard) -> None:
    metrics = {"common_header.format_revision": 3}
    assert read(strix_halo(target="gfx9999", metrics=metrics)).unified_memory
    assert not read(strix_halo(target="gfx9999")).unified_memory


def test_half_of_its_memory_is_not_shown_as_all(read: ReadCard) -> None:
    card = read(strix_halo(gtt=(0, 0)))
    assert card.unified_memory
    assert card.memory_total_bytes.absence is Absence.ZERO_READING
    assert card.memory_free_bytes.value is None


def test_a_guest_machine_lacks_readings_one_by_one(read: ReadCard) -> None:
    names = ("activity", "metrics_info", "compute_partition")
    errors = {f"amdsmi_get_gpu_{name}": fake.NOT_SUPPORTED for name in names} | {
        f"amdsmi_get_{name}": fake.NOT_SUPPORTED
        for name in ("power_info", "power_cap_info", "clock_info", "pcie_info", "link_metrics", "temp_metric")
    }
    card = read(fake.FakeCard(errors=errors))
    assert card.fault is None
    assert {getattr(card, name).absence for name in absent(card)} == {Absence.NOT_SUPPORTED}
    assert card.name.value == "AMD Instinct MI300X"
    assert card.memory_total_bytes.value == 196_592 * MIB
    assert card.peak_bandwidth_bytes_per_s.value == 5.3e12


@pytest.mark.parametrize(
    ("code", "absence"), [(fake.NO_PERMISSION, Absence.NO_PERMISSION), (fake.BUSY, Absence.TIMEOUT)]
)
def test_a_refusal_is_told_as_what_it_is(read: ReadCard, code: int, absence: Absence) -> None:
    card = read(fake.FakeCard(errors={"amdsmi_get_power_info": code, "amdsmi_get_gpu_activity": code}))
    assert card.fault is None
    assert card.power_draw_w.absence is card.gpu_utilization_percent.absence is absence


def test_a_sensor_that_is_not_found_condemns_no_card(read: ReadCard) -> None:
    card = read(fake.FakeCard(errors={"amdsmi_get_temp_metric": fake.NOT_FOUND}))
    assert card.fault is None
    assert card.temperature_c.absence is Absence.NOT_SUPPORTED


@pytest.mark.parametrize(
    "answer", [None, 7, "N/A", [], {}, {"links": 5}, {"links": [7, None]}, {"clk": {}}, {"gfx_activity": 1.5}, b"\xff"]
)
def test_an_answer_of_another_shape_costs_only_its_readings(read: ReadCard, answer: object) -> None:
    good = absent(read(fake.FakeCard()))
    for name, parameters in fake.FakeAmdSmi().parameters.items():
        if parameters > 0:
            card = read(fake.FakeCard(answers={name: answer}))
            assert card.fault is None
            assert len(absent(card) - good) <= 4, name


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        ("AMD \u202eInstinct\x1b[2J", "AMD Instinct [2J"),
        ("<script>alert(1)</script>", "<script>alert(1)</script>"),
        ("A" * 500, "A" * 80),
        (UnicodeDecodeError("utf-8", b"AMD \xffMI300X", 4, 5, "invalid"), None),
    ],
    ids=["control characters", "markup", "long", "not UTF-8"],
)
def test_a_hostile_name_is_cleaned_and_capped(read: ReadCard, raw: Any, shown: str | None) -> None:
    answer = raw if isinstance(raw, Exception) else {"market_name": raw}
    assert read(fake.FakeCard(answers={"amdsmi_get_gpu_asic_info": answer})).name.value == shown
