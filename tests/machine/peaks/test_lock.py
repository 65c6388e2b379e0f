"""One at a time on a machine."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from app.machine.peaks.outcome import Fault, MeasureError
from app.machine.peaks.runner import held, is_held, machine_lock
from app.settings import ROOT

CHILD = "import sys; print('ready', flush=True); sys.stdin.read()"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "lock"


def test_the_second_is_refused_and_the_next_let_in(path: Path) -> None:
    assert not is_held(path)
    with held(path):
        assert is_held(path)
        with pytest.raises(MeasureError, match="one at a time") as caught, held(path):
            pytest.fail("two at a time")
        assert caught.value.fault is Fault.RUNNING
        assert is_held(path)
    assert not is_held(path)
    with held(path):
        assert is_held(path)


def test_looking_holds_nobody_up(path: Path) -> None:
    with held(path):
        pass
    assert not any(is_held(path) for _ in range(3))
    with held(path):
        pass


def test_a_child_holds_it_for_as_long_as_it_lives(path: Path) -> None:
    with held(path) as descriptor:
        child = subprocess.Popen(
            [sys.executable, "-c", CHILD],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            pass_fds=(descriptor,),
            cwd=ROOT,
        )
        assert child.stdout is not None
        assert child.stdout.readline() == b"ready\n"
    assert is_held(path)
    child.communicate(b"")
    assert not is_held(path)


def test_a_file_of_another_user_will_do(path: Path) -> None:
    path.write_bytes(b"")
    path.chmod(0o444)
    with held(path):
        assert is_held(path)


def test_a_link_somewhere_else_is_not_followed(path: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    path.symlink_to(elsewhere)
    with pytest.raises(MeasureError) as caught, held(path):
        pytest.fail("followed a link")
    assert caught.value.fault is Fault.NOT_STARTED
    assert not elsewhere.exists()
    assert not is_held(path)


def test_a_pipe_in_its_place_keeps_nobody_waiting(path: Path) -> None:
    os.mkfifo(path)
    with held(path):
        assert is_held(path)


def test_without_a_folder_there_is_no_lock(tmp_path: Path) -> None:
    nowhere = tmp_path / "none" / "lock"
    assert not is_held(nowhere)
    with pytest.raises(MeasureError), held(nowhere):
        pytest.fail("held what is not there")


def test_the_machines_lock_is_where_all_users_can_reach_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    assert machine_lock().parent == tmp_path
    with held(machine_lock()):
        assert os.stat(machine_lock()).st_mode & 0o444 == 0o444
