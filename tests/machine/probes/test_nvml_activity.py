"""GPM metrics: two samples, one call, a status for each metric, and nothing of the driver's kept for longer."""

from collections.abc import Callable
from importlib import import_module
from typing import Any

import pytest

from app.machine.probes.accelerator import CardReadings
from app.machine.probes.nvidia import NvidiaProbe
from app.machine.probes.nvml_meters import METRICS
from app.machine.probes.reading import Absence
from tests.machine.probes.seen import only_card, second_look

pynvml = pytest.importorskip("pynvml", reason="nvidia-ml-py (the nvidia extra) is not installed")
fake = import_module("tests.machine.probes.fake_nvml")

ProbeOf = Callable[[object], NvidiaProbe]


def values(card: CardReadings) -> dict[str, object]:
    """What is shown of each metric: its value, or why there is none."""
    shown = {name: getattr(card, name) for name in METRICS}
    return {name: reading.absence or reading.value for name, reading in shown.items()}


def all_of(absence: Absence) -> dict[str, object]:
    return dict.fromkeys(METRICS, absence)


def test_the_first_sample_has_no_metrics_and_the_next_has_all(probe_of: ProbeOf, clock: Any) -> None:
    card = fake.FakeCard()
    library = fake.FakeNvml(card)
    probe = probe_of(library)
    assert values(only_card(probe.snapshot())) == all_of(Absence.NEEDS_TWO_SAMPLES)
    for dram in (62.0, 7.5, 0.0, 100.0):
        card.metrics[fake.DRAM_BANDWIDTH] = dram
        clock.now_s += 1
        assert values(only_card(probe.snapshot())) == {
            "sm_activity_percent": 88.0,
            "sm_occupancy_percent": 41.5,
            "tensor_activity_percent": 31.0,
            "dram_activity_percent": dram,
        }
        assert len(library.samples) == 1, "one sample waits for the next"
    assert library.calls[fake.GPM_METRICS + "()"] == 4, "all metrics of two samples in one call"
    assert library.calls[fake.GPM_SUPPORT + "()"] == 1
    probe.close()
    assert not library.samples


def test_each_metric_has_a_status_of_its_own(probe_of: ProbeOf, clock: Any) -> None:
    card = fake.FakeCard(metric_errors={fake.ANY_TENSOR: fake.NOT_SUPPORTED, fake.SM_UTIL: fake.NO_PERMISSION})
    del card.metrics[fake.SM_OCCUPANCY]  # Passed over by the driver, which leaves a zero where the value would be.
    assert values(second_look(probe_of(fake.FakeNvml(card)), clock)) == {
        "sm_activity_percent": Absence.NO_PERMISSION,
        "sm_occupancy_percent": Absence.UNKNOWN_ERROR,
        "tensor_activity_percent": Absence.NOT_SUPPORTED,
        "dram_activity_percent": 62.0,
    }


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        (float("nan"), Absence.IMPLAUSIBLE),
        (float("inf"), Absence.IMPLAUSIBLE),
        (-0.5, Absence.IMPLAUSIBLE),
        (101.5, Absence.IMPLAUSIBLE),
        (1e308, Absence.IMPLAUSIBLE),
        (100.7, 100.0),
        (0.0, 0.0),
    ],
)
def test_a_metric_that_is_no_percentage_is_implausible(
    probe_of: ProbeOf, clock: Any, raw: float, shown: object
) -> None:
    card = fake.FakeCard()
    card.metrics[fake.DRAM_BANDWIDTH] = raw
    seen = values(second_look(probe_of(fake.FakeNvml(card)), clock))
    assert seen["dram_activity_percent"] == shown
    assert seen["tensor_activity_percent"] == 31.0


def test_a_card_that_says_no_is_not_asked_again(probe_of: ProbeOf, clock: Any) -> None:
    library = fake.FakeNvml(fake.FakeCard(gpm_supported=0))
    probe = probe_of(library)
    for _ in range(3):
        assert values(second_look(probe, clock)) == all_of(Absence.NOT_SUPPORTED)
    assert library.calls[fake.GPM_SUPPORT + "()"] == 1
    assert library.calls[fake.GPM_ALLOC + "()"] == 0


def test_the_samples_own_answer_decides_whatever_the_card_says_of_its_support(probe_of: ProbeOf, clock: Any) -> None:
    library = fake.FakeNvml(fake.FakeCard(errors={fake.GPM_SAMPLE: fake.NOT_SUPPORTED}))
    probe = probe_of(library)
    for _ in range(3):
        assert values(second_look(probe, clock)) == all_of(Absence.NOT_SUPPORTED)
    assert library.calls[fake.GPM_SAMPLE + "()"] == 1
    assert not library.samples, "the sample that was not filled is freed"


def test_a_card_that_does_not_know_of_its_support_is_tried(probe_of: ProbeOf, clock: Any) -> None:
    library = fake.FakeNvml(fake.FakeCard(), missing=(fake.GPM_SUPPORT,))
    assert values(second_look(probe_of(library), clock))["dram_activity_percent"] == 62.0


def test_a_sample_that_fails_for_a_while_is_tried_again_and_leaks_nothing(probe_of: ProbeOf, clock: Any) -> None:
    card = fake.FakeCard()
    library = fake.FakeNvml(card)
    probe = probe_of(library)
    second_look(probe, clock)
    card.errors = {fake.GPM_SAMPLE: fake.NO_PERMISSION}
    for _ in range(3):
        clock.now_s += 1
        assert values(only_card(probe.snapshot())) == all_of(Absence.NO_PERMISSION)
        assert not library.samples
    card.errors = {}
    assert values(second_look(probe, clock))["dram_activity_percent"] == 62.0


def test_samples_too_near_to_each_other_repeat_the_answer(probe_of: ProbeOf, clock: Any) -> None:
    card = fake.FakeCard()
    library = fake.FakeNvml(card)
    probe = probe_of(library)
    second_look(probe, clock)
    card.metrics[fake.DRAM_BANDWIDTH] = 5.0
    clock.now_s += 0.05
    assert values(only_card(probe.snapshot()))["dram_activity_percent"] == 62.0
    assert library.calls[fake.GPM_SAMPLE + "()"] == 2
    clock.now_s += 0.06
    assert values(only_card(probe.snapshot()))["dram_activity_percent"] == 5.0


def test_nothing_is_used_across_two_sessions_of_the_library(probe_of: ProbeOf, clock: Any) -> None:
    library = fake.FakeNvml(fake.FakeCard())
    probe = probe_of(library)
    second_look(probe, clock)
    library.errors[fake.COUNT] = fake.UNKNOWN
    assert probe.snapshot().absence is Absence.UNKNOWN_ERROR
    assert (len(library.samples), library.left_at_shutdown) == (0, 0), "freed while the library was still there"
    library.errors.clear()
    clock.now_s += 2
    assert values(only_card(probe.snapshot())) == all_of(Absence.NEEDS_TWO_SAMPLES)


def test_a_sample_of_a_session_that_ended_in_the_middle_of_a_snapshot_is_not_used(
    probe_of: ProbeOf, clock: Any
) -> None:
    card = fake.FakeCard()
    library = fake.FakeNvml(card)
    probe = probe_of(library)
    second_look(probe, clock)
    card.errors = {"nvmlDeviceGetMigMode": fake.UNINITIALIZED}
    assert probe.snapshot().state == "ok", "what was read before somebody shut the library down is shown"
    card.errors = {}
    clock.now_s += 2
    assert values(only_card(probe.snapshot())) == all_of(Absence.NEEDS_TWO_SAMPLES)
    assert library.calls[fake.GPM_METRICS + "()"] == 1
    assert (len(library.samples), library.left_at_shutdown) == (1, 0)


def test_a_sample_is_freed_although_the_driver_cannot_take_it_back(probe_of: ProbeOf, clock: Any) -> None:
    library = fake.FakeNvml(fake.FakeCard())
    library.errors[fake.GPM_FREE] = fake.UNKNOWN
    probe = probe_of(library)
    assert values(second_look(probe, clock))["dram_activity_percent"] == 62.0
    probe.close()
    assert library.calls[fake.GPM_FREE + "()"] == 2, "each is handed back once, and never twice"


def test_a_binding_without_the_metrics_costs_only_them(
    probe_of: ProbeOf, clock: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    probe = probe_of(fake.FakeNvml(fake.FakeCard()))
    monkeypatch.delattr(pynvml, "c_nvmlGpmMetricsGet_t")
    seen = second_look(probe, clock)
    assert values(seen) == all_of(Absence.FUNCTION_NOT_FOUND)
    assert seen.temperature_c.value == 56
