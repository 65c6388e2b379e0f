"""The traffic on the links and what held the clocks down: between two samples, and never more than that."""

from importlib import import_module
from typing import Any

import pytest

from app.machine.probes.amd_meters import CardMeters
from app.machine.probes.reading import Absence, Reading

fake = import_module("tests.machine.probes.fake_amdsmi")

KB = 1_000
SENT, RECEIVED = "nvlink_sent_bytes_per_s", "nvlink_received_bytes_per_s"


@pytest.fixture
def clock() -> Any:
    return fake.FakeClock()


@pytest.fixture
def meters(clock: Any) -> CardMeters:
    return CardMeters(clock)


def links(*counts: tuple[object, object]) -> dict[str, object]:
    return {"links": [{"read": read, "write": write} for read, write in counts]}


def test_traffic_is_the_growth_of_all_links(meters: CardMeters, clock: Any) -> None:
    none = (fake.UINT64, fake.UINT64)
    first = meters.link_rates(links((1_000, 9_000), (5, 7), none))
    assert {rate.absence for rate in first.values()} == {Absence.NEEDS_TWO_SAMPLES}
    clock.now_s += 2
    rates = meters.link_rates(links((3_000, 9_500), (1_005, 507), none))
    assert rates[RECEIVED] == Reading(3_000 * KB / 2, "B/s", read_from="xGMI link counters")
    assert rates[SENT].value == 1_000 * KB / 2


def test_a_counter_that_starts_again_costs_one_rate(meters: CardMeters, clock: Any) -> None:
    absences = []
    for count in (5_000, 6_000, 100, 200):
        absences.append(meters.link_rates(links((count, count)))[SENT].absence)
        clock.now_s += 1
    assert absences == [Absence.NEEDS_TWO_SAMPLES, None, Absence.COUNTER_RESET, None]


def test_a_link_that_comes_up_is_not_taken_for_traffic(meters: CardMeters, clock: Any) -> None:
    meters.link_rates(links((1_000, 1_000), ("N/A", "N/A")))
    clock.now_s += 1
    assert meters.link_rates(links((2_000, 2_000), (90_000, 90_000)))[SENT].absence is Absence.NEEDS_TWO_SAMPLES
    clock.now_s += 1
    assert meters.link_rates(links((3_000, 2_500), (90_000, 90_500)))[SENT].value == 1_000 * KB


@pytest.mark.parametrize(
    ("answer", "absence"),
    [
        (links((0, 0), (0, 0)), Absence.ZERO_READING),
        (links((-5, 2**70)), Absence.NOT_SUPPORTED),
        (links(("N/A", None)), Absence.NOT_SUPPORTED),
        (links(), Absence.NOT_SUPPORTED),
        ({"links": "many"}, Absence.IMPLAUSIBLE),
        ({}, Absence.NOT_SUPPORTED),
        (Absence.NO_PERMISSION, Absence.NO_PERMISSION),
    ],
)
def test_a_card_without_links_has_no_traffic(meters: CardMeters, clock: Any, answer: object, absence: Absence) -> None:
    meters.link_rates(links((1_000, 1_000)))
    clock.now_s += 1
    assert {rate.absence for rate in meters.link_rates(answer).values()} == {absence}


def test_a_rate_over_what_links_can_carry_is_not_believed(meters: CardMeters, clock: Any) -> None:
    meters.link_rates(links((1, 1)))
    clock.now_s += 1
    assert meters.link_rates(links((2**60, 2)))[RECEIVED].absence is Absence.IMPLAUSIBLE


def metrics(ticks: object, **residencies: object) -> dict[str, object]:
    return {"accumulation_counter": ticks, **{f"{name}_residency_acc": count for name, count in residencies.items()}}


def test_what_held_the_clocks_for_a_hundredth_of_the_time_is_named(meters: CardMeters, clock: Any) -> None:
    first = metrics(1_000, ppt=10, prochot=10, socket_thm=10, vr_thm="N/A", hbm_thm=fake.UINT64)
    assert meters.throttle_reasons(first).absence is Absence.NEEDS_TWO_SAMPLES
    clock.now_s += 1
    then = metrics(2_000, ppt=500, prochot=19, socket_thm=20, vr_thm="N/A", hbm_thm=fake.UINT64)
    assert meters.throttle_reasons(then) == Reading(
        ("power cap", "socket thermal limit"), read_from="residency counters"
    )
    clock.now_s += 1
    assert meters.throttle_reasons(then | {"accumulation_counter": 3_000}).value == ()


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("ppt", "power cap"),
        ("prochot", "processor hot"),
        ("socket_thm", "socket thermal limit"),
        ("vr_thm", "regulator thermal limit"),
        ("hbm_thm", "memory thermal limit"),
    ],
)
def test_every_reason_has_its_counter(meters: CardMeters, clock: Any, name: str, reason: str) -> None:
    meters.throttle_reasons(metrics(0, **{name: 0}))
    clock.now_s += 1
    assert meters.throttle_reasons(metrics(100, **{name: 100})).value == (reason,)


@pytest.mark.parametrize(
    ("after_s", "then", "absence"),
    [
        (1.0, metrics(500, ppt=20), Absence.COUNTER_RESET),
        (1.0, metrics(2_000, ppt=5), Absence.COUNTER_RESET),
        (1.0, metrics(1_000, ppt=10), Absence.NOTHING_TO_MEASURE),
        (0.05, metrics(1_050, ppt=40), Absence.NEEDS_TWO_SAMPLES),
        (3_600.0, metrics(9_999_999, ppt=40), Absence.NEEDS_TWO_SAMPLES),
    ],
    ids=["ticks start again", "counter starts again", "no tick", "too soon", "too late"],
)
def test_two_samples_that_tell_nothing(
    meters: CardMeters, clock: Any, after_s: float, then: dict[str, object], absence: Absence
) -> None:
    meters.throttle_reasons(metrics(1_000, ppt=10))
    clock.now_s += after_s
    assert meters.throttle_reasons(then).absence is absence


@pytest.mark.parametrize(
    ("answer", "reading"),
    [
        ({"indep_throttle_status": False}, Reading((), read_from="indep_throttle_status")),
        ({"indep_throttle_status": True}, Reading(("unspecified",), read_from="indep_throttle_status")),
        (
            {"indep_throttle_status": "N/A", "throttle_status": True},
            Reading(("unspecified",), read_from="throttle_status"),
        ),
        ({"throttle_status": "N/A"}, Reading.missing(Absence.NOT_SUPPORTED)),
        ({"throttle_status": 0xFF}, Reading.missing(Absence.NOT_SUPPORTED)),
        (Absence.TIMEOUT, Reading.missing(Absence.TIMEOUT)),
    ],
)
def test_an_older_card_says_at_most_that_something_holds_it(
    meters: CardMeters, answer: object, reading: Reading[tuple[str, ...]]
) -> None:
    assert meters.throttle_reasons(answer) == reading
