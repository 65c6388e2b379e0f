"""The probe: which way it takes, what it says where there is no card, and that neither drivers nor threads upset it."""

import json
import os
import shutil
import sys
import threading
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from app.machine.probes.amd import CARD_LIMIT, CARD_REST_S, AmdProbe
from app.machine.probes.reading import Absence, Reading
from app.machine.probes.snapshot import Probe

fake = import_module("tests.machine.probes.fake_amdsmi")
tree = import_module("tests.machine.probes.fake_sysfs")

MIB, GIB = 2**20, 2**30
BDF = "0000:0c:00.0"

ProbeOf = Callable[..., AmdProbe]


@pytest.fixture
def clock() -> Any:
    return fake.FakeClock()


@pytest.fixture
def probe_of(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, clock: Any) -> ProbeOf:
    """A probe over a fake binding (None: the package is not installed) and the tree at `tmp_path`."""

    def build(library: Any = None) -> AmdProbe:
        if library is None:
            monkeypatch.setitem(sys.modules, "amdsmi", None)
        else:
            library.install(monkeypatch)
        (tmp_path / "meminfo").write_text(tree.MEMINFO)
        return AmdProbe(
            clock=clock, sysfs=tree.drm(tmp_path), meminfo=tmp_path / "meminfo", names=tmp_path / "amdgpu.ids"
        )

    return build


def test_a_machine_without_such_cards_is_calm_and_costs_nothing(probe_of: ProbeOf) -> None:
    probe: Probe = probe_of()
    snapshot = probe.snapshot()
    assert (snapshot.source, snapshot.label, snapshot.kind) == ("amd", "AMD cards", "cards")
    assert (snapshot.state, snapshot.absence, snapshot.cards) == ("absent", Absence.NO_DRIVER, ())
    probe.close()
    probe.close()


def test_through_the_library(probe_of: ProbeOf) -> None:
    library = fake.FakeAmdSmi(fake.FakeCard(), fake.FakeCard(name="AMD Instinct MI325X", uuid="other"))
    snapshot = probe_of(library).snapshot()
    assert snapshot.state == "ok"
    assert [(card.index, card.name.value) for card in snapshot.cards] == [
        (0, "AMD Instinct MI300X"),
        (1, "AMD Instinct MI325X"),
    ]
    assert snapshot.driver_version == Reading("6.12.12", read_from="amdsmi")


def test_a_driver_of_the_kernels_has_no_version(probe_of: ProbeOf) -> None:
    version = probe_of(fake.FakeAmdSmi(fake.FakeCard(), driver="")).snapshot().driver_version
    assert version == Reading(None, "", Absence.NOT_SUPPORTED, "amdsmi")


@pytest.mark.parametrize(
    "library",
    [
        lambda: None,
        lambda: fake.FakeAmdSmi(),
        lambda: fake.FakeAmdSmi(fake.FakeCard(), missing=("amdsmi_init",)),
        lambda: fake.FakeAmdSmi(fake.FakeCard(errors={"*": fake.DRIVER_NOT_LOADED})),
    ],
    ids=["no package", "no card", "another release", "no driver"],
)
def test_without_the_library_the_kernels_files_are_read(
    probe_of: ProbeOf, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, library: Callable[[], Any]
) -> None:
    tree.add_card(tmp_path, tree.RX_7900_XTX, number=1, pci_address="0000:c3:00.0")
    tree.add_card(tmp_path, tree.RX_7900_XTX, number=2)
    (tmp_path / "amdgpu.ids").write_text("744C,\tC8,\tAMD Radeon RX 7900 XTX\n")
    monkeypatch.setattr("platform.release", lambda: "6.14.0-37-generic")
    snapshot = probe_of(library()).snapshot()
    assert (snapshot.state, snapshot.absence) == ("ok", None)
    assert [(card.index, card.name.value, card.fault) for card in snapshot.cards] == [
        (0, "AMD Radeon RX 7900 XTX", None),
        (1, "AMD Radeon RX 7900 XTX", None),
    ]
    assert snapshot.driver_version == Reading("Linux 6.14.0-37-generic", read_from="sysfs")


def test_a_driver_from_outside_the_kernel_tells_its_version(probe_of: ProbeOf, tmp_path: Path) -> None:
    tree.add_card(tmp_path, tree.RX_7900_XTX)
    module = tmp_path / "module" / "amdgpu"
    module.mkdir(parents=True)
    (module / "version").write_text("6.12.12\n")
    assert probe_of().snapshot().driver_version == Reading("6.12.12", read_from="sysfs")


def test_the_kernel_completes_what_the_library_does_not_know(probe_of: ProbeOf, tmp_path: Path) -> None:
    """As on Strix Halo, of which the library knows the name and the memory, and the kernel everything."""
    tree.add_card(tmp_path, tree.STRIX_HALO, pci_address=BDF)
    names = ("power_info", "power_cap_info", "clock_info", "temp_metric", "pcie_info", "link_metrics")
    card = fake.FakeCard(
        name="Radeon 8060S Graphics",
        target="gfx9999",
        vram=(GIB // 2, GIB // 4),
        gtt=(120 * GIB, 60 * GIB),
        errors={f"amdsmi_get_{name}": fake.NOT_SUPPORTED for name in names}
        | {f"amdsmi_get_gpu_{name}": fake.NOT_SUPPORTED for name in ("activity", "metrics_info", "compute_partition")},
    )
    (seen,) = probe_of(fake.FakeAmdSmi(card)).snapshot().cards
    assert seen.name.value == "Radeon 8060S Graphics"
    assert seen.unified_memory, "the kernel's table says so"
    assert seen.memory_total_bytes.value == 120 * GIB + GIB // 2
    assert seen.gpu_utilization_percent.value == 77
    assert (seen.sm_clock_mhz.value, seen.memory_clock_max_mhz.value) == (2_900, 1_000)
    assert seen.power_draw_w == Reading(85.012, "W", read_from="power1_input")
    assert seen.temperature_c.value == 64


def test_the_kernel_is_not_asked_what_the_library_has_told(
    probe_of: ProbeOf, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tree.add_card(tmp_path, tree.RX_7900_XTX, pci_address=BDF)
    asked: list[str] = []
    opened = os.open

    def noted(path: Path, *arguments: Any, **named: Any) -> int:
        asked.append(Path(path).name)
        return opened(path, *arguments, **named)

    probe = probe_of(fake.FakeAmdSmi(fake.FakeCard()))
    monkeypatch.setattr(os, "open", noted)
    (card,) = probe.snapshot().cards
    assert card.fault is None
    assert asked == ["vendor"]


def test_the_kernel_overrules_nothing(probe_of: ProbeOf, tmp_path: Path) -> None:
    tree.add_card(tmp_path, tree.RX_7900_XTX, pci_address=BDF)
    (good,) = probe_of(fake.FakeAmdSmi(fake.FakeCard())).snapshot().cards
    assert (good.gpu_utilization_percent.value, good.power_draw_w.value) == (97, 650.0)
    refused = fake.FakeCard(errors={"amdsmi_get_gpu_activity": fake.NO_PERMISSION})
    (card,) = probe_of(fake.FakeAmdSmi(refused)).snapshot().cards
    assert card.gpu_utilization_percent.absence is Absence.NO_PERMISSION
    elsewhere = fake.FakeCard(bdf="0000:99:00.0", errors={"amdsmi_get_gpu_activity": fake.NOT_SUPPORTED})
    (card,) = probe_of(fake.FakeAmdSmi(elsewhere)).snapshot().cards
    assert card.gpu_utilization_percent.absence is Absence.NOT_SUPPORTED


def test_a_partition_is_not_completed_with_what_is_the_whole_cards(probe_of: ProbeOf, tmp_path: Path) -> None:
    tree.add_card(tmp_path, tree.RX_7900_XTX | {"gpu_busy_percent": "0"}, pci_address=BDF)
    parts = [
        fake.FakeCard(partition="CPX", gfx=gfx, uuid="shared", errors={"amdsmi_get_power_info": fake.NOT_SUPPORTED})
        for gfx in (0, fake.UINT16)
    ]
    first, second = probe_of(fake.FakeAmdSmi(*parts)).snapshot().cards
    assert first.gpu_utilization_percent.absence is Absence.ZERO_READING
    assert second.gpu_utilization_percent.absence is Absence.NOT_SUPPORTED
    assert second.power_draw_w.absence is Absence.NOT_SUPPORTED


def test_rates_come_with_the_second_sample_for_each_card_by_itself(probe_of: ProbeOf, clock: Any) -> None:
    one, other = fake.FakeCard(uuid="one"), fake.FakeCard(uuid="other")
    probe = probe_of(fake.FakeAmdSmi(one, other))
    probe.snapshot()
    clock.now_s += 1
    one.links = [(read + 1_000, write) for read, write in one.links[:7]]
    other.metrics = other.metrics | {"accumulation_counter": 1_001_000, "ppt_residency_acc": 1_000}
    first, second = probe.snapshot().cards
    assert first.nvlink_received_bytes_per_s.value == 7 * 1_000 * 1_000
    assert first.throttle_reasons.absence is Absence.NOTHING_TO_MEASURE
    assert second.nvlink_received_bytes_per_s.value == 0
    assert second.throttle_reasons.value == ("power cap",)


def test_a_card_without_a_key_has_rates_too(probe_of: ProbeOf, tmp_path: Path, clock: Any) -> None:
    tree.add_card(tmp_path, tree.RX_7900_XTX, pci_address=BDF)
    names = ("device_uuid", "activity")
    card = fake.FakeCard(errors={f"amdsmi_get_gpu_{name}": fake.NOT_SUPPORTED for name in names})
    probe = probe_of(fake.FakeAmdSmi(card))
    probe.snapshot()
    clock.now_s += 1
    (seen,) = probe.snapshot().cards
    assert seen.uuid.absence is Absence.NOT_SUPPORTED
    assert seen.gpu_utilization_percent.value == 83, "from the kernel"
    assert seen.nvlink_sent_bytes_per_s.value == 0


def test_cards_that_change_places_keep_no_rates_of_each_other(probe_of: ProbeOf, clock: Any) -> None:
    one, other = fake.FakeCard(uuid="one"), fake.FakeCard(uuid="other", links=[(5, 5)])
    library = fake.FakeAmdSmi(one, other)
    probe = probe_of(library)
    probe.snapshot()
    clock.now_s += 1
    library.cards.reverse()
    assert {card.nvlink_sent_bytes_per_s.absence for card in probe.snapshot().cards} == {Absence.NEEDS_TWO_SAMPLES}


def test_a_lost_card_is_reported_and_the_library_opened_afresh_after_a_while(probe_of: ProbeOf, clock: Any) -> None:
    good, lost = fake.FakeCard(uuid="good"), fake.FakeCard(errors={"*": fake.NOT_FOUND})
    library = fake.FakeAmdSmi(good, lost)
    probe = probe_of(library)
    first, second = probe.snapshot().cards
    assert first.fault is None
    assert first.temperature_c.value == 63
    assert (second.index, second.fault, second.name.absence) == (1, Absence.GPU_LOST, Absence.GPU_LOST)
    clock.now_s += CARD_REST_S / 2
    probe.snapshot()
    assert library.calls["amdsmi_init"] == 1
    lost.errors.clear()
    clock.now_s += CARD_REST_S / 2
    assert [card.fault for card in probe.snapshot().cards] == [None, None]
    assert library.calls["amdsmi_init"] == 2


@pytest.mark.parametrize(
    ("code", "fault"), [(fake.NOT_FOUND, Absence.GPU_LOST), (fake.RESTART_FAILED, Absence.RESET_REQUIRED)]
)
@pytest.mark.parametrize("function", ["amdsmi_get_gpu_asic_info", "amdsmi_get_gpu_memory_total"])
def test_the_only_card_is_shown_with_its_fault(probe_of: ProbeOf, function: str, code: int, fault: Absence) -> None:
    snapshot = probe_of(fake.FakeAmdSmi(fake.FakeCard(errors={function: code}))).snapshot()
    assert snapshot.state == "ok"
    assert [card.fault for card in snapshot.cards] == [fault]


def test_a_driver_that_is_unloaded_ends_polling_until_the_next_attempt(probe_of: ProbeOf, clock: Any) -> None:
    card = fake.FakeCard()
    library = fake.FakeAmdSmi(card)
    probe = probe_of(library)
    assert probe.snapshot().state == "ok"
    card.errors["*"] = fake.DRIVER_NOT_LOADED
    assert probe.snapshot().absence is Absence.NO_DRIVER
    calls = library.calls.total()
    assert probe.snapshot().absence is Absence.NO_DRIVER
    assert library.calls.total() == calls
    card.errors.clear()
    clock.now_s += 1
    assert probe.snapshot().state == "ok"


@pytest.mark.parametrize(
    ("code", "absence"),
    [
        (fake.NO_PERMISSION, Absence.NO_PERMISSION),
        (fake.BUSY, Absence.TIMEOUT),
        (fake.DRIVER_NOT_LOADED, Absence.NO_DRIVER),
        (18, Absence.NO_DRIVER),
    ],
    ids=["no permission", "busy", "no driver", "initialization failed"],
)
def test_a_library_that_does_not_open_says_why_if_that_tells_anything(
    probe_of: ProbeOf, clock: Any, code: int, absence: Absence
) -> None:
    library = fake.FakeAmdSmi(fake.FakeCard())
    library.errors["amdsmi_init"] = code
    probe = probe_of(library)
    for _ in range(5):
        assert probe.snapshot().absence is absence
    assert library.calls["amdsmi_init"] == 1
    library.errors.clear()
    clock.now_s += 1
    assert probe.snapshot().state == "ok"


def test_a_library_that_does_not_list_its_cards_is_opened_afresh(probe_of: ProbeOf, clock: Any) -> None:
    library = fake.FakeAmdSmi(fake.FakeCard())
    library.errors["amdsmi_get_processor_handles"] = fake.BUSY
    probe = probe_of(library)
    for _ in range(5):
        assert probe.snapshot().absence is Absence.TIMEOUT
    assert library.calls["amdsmi_get_processor_handles"] == 1
    library.errors.clear()
    clock.now_s += 1
    assert probe.snapshot().state == "ok"
    assert library.calls["amdsmi_init"] == 2


def test_a_driver_that_shows_no_card_says_so(probe_of: ProbeOf) -> None:
    assert probe_of(fake.FakeAmdSmi()).snapshot().absence is Absence.NO_CARDS


@pytest.mark.parametrize(
    "handles", [{}, 7, "two", [None] * (CARD_LIMIT + 1)], ids=["dictionary", "number", "text", "too many"]
)
def test_an_absurd_list_of_cards_is_not_believed(probe_of: ProbeOf, handles: object) -> None:
    library = fake.FakeAmdSmi()
    library.handles = handles
    assert probe_of(library).snapshot().absence is Absence.IMPLAUSIBLE


def test_neither_uuid_nor_address_nor_processes_leave_the_server(probe_of: ProbeOf, tmp_path: Path) -> None:
    library = fake.FakeAmdSmi(fake.FakeCard())
    snapshot = probe_of(library).snapshot()
    assert "canary" in str(snapshot.cards[0].uuid.value)
    tree.add_card(tmp_path, tree.RX_7900_XTX)
    by_kernel = probe_of().snapshot()
    assert "canary" in str(by_kernel.cards[0].uuid.value)
    for shown in (snapshot, by_kernel):
        said = json.dumps(shown.document(), allow_nan=False) + repr(shown)
        assert "canary" not in said.lower()
        assert BDF not in said
        assert "0000:03:00.0" not in said
    assert not [name for name in library.calls if "process" in name and "handles" not in name]


def test_a_fault_of_our_own_does_not_reach_the_caller(probe_of: ProbeOf, monkeypatch: pytest.MonkeyPatch) -> None:
    probe = probe_of(fake.FakeAmdSmi(fake.FakeCard()))
    monkeypatch.setattr("app.machine.probes.amd.read_card", lambda *arguments, **named: 1 / 0)
    assert probe.snapshot().absence is Absence.UNKNOWN_ERROR


def test_several_threads_may_ask_at_once(probe_of: ProbeOf) -> None:
    library = fake.FakeAmdSmi(fake.FakeCard(), fake.FakeCard(uuid="other"))
    probe = probe_of(library)
    inside, most, states = 0, 0, []
    handles = library.module.amdsmi_get_processor_handles

    def watched() -> Any:
        nonlocal inside, most
        inside += 1
        most = max(most, inside)
        threading.Event().wait(0.002)
        inside -= 1
        return handles()

    library.module.amdsmi_get_processor_handles = watched
    threads = [threading.Thread(target=lambda: states.append(probe.snapshot().state)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    probe.close()
    assert (states, most) == (["ok"] * 8, 1)
    assert library.calls["amdsmi_shut_down"] == 1


def test_closing_lets_go_and_the_next_snapshot_opens_again(probe_of: ProbeOf) -> None:
    library = fake.FakeAmdSmi(fake.FakeCard())
    probe = probe_of(library)
    probe.snapshot()
    probe.close()
    probe.close()
    assert library.calls["amdsmi_shut_down"] == 1
    assert probe.snapshot().state == "ok"


@pytest.mark.skipif(shutil.which("amd-smi") is None, reason="no AMD driver here (amd-smi is missing)")
def test_a_real_card_is_read() -> None:
    probe = AmdProbe()
    try:
        snapshot = probe.snapshot()
        assert snapshot.state == "ok", snapshot.absence
        assert all(card.name.value and card.memory_total_bytes.value for card in snapshot.cards)
    finally:
        probe.close()
