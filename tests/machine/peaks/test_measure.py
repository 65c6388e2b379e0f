"""One measurement from the question to the file."""

import asyncio
import logging
from pathlib import Path
from typing import Any

import pytest

from app.machine.peaks.measure import NotKeptError, Rig, installed_libraries, measure
from app.machine.peaks.outcome import Fault, MeasureError, Outcome
from app.machine.peaks.result import MeasuredRoofs
from app.machine.peaks.runner import held
from app.machine.probes.accelerator import CardReadings
from app.machine.probes.amd_card import VENDOR as AMD
from app.machine.probes.reading import Absence, Reading
from tests.machine.peaks.measured import stream
from tests.machine.peaks.workers import NAME, TOTAL_BYTES, UUID, card, nothing_seen, rig, seen

GIB = 2**30


def run(asked: Rig, device: int = 0) -> MeasuredRoofs:
    return asyncio.run(measure(asked, device, 60))


def refusal(asked: Rig, device: int = 0) -> MeasureError:
    admitted: list[bool] = []
    with pytest.raises(MeasureError) as caught:
        asyncio.run(measure(asked, device, 60, admitted=lambda: admitted.append(True)))
    assert not admitted
    assert asked.store.read() == ()
    return caught.value


@pytest.fixture
def found_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """No process for what the worker has no part in: it is said at once to have found a card and its roofs."""

    async def worker(*_: object, **__: object) -> Outcome:
        return Outcome("torch", {"torch": "2.9.1"}, NAME, TOTAL_BYTES, (stream(2.9e12),), ())

    monkeypatch.setattr("app.machine.peaks.measure.run_worker", worker)


BUSY = {"behaviour": "take a while"}
"""Long enough to be looked at."""


def test_roofs_are_measured_and_kept_with_the_card_before_and_after(tmp_path: Path) -> None:
    hot = card(power_draw_w=Reading(650.0, "W"), throttle_reasons=Reading(("sw_power_cap",)))
    warm = card(temperature_c=Reading(55, "°C"))
    asked = rig(tmp_path, seen(card()), seen(hot), seen(warm), watch_every_s=0.02, told=BUSY)
    roofs = run(asked)
    assert asked.store.read() == (roofs,)
    assert roofs.card == (NAME, TOTAL_BYTES)
    assert roofs.versions == {"torch": "2.9.1+fake", "cuda": "13.0", "driver": "580.95.05"}
    assert roofs.before.temperature_c.value == 31
    assert roofs.under_load.power_draw_w.value == 650.0
    assert roofs.under_load.throttle_reasons.value == ("sw_power_cap",)
    assert roofs.after.temperature_c.value == 55
    assert [rate.best_bytes_per_s for rate in roofs.streams] == pytest.approx([3e12, 3e12])


@pytest.mark.parametrize(
    ("changed", "fault", "words"),
    [
        ({"memory_used_bytes": Reading(9 * GIB, "B")}, Fault.CARD_IN_USE, "11 % of its memory"),
        ({"mig_enabled": Reading(True)}, Fault.MIG_ENABLED, "MIG"),
        ({"fault": Absence.GPU_LOST}, Fault.CARD_FAULT, "fallen off the bus"),
        (
            {"unified_memory": True, "gpu_utilization_percent": Reading(40, "%")},
            Fault.CARD_IN_USE,
            "40 % of the time",
        ),
    ],
    ids=["memory", "mig", "lost", "unified"],
)
def test_a_card_that_cannot_be_measured_is_refused_by_name(
    tmp_path: Path, changed: dict[str, Any], fault: Fault, words: str
) -> None:
    error = refusal(rig(tmp_path, seen(card(**changed))))
    assert error.fault is fault
    assert words in error.message


@pytest.mark.parametrize(
    "changed",
    [
        {"memory_used_bytes": Reading(7 * GIB, "B")},
        {"memory_used_bytes": Reading.missing(Absence.NOT_SUPPORTED, "B")},
        {"memory_total_bytes": Reading.missing(Absence.NOT_SUPPORTED, "B")},
        {"unified_memory": True, "memory_used_bytes": Reading(60 * GIB, "B")},
        {"unified_memory": True, "gpu_utilization_percent": Reading.missing(Absence.NOT_SUPPORTED, "%")},
        {"mig_enabled": Reading.missing(Absence.NOT_SUPPORTED)},
    ],
    ids=lambda changed: "-".join(changed),
)
@pytest.mark.usefixtures("found_at_once")
def test_a_card_that_is_free_or_of_which_nothing_is_known_is_measured(tmp_path: Path, changed: dict[str, Any]) -> None:
    assert run(rig(tmp_path, seen(card(**changed)))).streams


@pytest.mark.usefixtures("found_at_once")
def test_a_machine_without_a_probe_is_measured_too_and_says_what_it_does_not_know(tmp_path: Path) -> None:
    roofs = run(rig(tmp_path, nothing_seen()))
    assert roofs.card == (NAME, TOTAL_BYTES)
    assert "driver" not in roofs.versions
    assert roofs.before.sm_clock_mhz.absence is Absence.NO_DRIVER
    assert roofs.after.sm_clock_mhz.absence is Absence.NO_DRIVER


def test_the_worker_looks_for_company_where_no_probe_does(tmp_path: Path) -> None:
    asked = rig(tmp_path, nothing_seen(), told={"held_by_others_bytes": 30 * GIB})
    with pytest.raises(MeasureError) as caught:
        run(asked)
    assert caught.value.fault is Fault.CARD_IN_USE
    unified = rig(tmp_path, seen(card(unified_memory=True)), told={"held_by_others_bytes": 30 * GIB})
    assert run(unified).streams


def test_a_card_that_is_not_there(tmp_path: Path) -> None:
    error = refusal(rig(tmp_path, seen(card(0), card(1))), device=2)
    assert (error.fault, error.detail) == (Fault.NO_SUCH_CARD, "2")


def test_the_card_is_pinned_by_its_key_and_known_by_its_name(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "tokenroof.microbench")
    second = card(1, name=Reading("NVIDIA H100 NVL"), memory_total_bytes=Reading(100_000_000_000, "B"))
    # The library is told to show one card, and counts it as its first.
    roofs = run(rig(tmp_path, seen(card(0), second), told={"count": 1, "behaviour": "tell"}), device=1)
    assert roofs.card == ("NVIDIA H100 NVL", 100_000_000_000)
    assert "CUDA_VISIBLE_DEVICES" in caplog.text
    assert UUID not in caplog.text
    assert UUID not in (tmp_path / "measured_roofs.json").read_text()


def unpinned(**changed: Any) -> CardReadings:
    return card(uuid=Reading.missing(Absence.NOT_REPORTED), **changed)


@pytest.mark.usefixtures("found_at_once")
def test_without_a_key_readings_are_believed_only_of_a_card_of_that_name(tmp_path: Path) -> None:
    same = run(rig(tmp_path, seen(unpinned())))
    assert same.before.sm_clock_mhz.value == 1980
    other = run(rig(tmp_path, seen(unpinned(name=Reading("AMD Instinct MI300X"), vendor=AMD))))
    assert other.card_name == NAME
    assert other.before.sm_clock_mhz.absence is Absence.NOT_REPORTED
    assert other.under_load == other.before == other.after


@pytest.mark.parametrize("name", ["", "\u202e\n", " " * 90])
def test_a_library_that_does_not_know_its_card(tmp_path: Path, name: str) -> None:
    asked = rig(tmp_path, nothing_seen(), told={"name": name})
    with pytest.raises(MeasureError) as caught:
        run(asked)
    assert caught.value.fault is Fault.GARBLED
    assert asked.store.read() == ()


def test_a_card_that_is_lost_while_it_works(tmp_path: Path) -> None:
    asked = rig(tmp_path, seen(card()), seen(), watch_every_s=0.02, told={"behaviour": "die"})
    with pytest.raises(MeasureError) as caught:
        run(asked)
    assert caught.value.fault is Fault.DIED
    roofs = run(rig(tmp_path, seen(card()), nothing_seen()))
    assert roofs.after.sm_clock_mhz.absence is Absence.NO_DRIVER


@pytest.mark.usefixtures("found_at_once")
def test_one_at_a_time(tmp_path: Path) -> None:
    asked = rig(tmp_path)
    with held(asked.lock):
        assert refusal(asked).fault is Fault.RUNNING
    assert run(asked).streams
    assert run(asked).streams


def test_without_a_library_there_is_nothing_to_measure_with(tmp_path: Path) -> None:
    error = refusal(rig(tmp_path, libraries=()))
    assert error.fault is Fault.NO_LIBRARY
    assert "torch nor cupy" in error.message


@pytest.mark.usefixtures("found_at_once")
def test_roofs_that_cannot_be_kept_are_handed_over_all_the_same(tmp_path: Path) -> None:
    (tmp_path / "a file").write_text("")
    asked = rig(tmp_path / "a file", lock=tmp_path / "lock")
    with pytest.raises(NotKeptError) as caught:
        run(asked)
    assert caught.value.roofs.streams
    assert str(tmp_path) not in caught.value.message


@pytest.mark.parametrize(("device", "seconds"), [(-1, 60.0), (0, float("nan")), (0, 1e9), (10**9, 60.0)])
def test_what_cannot_be_asked(tmp_path: Path, device: int, seconds: float) -> None:
    with pytest.raises(ValueError, match=r"takes|device"):
        asyncio.run(measure(rig(tmp_path), device, seconds))


def test_libraries_are_found_without_being_loaded(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    loaded = tmp_path / "loaded"
    for name in ("torch", "cupy"):
        monkeypatch.delitem(__import__("sys").modules, name, raising=False)
    (tmp_path / "cupy").mkdir()
    (tmp_path / "cupy" / "__init__.py").write_text(f"open({str(loaded)!r}, 'w')")
    monkeypatch.syspath_prepend(tmp_path)
    assert "cupy" in installed_libraries()
    assert not loaded.exists()


def test_a_library_that_is_half_there_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(name: str) -> None:
        raise ValueError(f"{name}.__spec__ is None")

    monkeypatch.setattr("app.machine.peaks.measure.find_spec", fails)
    assert installed_libraries() == ()
