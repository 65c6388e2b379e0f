"""What goes over a card's links: rates from counters, and the slow PCIe call where a counter cannot be trusted."""

from collections.abc import Callable
from importlib import import_module
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.machine.probes.accelerator import LONGEST_WINDOW_S, CounterMeter
from app.machine.probes.nvidia import NvidiaProbe
from app.machine.probes.nvml_meters import THROUGHPUT_EVERY_S
from app.machine.probes.reading import Absence, Reading
from tests.machine.probes.seen import only_card, second_look

pytest.importorskip("pynvml", reason="nvidia-ml-py (the nvidia extra) is not installed")
fake = import_module("tests.machine.probes.fake_nvml")

ProbeOf = Callable[[object], NvidiaProbe]
KIB = 1024


def narrow() -> Any:
    """A card whose PCIe counters have not shown that they are wider than 32 bits."""
    card = fake.FakeCard()
    card.fields |= dict.fromkeys((fake.PCIE_SENT, fake.PCIE_RECEIVED), (fake.UNSIGNED_LONG_LONG, 5))
    return card


def test_nvlink_is_the_difference_of_two_counts_of_kib(probe_of: ProbeOf, clock: Any) -> None:
    card = fake.FakeCard()
    probe = probe_of(fake.FakeNvml(card))
    first = only_card(probe.snapshot())
    assert first.nvlink_sent_bytes_per_s.absence is Absence.NEEDS_TWO_SAMPLES
    for seconds, kib in ((1.0, 878_906_250), (2.0, 0), (0.5, 7)):
        card.count(nvlink_sent=kib)
        clock.now_s += seconds
        seen = only_card(probe.snapshot())
        assert seen.nvlink_sent_bytes_per_s.value == kib * KIB / seconds
        assert seen.nvlink_received_bytes_per_s.value == 0, "a link that rests has a rate, and it is zero"


def test_a_counter_that_begins_anew_costs_one_rate(probe_of: ProbeOf, clock: Any) -> None:
    card = fake.FakeCard()
    probe = probe_of(fake.FakeNvml(card))
    second_look(probe, clock)
    card.fields[fake.NVLINK_SENT] = (fake.UNSIGNED_LONG_LONG, 10)
    clock.now_s += 1
    seen = only_card(probe.snapshot())
    assert seen.nvlink_sent_bytes_per_s.absence is Absence.COUNTER_RESET
    assert seen.nvlink_received_bytes_per_s.value == 0
    card.count(nvlink_sent=5)
    clock.now_s += 1
    assert only_card(probe.snapshot()).nvlink_sent_bytes_per_s.value == 5 * KIB


def test_each_direction_has_a_status_of_its_own(probe_of: ProbeOf, clock: Any) -> None:
    card = fake.FakeCard(
        field_errors={fake.NVLINK_SENT: fake.NOT_SUPPORTED, fake.MEMORY_TEMPERATURE: fake.NO_PERMISSION}
    )
    seen = second_look(probe_of(fake.FakeNvml(card)), clock)
    assert seen.nvlink_sent_bytes_per_s.absence is Absence.NOT_SUPPORTED
    assert seen.nvlink_received_bytes_per_s.value == 0
    assert seen.memory_temperature_c.absence is Absence.NO_PERMISSION


def test_a_field_that_says_that_the_card_is_lost_ends_the_card(probe_of: ProbeOf) -> None:
    card = fake.FakeCard(field_errors={fake.NVLINK_SENT: fake.GPU_IS_LOST})
    assert probe_of(fake.FakeNvml(card)).snapshot().cards[0].fault is Absence.GPU_LOST


def test_all_fields_are_read_in_one_call(probe_of: ProbeOf) -> None:
    library = fake.FakeNvml(fake.FakeCard())
    probe_of(library).snapshot()
    assert library.calls[fake.FIELDS + "()"] == 1


def test_pcie_counters_are_trusted_once_they_have_counted_beyond_32_bits(probe_of: ProbeOf, clock: Any) -> None:
    card = narrow()
    library = fake.FakeNvml(card)
    probe = probe_of(library)
    seen = second_look(probe, clock)
    assert seen.pcie_sent_bytes_per_s == Reading(1.2e9, "B/s", None, fake.PCIE_THROUGHPUT)
    assert seen.pcie_received_bytes_per_s.value == 3.4e9
    card.count(pcie_sent=2**32, pcie_received=64_000)
    clock.now_s += 1
    seen = only_card(probe.snapshot())
    assert seen.pcie_sent_bytes_per_s == Reading(float(2**32), "B/s", None, "PCIe byte counters")
    assert seen.pcie_received_bytes_per_s.value == 64_000, "one counter's width is the other's"
    asked = library.calls[fake.PCIE_THROUGHPUT + "()"]
    for _ in range(5):
        clock.now_s += 3
        only_card(probe.snapshot())
    assert library.calls[fake.PCIE_THROUGHPUT + "()"] == asked, "and the slow call is made no more"


def test_the_slow_pcie_call_is_made_every_two_seconds_at_most(probe_of: ProbeOf, clock: Any) -> None:
    library = fake.FakeNvml(narrow())
    probe = probe_of(library)
    for _ in range(20):
        assert only_card(probe.snapshot()).pcie_sent_bytes_per_s.value == 1.2e9
        clock.now_s += 0.5
    assert library.calls[fake.PCIE_THROUGHPUT + "()"] == 2 * (20 * 0.5 / THROUGHPUT_EVERY_S)


@pytest.mark.parametrize(
    ("raw", "reading"),
    [
        ((0, 2**32 - 1), (Reading(0.0, "B/s", None, fake.PCIE_THROUGHPUT), Absence.IMPLAUSIBLE)),
        ((7, 0), (Reading(7_000.0, "B/s", None, fake.PCIE_THROUGHPUT), None)),
    ],
    ids=["a sentinel", "kilobytes"],
)
def test_the_slow_pcie_call_is_in_kilobytes(probe_of: ProbeOf, raw: tuple[int, int], reading: tuple[Any, Any]) -> None:
    card = narrow()
    card.pcie_kb_per_s = raw
    seen = only_card(probe_of(fake.FakeNvml(card)).snapshot())
    assert (seen.pcie_sent_bytes_per_s, seen.pcie_received_bytes_per_s.absence) == reading


def test_after_a_long_pause_there_is_no_rate_of_now(probe_of: ProbeOf, clock: Any) -> None:
    card = fake.FakeCard()
    probe = probe_of(fake.FakeNvml(card))
    second_look(probe, clock)
    card.count(nvlink_sent=10**9)
    clock.now_s += LONGEST_WINDOW_S + 1
    seen = only_card(probe.snapshot())
    counted = (seen.nvlink_sent_bytes_per_s, seen.pcie_sent_bytes_per_s, seen.dram_activity_percent)
    assert {reading.absence for reading in counted} == {Absence.NEEDS_TWO_SAMPLES}


def test_two_snapshots_at_once_repeat_the_rate(probe_of: ProbeOf, clock: Any) -> None:
    card = fake.FakeCard()
    probe = probe_of(fake.FakeNvml(card))
    only_card(probe.snapshot())
    card.count(nvlink_sent=100)
    clock.now_s += 1
    once = only_card(probe.snapshot())
    card.count(nvlink_sent=100)
    again = only_card(probe.snapshot())
    assert once.nvlink_sent_bytes_per_s == again.nvlink_sent_bytes_per_s == Reading(100.0 * KIB, "B/s")
    clock.now_s += 1
    assert only_card(probe.snapshot()).nvlink_sent_bytes_per_s.value == 100 * KIB, "nothing of it was lost"


@pytest.mark.parametrize("count", [-1, 2**63 + 1, 1.5, None, "7", b"7"])
def test_what_is_no_count_is_no_rate(probe_of: ProbeOf, monkeypatch: pytest.MonkeyPatch, count: object) -> None:
    monkeypatch.setattr("app.machine.probes.nvml.Device._value", lambda self, answer: count)
    seen = only_card(probe_of(fake.FakeNvml(fake.FakeCard())).snapshot())
    assert seen.nvlink_sent_bytes_per_s.absence is Absence.IMPLAUSIBLE
    assert seen.pcie_sent_bytes_per_s.value == 1.2e9


def test_what_could_not_be_counted_in_between_costs_one_more_rate() -> None:
    now, meter = metered(ceiling_bytes_per_s=1e6)
    counts = [Reading(10, "B"), Reading[int].missing(Absence.TIMEOUT, "B"), Reading(20, "B"), Reading(25, "B")]
    seen = []
    for count in counts:
        now[0] += 1
        seen.append(meter.rate(count))
    again = Absence.NEEDS_TWO_SAMPLES
    assert [rate.absence or rate.value for rate in seen] == [again, Absence.TIMEOUT, again, 5.0]


def test_a_rate_that_no_link_has_is_implausible() -> None:
    now, meter = metered(ceiling_bytes_per_s=1e6)
    meter.rate(Reading(1, "B"))
    now[0] += 1
    assert meter.rate(Reading(2_000_001, "B")).absence is Absence.IMPLAUSIBLE
    now[0] += 1
    assert meter.rate(Reading(2_000_011, "B")) == Reading(10.0, "B/s")


def metered(ceiling_bytes_per_s: float) -> tuple[list[float], CounterMeter]:
    now = [0.0]
    return now, CounterMeter(lambda: now[0], ceiling_bytes_per_s)


@given(
    counts=st.lists(st.one_of(st.none(), st.integers(0, 2**64)), min_size=1, max_size=12),
    pauses_s=st.lists(st.floats(0, 1e6, allow_nan=False), min_size=12, max_size=12),
)
def test_a_rate_is_a_plausible_number_or_a_reason(counts: list[int | None], pauses_s: list[float]) -> None:
    now, meter = metered(ceiling_bytes_per_s=1e13)
    for count, pause_s in zip(counts, pauses_s, strict=False):
        now[0] += pause_s
        lost = Reading[int].missing(Absence.NOT_SUPPORTED, "B")
        rate = meter.rate(lost if count is None else Reading(count, "B"))
        assert rate.unit == "B/s"
        assert rate.absence is not None or 0 <= (rate.value or 0.0) <= 1e13
        assert (rate.absence is Absence.NOT_SUPPORTED) == (count is None)
