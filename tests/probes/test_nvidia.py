"""The probe over the real pynvml binding and a fake library: no driver, lost cards, changed drivers, containers."""

import shutil
import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any

import pytest

from app.probes.nvidia import CARD_REST_S, NvidiaProbe
from app.probes.reading import Absence

pynvml = pytest.importorskip("pynvml", reason="nvidia-ml-py (the nvidia extra) is not installed")
fake = import_module("tests.probes.fake_nvml")

ProbeOf = Callable[[object], NvidiaProbe]


def test_cards_keep_the_order_of_the_driver(probe_of: ProbeOf) -> None:
    names = [b"NVIDIA H200", b"NVIDIA L4", b"Tesla T4"]
    snapshot = probe_of(fake.FakeNvml(*(fake.FakeCard(name=name) for name in names))).snapshot()
    assert [(card.index, card.name.value) for card in snapshot.cards] == [(i, n.decode()) for i, n in enumerate(names)]


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


@pytest.mark.parametrize(
    ("code", "fault"), [(fake.GPU_IS_LOST, Absence.GPU_LOST), (fake.RESET_REQUIRED, Absence.RESET_REQUIRED)]
)
def test_a_lost_card_is_reported_and_left_alone_for_a_while(
    probe_of: ProbeOf, clock: Any, code: int, fault: Absence
) -> None:
    good, lost = fake.FakeCard(), fake.FakeCard(errors={"nvmlDeviceGetClockInfo": code})
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


def test_a_card_lost_from_the_start_has_an_index_and_a_fault(probe_of: ProbeOf) -> None:
    (card,) = probe_of(fake.FakeNvml(fake.FakeCard(errors={fake.HANDLE: fake.GPU_IS_LOST}))).snapshot().cards
    assert (card.index, card.fault, card.name.absence) == (0, Absence.GPU_LOST, Absence.GPU_LOST)


def test_a_driver_upgraded_before_the_start_is_a_version_mismatch(probe_of: ProbeOf) -> None:
    library = fake.FakeNvml(fake.FakeCard())
    library.errors[fake.INIT] = fake.VERSION_MISMATCH
    snapshot = probe_of(library).snapshot()
    assert (snapshot.state, snapshot.absence) == ("absent", Absence.VERSION_MISMATCH)


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


def test_a_container_with_unknown_error_recovers(probe_of: ProbeOf, clock: Any) -> None:
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


def test_closing_shuts_the_library_down_once(probe_of: ProbeOf) -> None:
    library = fake.FakeNvml(fake.FakeCard())
    probe = probe_of(library)
    probe.snapshot()
    probe.close()
    probe.close()
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
