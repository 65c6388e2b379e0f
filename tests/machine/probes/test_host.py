"""The machine's own readings: each guarded by itself, and in a container what the container may have.

The kernel's files: whatever lies in their place, the answer is a content or an absence, and it comes at once.
"""

import errno
import json
import os
import stat
import threading
from collections import namedtuple
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import psutil
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from app.machine.probes.host import (
    FILE_LIMIT_BYTES,
    HostProbe,
    absence_of,
    read_bytes,
    read_number,
    read_text,
    within_limit,
)
from app.machine.probes.reading import Absence, Reading
from app.machine.probes.snapshot import HostReadings, Probe

GIB = 2**30
NOW = datetime(2030, 1, 2, 3, 4, 5, tzinfo=UTC)

Times = namedtuple("Times", ["user", "nice", "system", "idle", "iowait", "guest", "guest_nice"])


@pytest.fixture
def probe(tmp_path: Path) -> HostProbe:
    """On this machine, without a limit."""
    return HostProbe(now=lambda: NOW, cgroup=tmp_path)


def read(probe: HostProbe) -> HostReadings:
    snapshot = probe.snapshot()
    assert snapshot.state == "ok"
    assert snapshot.host is not None
    json.dumps(snapshot.document(), allow_nan=False)
    return snapshot.host


def test_this_machine_is_read(probe: HostProbe) -> None:
    like_any: Probe = probe
    snapshot = like_any.snapshot()
    assert (snapshot.source, snapshot.label, snapshot.kind, snapshot.taken_at) == ("host", "This machine", "host", NOW)
    host = read(probe)
    assert host.logical_cpus.value == os.cpu_count()
    assert host.memory_total_bytes == Reading(psutil.virtual_memory().total, "B")
    total, available = host.memory_total_bytes.value, host.memory_available_bytes.value
    assert total is not None
    assert available is not None
    assert 0 < available <= total
    assert host.swap_used_bytes.value is not None


def test_no_name_and_no_process_of_the_machine_is_told(probe: HostProbe) -> None:
    assert set(read(probe).document()) == {
        *("cpu_percent", "logical_cpus", "memory_total_bytes", "memory_available_bytes", "swap_used_bytes")
    }


@pytest.fixture
def times(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    def now(**seconds: float) -> None:
        monkeypatch.setattr(
            psutil, "cpu_times", lambda: Times(**{name: seconds.get(name, 0.0) for name in Times._fields})
        )

    return now


def test_the_processors_busy_share_is_that_since_the_last_sample(probe: HostProbe, times: Callable[..., None]) -> None:
    times(user=100, system=20, idle=880)
    assert read(probe).cpu_percent == Reading.missing(Absence.NEEDS_TWO_SAMPLES, "%")
    times(user=101, system=21, idle=885, iowait=1)
    assert read(probe).cpu_percent == Reading(25.0, "%")
    times(user=104, guest=3, system=21, idle=888, iowait=1)
    assert read(probe).cpu_percent == Reading(50.0, "%"), "a guest's time is part of the user's"
    probe.close()
    assert read(probe).cpu_percent.absence is Absence.NEEDS_TWO_SAMPLES


@pytest.mark.parametrize("later", [{"user": 100, "idle": 900}, {"user": 50, "idle": 400}], ids=["same", "backwards"])
def test_a_clock_that_does_not_go_on_has_no_share(
    probe: HostProbe, times: Callable[..., None], later: dict[str, float]
) -> None:
    times(user=100, idle=900)
    read(probe)
    times(**later)
    assert read(probe).cpu_percent.absence is Absence.NEEDS_TWO_SAMPLES
    times(user=later["user"] + 1, idle=later["idle"] + 3)
    assert read(probe).cpu_percent.value == 25.0


def test_a_share_stays_within_its_bounds(probe: HostProbe, times: Callable[..., None]) -> None:
    times(user=100, idle=900)
    read(probe)
    times(user=110, idle=890)
    assert read(probe).cpu_percent.absence is Absence.NEEDS_TWO_SAMPLES
    times(user=130, idle=880)
    assert read(probe).cpu_percent.value == 100.0, "idle time that runs backwards"


@pytest.mark.parametrize(
    ("function", "field"),
    [
        ("cpu_times", "cpu_percent"),
        ("cpu_count", "logical_cpus"),
        ("virtual_memory", "memory_total_bytes"),
        ("virtual_memory", "memory_available_bytes"),
        ("swap_memory", "swap_used_bytes"),
    ],
)
@pytest.mark.parametrize(
    ("raised", "absence"),
    [
        (PermissionError(), Absence.NO_PERMISSION),
        (NotImplementedError(), Absence.NOT_SUPPORTED),
        (FileNotFoundError(), Absence.NOT_SUPPORTED),
        (psutil.Error(), Absence.UNKNOWN_ERROR),
        (RuntimeWarning("no statistics"), Absence.UNKNOWN_ERROR),
    ],
    ids=["refused", "other system", "no file", "psutil", "warning"],
)
def test_a_question_that_fails_costs_only_its_answer(
    probe: HostProbe,
    monkeypatch: pytest.MonkeyPatch,
    function: str,
    field: str,
    raised: Exception,
    absence: Absence,
) -> None:
    def fail() -> None:
        raise raised

    monkeypatch.setattr(psutil, function, fail)
    host = read(probe)
    assert getattr(host, field).absence is absence
    lost = {name for name in host.document() if getattr(host, name).absence is absence}
    assert len(lost) == (2 if function == "virtual_memory" else 1)


@pytest.mark.parametrize("count", [None, 0, -1, 10**9])
def test_an_absurd_number_of_processors_is_an_absence(
    probe: HostProbe, monkeypatch: pytest.MonkeyPatch, count: int | None
) -> None:
    monkeypatch.setattr(psutil, "cpu_count", lambda: count)
    assert read(probe).logical_cpus.value is None


def test_a_fault_of_our_own_does_not_reach_the_caller(probe: HostProbe, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.machine.probes.host.within_limit", lambda *arguments: 1 / 0)
    snapshot = probe.snapshot()
    assert (snapshot.state, snapshot.absence) == ("absent", Absence.UNKNOWN_ERROR)


def container(tmp_path: Path, **files: object) -> Path:
    for name, content in files.items():
        (tmp_path / f"memory.{name}").write_text(f"{content}\n")
    return tmp_path


def limited(cgroup: Path, total: int = 64 * GIB, available: int = 40 * GIB) -> tuple[Reading[int], Reading[int]]:
    return within_limit(cgroup, Reading(total, "B"), Reading(available, "B"))


def test_the_limit_of_a_container_is_what_the_machine_gives(tmp_path: Path) -> None:
    statistics = f"anon 123\nfile 456\ninactive_anon 1\nactive_file 9\ninactive_file {GIB}\nslab 7"
    cgroup = container(tmp_path, max=8 * GIB, current=3 * GIB, stat=statistics)
    total, available = limited(cgroup)
    assert total == Reading(8 * GIB, "B", read_from="memory.max")
    assert available == Reading(6 * GIB, "B", read_from="memory.max")
    assert limited(cgroup, available=5 * GIB)[1] == Reading(5 * GIB, "B"), "the machine has less than the limit leaves"
    host = read(HostProbe(cgroup=container(tmp_path, max=8 * 2**20, current=2**20, stat="inactive_file 0")))
    assert (host.memory_total_bytes.value, host.memory_available_bytes.value) == (8 * 2**20, 7 * 2**20)


@pytest.mark.parametrize("limit", ["max", 64 * GIB, 2**62, "", "many", "-1", "0", "9" * 5_000])
def test_no_limit_that_counts_changes_nothing(tmp_path: Path, limit: object) -> None:
    assert limited(container(tmp_path, max=limit, current=GIB)) == (Reading(64 * GIB, "B"), Reading(40 * GIB, "B"))


def test_version_1_of_cgroups_or_another_system_changes_nothing(tmp_path: Path) -> None:
    assert limited(tmp_path / "none") == (Reading(64 * GIB, "B"), Reading(40 * GIB, "B"))


@pytest.mark.parametrize(
    ("files", "available"),
    [
        ({"current": 9 * GIB}, 0),
        ({"current": GIB, "stat": "inactive_file 999999999999999"}, 8 * GIB),
        ({"current": GIB, "stat": "inactive_file -5\n"}, 7 * GIB),
        ({"current": GIB, "stat": "inactive_file \u00b2\n"}, 7 * GIB),
        ({"current": GIB, "stat": "inactive_file\ninactive_file 1 2\n"}, 7 * GIB),
        ({"current": GIB, "stat": "x" * 200_000}, 7 * GIB),
        ({"current": "much"}, None),
        ({}, None),
    ],
    ids=["over", "cache over all", "negative", "digit of another kind", "no figure", "huge", "garbage", "missing"],
)
def test_what_is_left_is_never_more_than_the_limit_and_never_guessed(
    tmp_path: Path, files: dict[str, object], available: int | None
) -> None:
    cgroup = container(tmp_path, max=8 * GIB, **files)
    assert limited(cgroup)[1].value == available


def test_what_the_machine_does_not_tell_is_not_made_up(tmp_path: Path) -> None:
    cgroup = container(tmp_path, max=8 * GIB, current=GIB)
    missing: Reading[int] = Reading.missing(Absence.NO_PERMISSION, "B")
    total, available = within_limit(cgroup, missing, missing)
    assert total.value == 8 * GIB
    assert available.absence is Absence.NO_PERMISSION


@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(limit=st.binary(max_size=24), current=st.binary(max_size=24), statistics=st.binary(max_size=60))
def test_files_of_any_bytes_are_readings_or_absences(
    tmp_path: Path, limit: bytes, current: bytes, statistics: bytes
) -> None:
    for name, content in (("max", limit), ("current", current), ("stat", b"inactive_file " + statistics)):
        (tmp_path / f"memory.{name}").write_bytes(content)
    total, available = limited(tmp_path)
    assert total.value is not None
    assert available.value is None or 0 <= available.value <= total.value


def test_several_threads_may_ask_at_once(probe: HostProbe) -> None:
    states: list[str] = []
    threads = [threading.Thread(target=lambda: states.append(probe.snapshot().state)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert states == ["ok"] * 8


def test_a_file_is_read_whole(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b" 42 \n")
    assert (read_bytes(path), read_text(path), read_number(path)) == (b" 42 \n", "42", 42)


@pytest.mark.parametrize("content", [b"", b"max", b"1.5", b"0x10", b"1 2", b"\xb2", b"9" * 21, b"--1", b"+1", b"1_000"])
def test_what_is_no_whole_number_is_implausible(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "file"
    path.write_bytes(content)
    assert read_number(path) is Absence.IMPLAUSIBLE


def test_a_huge_file_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "huge"
    with path.open("wb") as file:
        file.truncate(2**40)  # Sparse: a terabyte that takes no room.
    assert read_bytes(path) is Absence.IMPLAUSIBLE
    path.write_bytes(b"7" * FILE_LIMIT_BYTES)
    assert read_bytes(path) == b"7" * FILE_LIMIT_BYTES


def test_what_is_no_file_is_an_absence(tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    os.mkfifo(tmp_path / "pipe")
    places = [tmp_path, tmp_path / "loop", tmp_path / "pipe", tmp_path / "none", Path(os.devnull)]
    assert {read_bytes(path) for path in places} == {Absence.NOT_SUPPORTED}
    assert read_bytes(tmp_path / ("n" * 5_000)) is Absence.UNKNOWN_ERROR


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_that_may_not_be_read_says_so(tmp_path: Path) -> None:
    path = tmp_path / "secret"
    path.write_bytes(b"1")
    path.chmod(0)
    assert read_number(path) is Absence.NO_PERMISSION


@pytest.mark.parametrize(
    ("number", "absence"),
    [
        (errno.EPERM, Absence.NO_PERMISSION),
        (errno.EACCES, Absence.NO_PERMISSION),
        (errno.EOPNOTSUPP, Absence.NOT_SUPPORTED),
        (errno.EBUSY, Absence.TIMEOUT),
        (errno.EIO, Absence.UNKNOWN_ERROR),
    ],
)
def test_a_read_that_fails_says_why_and_leaks_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, absence: Absence
) -> None:
    def refuse(descriptor: int, length: int) -> bytes:
        assert stat.S_ISREG(os.fstat(descriptor).st_mode)
        raise OSError(number, "refused")

    path = tmp_path / "file"
    path.write_bytes(b"1")
    free = os.open(path, os.O_RDONLY)
    os.close(free)
    monkeypatch.setattr(os, "read", refuse)
    assert read_bytes(path) is absence
    again = os.open(path, os.O_RDONLY)
    os.close(again)
    assert again == free


def test_an_error_without_a_number_is_unknown() -> None:
    assert absence_of(OSError("no number")) is Absence.UNKNOWN_ERROR


@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(content=st.binary(max_size=64))
def test_any_bytes_are_a_text_and_a_number_or_an_absence(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "file"
    path.write_bytes(content)
    assert read_bytes(path) == content
    assert read_text(path) == content.decode("utf-8", errors="replace").strip()
    number = read_number(path)
    assert number is Absence.IMPLAUSIBLE or str(number).lstrip("-") in content.decode("utf-8", "replace")
