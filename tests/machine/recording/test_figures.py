from collections.abc import Callable
from datetime import datetime

import pytest

from app.machine.probes.accelerator import CardReadings
from app.machine.probes.reading import Absence, units_of
from app.machine.probes.servers.readings import ServerReadings
from app.machine.probes.snapshot import HostReadings, ProbeSnapshot
from app.machine.recording.figures import CARD_FIGURES, HOST_FIGURES, SERVER_FIGURES, UNITS, samples_of
from app.store.samples import Sample
from tests.recorded_rounds import CANARY, GIB, cards, host, round_of, server


def test_figures_that_are_there_are_kept_by_name_and_no_others(now: datetime) -> None:
    assert samples_of(round_of(now)) == (
        Sample(
            now,
            "nvidia/0",
            {
                "memory_used_bytes": 10 * GIB,
                "memory_total_bytes": 80 * GIB,
                "dram_activity_percent": 41.5,
                "gpu_utilization_percent": 97,
                "power_draw_w": 412.345,
                "sm_clock_mhz": 1_755,
            },
        ),
        Sample(now, "nvidia/1", {"temperature_c": 56}),
        Sample(
            now,
            "nvidia/1/1",
            {"memory_used_bytes": 0, "memory_total_bytes": 20 * GIB, "tensor_activity_percent": 3.25},
        ),
        Sample(now, "host", {"cpu_percent": 0.0, "memory_available_bytes": 200 * GIB}),
        Sample(
            now,
            "server-1",
            {"running": 8.0, "kv_cache_usage": 0.25, "output_tokens_per_s": 812.5, "ttft_p99_s": 0.5},
        ),
    )


def test_each_sample_can_be_stored_and_tells_nothing_of_the_machine(now: datetime) -> None:
    assert CANARY in repr(round_of(now))
    for sample in samples_of(round_of(now)):
        assert CANARY not in repr(sample.columns())


def test_figures_are_readings_with_the_unit_that_the_readings_say() -> None:
    assert set(CARD_FIGURES) <= units_of(CardReadings).keys()
    assert set(HOST_FIGURES) <= units_of(HostReadings).keys()
    assert set(SERVER_FIGURES) <= units_of(ServerReadings).keys()
    assert len(UNITS) == len(CARD_FIGURES) + len(HOST_FIGURES) + len(SERVER_FIGURES)
    units = ("power_draw_w", "ttft_p50_s", "kv_cache_usage", "flops_per_s")
    assert [UNITS[name] for name in units] == ["W", "s", "", "FLOP/s"]


@pytest.mark.parametrize(
    "spoil",
    [
        lambda one: one.missed(Absence.TIMEOUT, 1),
        lambda one: one.missed(Absence.TIMEOUT, 2),
        lambda one: ProbeSnapshot.absent(one.source, one.label, one.kind, Absence.TIMEOUT),
    ],
    ids=["missed", "stale", "absent"],
)
def test_what_was_not_measured_now_is_not_recorded(
    now: datetime, spoil: Callable[[ProbeSnapshot], ProbeSnapshot]
) -> None:
    assert samples_of(spoil(one) for one in round_of(now)) == ()
    assert [sample.source for sample in samples_of([host(now), spoil(cards(now))])] == ["host"]


def test_servers_keep_their_numbers_while_another_is_away(now: datetime) -> None:
    away = ProbeSnapshot.absent("one", "One", "server", Absence.UNREACHABLE)
    assert [sample.source for sample in samples_of([away, host(now), server(now)])] == ["host", "server-2"]


def test_source_without_a_single_figure_gives_no_sample(now: datetime) -> None:
    lost = CardReadings.unreadable(0, "nvidia", Absence.GPU_LOST)
    empty = ServerReadings.of("vllm", Absence.NEEDS_TWO_SAMPLES)
    assert samples_of([cards(now, cards=(lost,)), server(now, server=empty)]) == ()
