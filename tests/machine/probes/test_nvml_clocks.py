"""Clocks, what holds them down, and the derived bandwidth, over the real binding and a fake library."""

from collections.abc import Callable
from importlib import import_module
from typing import Any

import pytest

from app.machine.probes.nvidia import NvidiaProbe
from app.machine.probes.nvml_clocks import IDLE, OTHER_REASON, THROTTLE_REASONS, peak_bandwidth
from app.machine.probes.reading import Absence, Reading
from tests.machine.probes.seen import only_card

pytest.importorskip("pynvml", reason="nvidia-ml-py (the nvidia extra) is not installed")
fake = import_module("tests.machine.probes.fake_nvml")

ProbeOf = Callable[[object], NvidiaProbe]


def reasons_of(probe_of: ProbeOf, **changes: Any) -> Reading[tuple[str, ...]]:
    return only_card(probe_of(fake.FakeNvml(fake.FakeCard(**changes))).snapshot()).throttle_reasons


@pytest.mark.parametrize(("bit", "name"), list(THROTTLE_REASONS.items()), ids=lambda value: str(value))
def test_every_reason_has_a_name(probe_of: ProbeOf, bit: int, name: str) -> None:
    assert reasons_of(probe_of, reasons=bit) == Reading((name,), "", None, fake.REASONS_NEW)


@pytest.mark.parametrize(
    ("bits", "names"),
    [
        (0x0, ()),
        (0x1, (IDLE,)),
        (0x44, ("software power cap", "hardware thermal slowdown")),
        (0x8000, (OTHER_REASON,)),
        (0x1_0004, ("software power cap", OTHER_REASON)),
    ],
    ids=["none", "idle", "two", "unknown", "known and unknown"],
)
def test_reasons_are_told_apart(probe_of: ProbeOf, bits: int, names: tuple[str, ...]) -> None:
    assert reasons_of(probe_of, reasons=bits).value == names


@pytest.mark.parametrize("bits", [2**32 - 1, 2**64 - 1])
def test_all_ones_are_no_reasons(probe_of: ProbeOf, bits: int) -> None:
    assert reasons_of(probe_of, reasons=bits).absence is Absence.IMPLAUSIBLE


def test_reasons_that_are_not_supported_say_so_and_a_future_driver_lacks_the_older_name(probe_of: ProbeOf) -> None:
    errors = {fake.REASONS_NEW: fake.NOT_SUPPORTED}
    library = fake.FakeNvml(fake.FakeCard(errors=errors), missing=(fake.REASONS_OLD,))
    assert only_card(probe_of(library).snapshot()).throttle_reasons.absence is Absence.NOT_SUPPORTED


@pytest.mark.parametrize("missing", ["the width", "the clock"])
def test_a_bandwidth_is_missing_for_the_reason_of_its_input(missing: str) -> None:
    clock, width = Reading(2_619, "MHz"), Reading(5_120, "bit")
    lost: Reading[int] = Reading.missing(Absence.NO_PERMISSION)
    derived = peak_bandwidth(clock, lost) if missing == "the width" else peak_bandwidth(lost, width)
    assert derived == Reading[float].missing(Absence.NO_PERMISSION, "B/s")


@pytest.mark.parametrize(
    ("clock_mhz", "bus_bits", "shown"),
    [(2_619, 5_120, 3.352e12), (3_996, 8_192, 8.184e12), (3_996, 7_680, 7.672e12)],
    ids=["H100 SXM", "B200 as first reported", "B200 as reported since"],
)
def test_the_peak_bandwidth_follows_what_the_driver_reports(
    probe_of: ProbeOf, clock_mhz: int, bus_bits: int, shown: float
) -> None:
    card = fake.FakeCard(max_clocks=(1_980, clock_mhz), bus_bits=bus_bits)
    seen = only_card(probe_of(fake.FakeNvml(card)).snapshot())
    assert seen.memory_bus_bits.value == bus_bits
    assert seen.peak_bandwidth_bytes_per_s.value == pytest.approx(shown, rel=1e-3)


def test_a_bus_width_that_changes_between_two_snapshots_is_followed(probe_of: ProbeOf, clock: Any) -> None:
    card = fake.FakeCard()
    probe = probe_of(fake.FakeNvml(card))
    before = only_card(probe.snapshot()).peak_bandwidth_bytes_per_s.value
    card.bus_bits = 4_096
    clock.now_s += 1
    after = only_card(probe.snapshot()).peak_bandwidth_bytes_per_s.value
    assert before is not None
    assert after == pytest.approx(before * 4 / 5)


@pytest.mark.parametrize(
    ("changes", "absence"),
    [
        ({"bus_bits": 0}, Absence.ZERO_READING),
        ({"max_clocks": (1_980, 0)}, Absence.ZERO_READING),
        ({"errors": {"nvmlDeviceGetMaxClockInfo": 3}}, Absence.NOT_SUPPORTED),
    ],
    ids=["no bus width", "no memory clock", "memory clock not supported"],
)
def test_without_a_width_or_a_clock_there_is_no_peak_bandwidth(
    probe_of: ProbeOf, changes: dict[str, Any], absence: Absence
) -> None:
    seen = only_card(probe_of(fake.FakeNvml(fake.FakeCard(**changes))).snapshot())
    assert seen.peak_bandwidth_bytes_per_s.absence is absence
