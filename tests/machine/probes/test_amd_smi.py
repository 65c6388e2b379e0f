"""The door to amdsmi: silent where it is missing, patient, and deaf to every exception."""

import sys
import textwrap
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from app.machine.probes.amd_smi import AmdSmi, Choice
from app.machine.probes.reading import Absence

fake = import_module("tests.machine.probes.fake_amdsmi")

VRAM = Choice("AmdSmiMemoryType", "VRAM")


@pytest.fixture
def clock() -> Any:
    return fake.FakeClock()


def package(where: Path, monkeypatch: pytest.MonkeyPatch, source: str) -> Path:
    """A package of the binding's name that runs `source` and notes each time that it is imported."""
    notes = where / "notes"
    folder = where / "site" / "amdsmi"
    folder.mkdir(parents=True)
    note = f"with open({str(notes)!r}, 'a') as notes:\n    notes.write('x')\n"
    (folder / "__init__.py").write_text("from . import amdsmi_wrapper\n")
    (folder / "amdsmi_wrapper.py").write_text(note + textwrap.dedent(source))
    for name in [name for name in sys.modules if name.partition(".")[0] == "amdsmi"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.syspath_prepend(str(where / "site"))
    return notes


WITHOUT_ITS_LIBRARY = """
    import sys
    libraries = {}
    print("libamd_smi.so: cannot open shared object file")
    print("Unable to find the library", file=sys.stderr)
    libraries["libamd_smi.so"].amdsmi_init
"""


def test_a_package_without_its_library_prints_nothing_and_is_remembered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], clock: Any
) -> None:
    notes = package(tmp_path, monkeypatch, WITHOUT_ITS_LIBRARY)
    smi = AmdSmi(clock)
    assert [smi.call("amdsmi_get_processor_handles") for _ in range(50)] == [Absence.NO_DRIVER] * 50
    assert notes.read_text() == "x", "the import is not repeated for each question"
    clock.now_s += 1
    smi.call("amdsmi_get_processor_handles")
    assert notes.read_text() == "xx"
    for _ in range(600):
        clock.now_s += 1
        smi.call("amdsmi_get_processor_handles")
    assert 10 < len(notes.read_text()) < 20
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(
    "source",
    ["raise OSError('libdrm')", "raise AttributeError('amdsmi_new')", "import sys; sys.exit(1)", "import nothing_here"],
    ids=["library of the library", "older library", "leaves the process", "lacks a package"],
)
def test_whatever_the_import_does_the_library_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, clock: Any, source: str
) -> None:
    package(tmp_path, monkeypatch, source)
    assert AmdSmi(clock).call("amdsmi_get_processor_handles") is Absence.NO_DRIVER


def test_a_library_that_is_installed_later_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, clock: Any
) -> None:
    package(tmp_path, monkeypatch, WITHOUT_ITS_LIBRARY)
    smi = AmdSmi(clock)
    assert smi.call("amdsmi_get_processor_handles") is Absence.NO_DRIVER
    fake.FakeAmdSmi(fake.FakeCard()).install(monkeypatch)
    clock.now_s += 1
    assert len(smi.call("amdsmi_get_processor_handles")) == 1


def test_a_missing_package_says_so(monkeypatch: pytest.MonkeyPatch, clock: Any) -> None:
    monkeypatch.setitem(sys.modules, "amdsmi", None)
    assert AmdSmi(clock).call("amdsmi_get_processor_handles") is Absence.NOT_INSTALLED


@pytest.mark.parametrize(
    ("code", "absence"),
    [
        (fake.NOT_SUPPORTED, Absence.NOT_SUPPORTED),
        (fake.FAIL_LOAD_SYMBOL, Absence.FUNCTION_NOT_FOUND),
        (fake.TIMEOUT, Absence.TIMEOUT),
        (fake.NO_PERMISSION, Absence.NO_PERMISSION),
        (fake.BUSY, Absence.TIMEOUT),
        (fake.NOT_FOUND, Absence.GPU_LOST),
        (fake.DRIVER_NOT_LOADED, Absence.NO_DRIVER),
        (fake.RESTART_FAILED, Absence.RESET_REQUIRED),
        (7, Absence.UNKNOWN_ERROR),
        (2**32 - 1, Absence.UNKNOWN_ERROR),
    ],
)
def test_a_failure_is_told_by_its_code(
    monkeypatch: pytest.MonkeyPatch, clock: Any, code: int, absence: Absence
) -> None:
    library = fake.FakeAmdSmi(fake.FakeCard(errors={"amdsmi_get_gpu_activity": code}))
    library.install(monkeypatch)
    smi = AmdSmi(clock)
    (handle,) = smi.call("amdsmi_get_processor_handles")
    assert smi.call("amdsmi_get_gpu_activity", handle) is absence
    library.errors["amdsmi_init"] = code
    smi.close()
    assert smi.call("amdsmi_get_processor_handles") is absence


@pytest.mark.parametrize(
    ("raised", "answer"),
    [
        (fake.AmdSmiParameterException(), Absence.UNKNOWN_ERROR),
        (TypeError("missing argument"), Absence.UNKNOWN_ERROR),
        (RecursionError(), Absence.UNKNOWN_ERROR),
        (UnicodeDecodeError("utf-8", b"MI\xff300", 2, 3, "invalid"), b"MI\xff300"),
    ],
    ids=["wrong argument", "another release", "out of stack", "not UTF-8"],
)
def test_no_exception_passes(monkeypatch: pytest.MonkeyPatch, clock: Any, raised: Exception, answer: object) -> None:
    fake.FakeAmdSmi(fake.FakeCard(answers={"amdsmi_get_gpu_asic_info": raised})).install(monkeypatch)
    smi = AmdSmi(clock)
    (handle,) = smi.call("amdsmi_get_processor_handles")
    assert smi.call("amdsmi_get_gpu_asic_info", handle) == answer


def test_what_a_release_does_not_have_is_an_absence(monkeypatch: pytest.MonkeyPatch, clock: Any) -> None:
    fake.FakeAmdSmi(fake.FakeCard(), missing=("amdsmi_get_link_metrics",)).install(monkeypatch)
    smi = AmdSmi(clock)
    (handle,) = smi.call("amdsmi_get_processor_handles")
    assert smi.call("amdsmi_get_link_metrics", handle) is Absence.FUNCTION_NOT_FOUND
    absent = Choice("AmdSmiMemoryType", "CXL")
    assert smi.call("amdsmi_get_gpu_memory_total", handle, absent) is Absence.FUNCTION_NOT_FOUND
    assert smi.call("amdsmi_get_gpu_memory_total", handle, VRAM) == fake.FakeCard().vram[0]
    assert smi.name_of("AmdSmiVramType", fake.AmdSmiVramType.HBM3.value) == "HBM3"
    assert smi.name_of("AmdSmiVramType", 999) is None
    assert smi.name_of("AmdSmiVramType", Absence.NOT_SUPPORTED) is None
    assert smi.name_of("NoSuchType", 1) is None


def test_a_library_shut_down_by_somebody_else_is_opened_again(monkeypatch: pytest.MonkeyPatch, clock: Any) -> None:
    library = fake.FakeAmdSmi(fake.FakeCard())
    library.install(monkeypatch)
    smi = AmdSmi(clock)
    smi.call("amdsmi_get_processor_handles")
    library.errors["amdsmi_get_processor_handles"] = fake.NOT_INITIALIZED
    assert smi.call("amdsmi_get_processor_handles") is Absence.UNKNOWN_ERROR
    library.errors.clear()
    assert smi.call("amdsmi_get_processor_handles") is Absence.UNKNOWN_ERROR, "not before the pause is over"
    clock.now_s += 1
    assert len(smi.call("amdsmi_get_processor_handles")) == 1
    assert library.calls["amdsmi_init"] == 2


def test_closing_shuts_the_library_down_once(monkeypatch: pytest.MonkeyPatch, clock: Any) -> None:
    library = fake.FakeAmdSmi(fake.FakeCard())
    library.install(monkeypatch)
    smi = AmdSmi(clock)
    smi.close()
    assert library.calls["amdsmi_shut_down"] == 0
    smi.call("amdsmi_get_processor_handles")
    smi.close()
    smi.close()
    assert library.calls["amdsmi_shut_down"] == 1
