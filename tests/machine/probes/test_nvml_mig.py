"""MIG instances: which there are, what each has of its own, and what happens when they change."""

from collections.abc import Callable
from importlib import import_module
from typing import Any

import pytest

from app.machine.probes.accelerator import MigInstance
from app.machine.probes.nvidia import NvidiaProbe
from app.machine.probes.reading import Absence
from tests.machine.probes.seen import only_card, second_look

pytest.importorskip("pynvml", reason="nvidia-ml-py (the nvidia extra) is not installed")
fake = import_module("tests.machine.probes.fake_nvml")

ProbeOf = Callable[[object], NvidiaProbe]


def instance(number: int, **changes: Any) -> Any:
    name, uuid = b"NVIDIA H100 80GB HBM3 MIG 1g.10gb", b"MIG-%d" % number
    return fake.FakeCard(**{"name": name, "uuid": uuid, "total": 10 * fake.GIB, "gpu_instance": number, **changes})


def split(*instances: Any, **changes: Any) -> Any:
    return fake.FakeCard(mig=1, instances=list(instances), **changes)


def test_an_instance_has_a_memory_of_its_own(probe_of: ProbeOf) -> None:
    (seen,) = only_card(probe_of(fake.FakeNvml(split(instance(3, used=fake.GIB, reserved=0)))).snapshot()).mig_instances
    assert (seen.memory_total_bytes.value, seen.memory_used_bytes.value) == (10 * fake.GIB, fake.GIB)
    assert seen.memory_free_bytes.value == 9 * fake.GIB


@pytest.mark.parametrize("count", ["not supported", "none", "absurd"])
def test_a_card_that_does_not_tell_its_instances_has_none(
    probe_of: ProbeOf, monkeypatch: pytest.MonkeyPatch, count: str
) -> None:
    card = split(instance(1))
    library = fake.FakeNvml(card)
    if count == "not supported":
        library.errors["nvmlDeviceGetMaxMigDeviceCount"] = fake.NOT_SUPPORTED
    elif count == "none":
        card.instances = []
    else:
        monkeypatch.setattr("pynvml.nvmlDeviceGetMaxMigDeviceCount", lambda handle: 2**32 - 1)
    seen = only_card(probe_of(library).snapshot())
    assert seen.mig_instances == ()
    assert seen.gpu_utilization_percent.absence is Absence.MIG_ENABLED


def test_an_instance_that_is_refused_is_there_and_says_why(probe_of: ProbeOf) -> None:
    card = split(instance(1), errors={fake.MIG_HANDLE: fake.NO_PERMISSION})
    (seen,) = only_card(probe_of(fake.FakeNvml(card)).snapshot()).mig_instances
    readings = (seen.name, seen.memory_total_bytes, seen.dram_activity_percent)
    assert {reading.absence for reading in readings} == {Absence.NO_PERMISSION}


def test_the_failure_of_one_instance_is_not_that_of_the_others(probe_of: ProbeOf, clock: Any) -> None:
    memory = {fake.MEMORY_V1: fake.NO_PERMISSION, fake.MEMORY_V2: fake.NO_PERMISSION}
    seen = second_look(probe_of(fake.FakeNvml(split(instance(1, errors=memory), instance(2)))), clock)
    first, second = seen.mig_instances
    assert first.memory_total_bytes.absence is Absence.NO_PERMISSION
    assert first.dram_activity_percent.value == 62.0
    assert second.memory_total_bytes.value == 10 * fake.GIB
    assert seen.fault is None


@pytest.mark.parametrize(
    ("errors", "absence"),
    [
        ({"nvmlDeviceGetGpuInstanceId": 3}, Absence.NOT_SUPPORTED),
        ({"nvmlDeviceGetUUID": 4}, Absence.NEEDS_TWO_SAMPLES),
    ],
    ids=["no instance number", "no UUID"],
)
def test_an_instance_that_cannot_be_told_from_others_has_no_activity(
    probe_of: ProbeOf, clock: Any, errors: dict[str, int], absence: Absence
) -> None:
    library = fake.FakeNvml(split(instance(1, errors=errors)))
    (seen,) = second_look(probe_of(library), clock).mig_instances
    assert seen.tensor_activity_percent.absence is absence
    assert not library.samples


def test_ampere_has_instances_without_activity(probe_of: ProbeOf, clock: Any) -> None:
    library = fake.FakeNvml(split(instance(1), instance(2), gpm_supported=0))
    seen = second_look(probe_of(library), clock)
    assert {each.dram_activity_percent.absence for each in seen.mig_instances} == {Absence.NOT_SUPPORTED}


def test_an_instance_made_anew_is_not_mixed_up_with_the_one_before(probe_of: ProbeOf, clock: Any) -> None:
    card = split(instance(1))
    library = fake.FakeNvml(card)
    probe = probe_of(library)
    second_look(probe, clock)
    card.instances = [instance(1, uuid=b"MIG-another")]
    clock.now_s += 1
    (seen,) = only_card(probe.snapshot()).mig_instances
    assert seen.dram_activity_percent.absence is Absence.NEEDS_TWO_SAMPLES
    assert len(library.samples) == 1, "the sample of the one that is gone was freed"


def test_splitting_a_card_and_joining_it_again_leaves_nothing_behind(probe_of: ProbeOf, clock: Any) -> None:
    card = fake.FakeCard(instances=[instance(1), instance(2)])
    library = fake.FakeNvml(card)
    probe = probe_of(library)
    seen: list[tuple[tuple[MigInstance, ...], int]] = []
    for mig in (0, 1, 0):
        card.mig = mig
        seen.append((second_look(probe, clock).mig_instances, len(library.samples)))
        clock.now_s += 1
    assert [(len(instances), samples) for instances, samples in seen] == [(0, 1), (2, 2), (0, 1)]
