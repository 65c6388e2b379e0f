"""The probe over the real pynvml binding and a fake library: what it shows, remembers, forgets and keeps to itself."""

import json
import shutil
import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any

import pytest

from app.machine.probes.nvidia import NvidiaProbe
from app.machine.probes.reading import Absence

pynvml = pytest.importorskip("pynvml", reason="nvidia-ml-py (the nvidia extra) is not installed")
fake = import_module("tests.machine.probes.fake_nvml")

ProbeOf = Callable[[object], NvidiaProbe]


def test_cards_keep_the_order_of_the_driver(probe_of: ProbeOf) -> None:
    names = [b"NVIDIA H200", b"NVIDIA L4", b"Tesla T4"]
    snapshot = probe_of(fake.FakeNvml(*(fake.FakeCard(name=name) for name in names))).snapshot()
    assert [(card.index, card.name.value) for card in snapshot.cards] == [(i, n.decode()) for i, n in enumerate(names)]


def test_a_missing_binding_is_a_calm_answer(probe_of: ProbeOf, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", None)
    snapshot = probe_of(None).snapshot()
    assert (snapshot.state, snapshot.absence) == ("absent", Absence.NOT_INSTALLED)


def test_a_driver_without_cards_says_so(probe_of: ProbeOf) -> None:
    assert probe_of(fake.FakeNvml()).snapshot().absence is Absence.NO_CARDS


def test_an_absurd_number_of_cards_is_not_believed(probe_of: ProbeOf) -> None:
    library = fake.FakeNvml(fake.FakeCard())
    library.count = 2**32 - 1
    assert probe_of(library).snapshot().absence is Absence.IMPLAUSIBLE


def test_a_card_lost_from_the_start_has_an_index_and_a_fault(probe_of: ProbeOf) -> None:
    (card,) = probe_of(fake.FakeNvml(fake.FakeCard(errors={fake.HANDLE: fake.GPU_IS_LOST}))).snapshot().cards
    assert (card.index, card.fault, card.name.absence) == (0, Absence.GPU_LOST, Absence.GPU_LOST)


def test_a_library_shut_down_by_somebody_else_is_opened_again(probe_of: ProbeOf, clock: Any) -> None:
    library = fake.FakeNvml(fake.FakeCard())
    probe = probe_of(library)
    assert probe.snapshot().state == "ok"
    library.errors[fake.COUNT] = fake.UNINITIALIZED
    assert probe.snapshot().absence is Absence.UNKNOWN_ERROR
    library.errors.clear()
    clock.now_s += 1
    assert probe.snapshot().state == "ok"
    assert library.calls[fake.INIT + "()"] == 2


def test_a_driver_upgraded_before_the_start_is_a_version_mismatch(probe_of: ProbeOf) -> None:
    library = fake.FakeNvml(fake.FakeCard())
    library.errors[fake.INIT] = fake.VERSION_MISMATCH
    snapshot = probe_of(library).snapshot()
    assert (snapshot.state, snapshot.absence) == ("absent", Absence.VERSION_MISMATCH)


def test_neither_the_uuid_nor_anything_else_of_the_machine_leaves_the_server(probe_of: ProbeOf) -> None:
    slice_of_it = fake.FakeCard(uuid=b"MIG-canary-uuid")
    snapshot = probe_of(fake.FakeNvml(fake.FakeCard(), fake.FakeCard(mig=1, instances=[slice_of_it]))).snapshot()
    assert snapshot.cards[0].uuid.value == "GPU-00000000-canary-uuid"
    assert "canary" not in json.dumps(snapshot.document(), allow_nan=False)
    assert "canary" not in repr(snapshot)


def test_a_card_that_goes_takes_what_was_kept_of_it_along(probe_of: ProbeOf, clock: Any) -> None:
    stays, goes = fake.FakeCard(uuid=b"GPU-1"), fake.FakeCard(uuid=b"GPU-2")
    library = fake.FakeNvml(stays, goes)
    probe = probe_of(library)
    probe.snapshot()
    assert len(library.samples) == 2
    library.cards.remove(goes)
    for _ in range(3):
        clock.now_s += 1
        (card,) = probe.snapshot().cards
        assert len(library.samples) == 1
    assert card.dram_activity_percent.value == 62.0
    library.cards.append(goes)
    clock.now_s += 1
    assert probe.snapshot().cards[1].dram_activity_percent.absence is Absence.NEEDS_TWO_SAMPLES


def test_what_was_counted_stays_with_its_card_when_the_order_changes(probe_of: ProbeOf, clock: Any) -> None:
    one, two = fake.FakeCard(uuid=b"GPU-1"), fake.FakeCard(uuid=b"GPU-2")
    one.count(nvlink_sent=10**9)
    library = fake.FakeNvml(one, two)
    probe = probe_of(library)
    probe.snapshot()
    library.cards.reverse()
    one.count(nvlink_sent=1_000)
    two.count(nvlink_sent=2_000)
    clock.now_s += 1
    first, second = probe.snapshot().cards
    assert (first.nvlink_sent_bytes_per_s.value, second.nvlink_sent_bytes_per_s.value) == (2_000 * 1024, 1_000 * 1024)


def test_what_was_counted_does_not_go_on_with_another_driver(probe_of: ProbeOf, clock: Any) -> None:
    library = fake.FakeNvml(fake.FakeCard(), missing=(fake.GPM_ALLOC,))
    probe = probe_of(library)
    probe.snapshot()
    library.errors[fake.COUNT] = fake.VERSION_MISMATCH
    clock.now_s += 1
    assert probe.snapshot().absence is Absence.VERSION_MISMATCH
    library.errors.clear()
    library.missing = ()
    clock.now_s += 2
    (card,) = probe.snapshot().cards
    assert card.nvlink_sent_bytes_per_s.absence is Absence.NEEDS_TWO_SAMPLES
    assert card.dram_activity_percent.absence is Absence.NEEDS_TWO_SAMPLES, (
        "the newer driver may know what the older did not"
    )


def test_a_card_without_a_uuid_has_no_rates_and_says_why(probe_of: ProbeOf, clock: Any) -> None:
    library = fake.FakeNvml(fake.FakeCard(errors={"nvmlDeviceGetUUID": fake.NO_PERMISSION}))
    probe = probe_of(library)
    probe.snapshot()
    clock.now_s += 1
    (card,) = probe.snapshot().cards
    counted = (card.nvlink_sent_bytes_per_s, card.pcie_sent_bytes_per_s, card.dram_activity_percent)
    assert {reading.absence for reading in counted} == {Absence.NO_PERMISSION}
    assert not library.samples
    assert card.temperature_c.value == 56


def test_two_cards_that_claim_one_uuid_do_no_harm(probe_of: ProbeOf, clock: Any) -> None:
    library = fake.FakeNvml(fake.FakeCard(), fake.FakeCard())
    probe = probe_of(library)
    probe.snapshot()
    clock.now_s += 1
    assert [card.dram_activity_percent.value for card in probe.snapshot().cards] == [62.0, 62.0]
    assert len(library.samples) == 1


def test_memory_stays_flat_over_many_snapshots(probe_of: ProbeOf, clock: Any) -> None:
    instances = [fake.FakeCard(uuid=b"MIG-%d" % place, gpu_instance=place) for place in range(7)]
    library = fake.FakeNvml(fake.FakeCard(uuid=b"GPU-1"), fake.FakeCard(uuid=b"GPU-2", mig=1, instances=instances))
    probe = probe_of(library)
    for turn in range(20):
        instances[0].uuid = b"MIG-again-%d" % turn  # An instance that is made anew each time.
        probe.snapshot()
        clock.now_s += 1
        assert len(library.samples) == 8
    probe.close()
    assert not library.samples


def test_closing_shuts_the_library_down_once(probe_of: ProbeOf) -> None:
    library = fake.FakeNvml(fake.FakeCard())
    probe = probe_of(library)
    probe.snapshot()
    assert library.samples
    probe.close()
    probe.close()
    assert not library.samples, "what the driver allocated is freed before it is shut down"
    assert library.calls["nvmlShutdown()"] == 1
    assert probe.snapshot().state == "ok"


def test_a_fault_of_our_own_does_not_reach_the_caller(probe_of: ProbeOf, monkeypatch: pytest.MonkeyPatch) -> None:
    probe = probe_of(fake.FakeNvml(fake.FakeCard()))
    monkeypatch.setattr(pynvml, "nvmlDeviceGetCount", lambda: "three")
    assert probe.snapshot().absence is Absence.UNKNOWN_ERROR


@pytest.mark.skipif(shutil.which("nvidia-smi") is None, reason="no NVIDIA driver here (nvidia-smi is missing)")
def test_a_real_card_is_read() -> None:
    probe = NvidiaProbe()
    try:
        snapshot = probe.snapshot()
        assert snapshot.state == "ok", snapshot.absence
        assert all(card.name.value and card.memory_total_bytes.value for card in snapshot.cards)
    finally:
        probe.close()
