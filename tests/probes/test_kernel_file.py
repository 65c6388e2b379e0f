"""The kernel's files: whatever lies in their place, the answer is a content or an absence, and it comes at once."""

import errno
import os
import stat
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from app.probes.kernel_file import FILE_LIMIT_BYTES, absence_of, read_bytes, read_number, read_text
from app.probes.reading import Absence


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
