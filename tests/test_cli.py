"""The command line: each verb in a process of its own, and what else it is given within this one."""

import io
import json
import os
import shutil
import socket
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Protocol

import pytest

from app.cli import main
from app.settings import ROOT, Settings
from tests.factories import scenario_document

TIMEOUT_S = 60


@pytest.fixture
def data_dir(tmp_path: Path) -> Path:
    return tmp_path / "data"


def run(data_dir: Path, *arguments: str, given: str = "", **environment: str) -> subprocess.CompletedProcess[bytes]:
    """One run of the program, as a process, with a data folder of its own."""
    return subprocess.run(
        [sys.executable, "-m", "app.cli", *arguments],
        input=given.encode(),
        cwd=ROOT,
        env=os.environ | {"TOKENROOF_DATA_DIR": str(data_dir)} | environment,
        capture_output=True,
        timeout=TIMEOUT_S,
        check=False,
    )


class Call(Protocol):
    """Runs the program within this process: the same but for a second's start."""

    def __call__(self, *arguments: str, given: bytes = b"") -> subprocess.CompletedProcess[bytes]:
        """What a process would have ended with."""
        ...


@pytest.fixture
def call(data_dir: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Call:
    monkeypatch.setenv("TOKENROOF_DATA_DIR", str(data_dir))

    def called(*arguments: str, given: bytes = b"") -> subprocess.CompletedProcess[bytes]:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(given)))
        try:
            status: int | str | None = main(arguments)
        except SystemExit as stop:  # how argparse ends
            status = stop.code
        assert isinstance(status, int)
        said = capsys.readouterr()
        return subprocess.CompletedProcess(arguments, status, said.out.encode(), said.err.encode())

    return called


def assert_refused(done: subprocess.CompletedProcess[bytes]) -> str:
    """The one line of a refusal."""
    assert done.returncode == 1
    assert done.stdout == b""
    (line,) = done.stderr.decode().splitlines()
    assert line.startswith("tokenroof: ")
    return line.removeprefix("tokenroof: ")


def test_evaluate_reads_the_standard_input(data_dir: Path, call: Call) -> None:
    posted = json.dumps(scenario_document(workload={"prompt_tokens": 1000, "output_tokens": 500, "concurrency": 1}))
    for done in (run(data_dir, "evaluate", given=posted), call("evaluate", "-", given=posted.encode())):
        assert done.returncode == 0, done.stderr
        assert done.stderr == b""
        assert json.loads(done.stdout)["rule_of_thumb"]["decode_tokens_per_s"] == pytest.approx(208.6, rel=1e-3)
    assert not data_dir.exists()  # no database is needed to calculate


def test_evaluate_reads_a_file(call: Call, tmp_path: Path) -> None:
    file = tmp_path / "scenario.json"
    file.write_text(json.dumps(scenario_document(workload={"prompt_tokens": 3596, "concurrency": 64})))
    answer = json.loads(call("evaluate", str(file)).stdout)
    assert answer["rule_of_thumb"]["kv_step_s"] == pytest.approx(15.05e-3, rel=1e-3)
    assert answer["rule_of_thumb"]["kv_capacity_users"] == 119
    again = call("evaluate", given=json.dumps(answer["scenario"]).encode())
    assert json.loads(again.stdout) == answer


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (json.dumps(scenario_document("no-such-model")).encode(), "model.id: There is no model 'no-such-model'"),
        (json.dumps(scenario_document(workload={"prompt_tokens": 0})).encode(), "workload.prompt_tokens: "),
        (b'{"model": NaN}', "NaN is not JSON."),
        (b"{", "not valid JSON at line 1, column 2."),
        (b"", "not valid JSON at line 1, column 1."),
        (b"\xff\xfe", "JSON"),
    ],
)
def test_a_scenario_that_is_not_right_is_refused_in_a_line(call: Call, given: bytes, words: str) -> None:
    assert words in assert_refused(call("evaluate", given=given))


def test_every_wrong_field_is_named(data_dir: Path) -> None:
    done = run(data_dir, "evaluate", given=json.dumps(scenario_document("nope", "nope")))
    assert done.returncode == 1
    assert b"model.id: " in done.stderr
    assert b"hardware.id: " in done.stderr
    assert b"Traceback" not in done.stderr


def test_a_file_that_is_not_there_is_refused_in_a_line(call: Call) -> None:
    assert "no-such-file.json" in assert_refused(call("evaluate", "no-such-file.json"))


@pytest.mark.parametrize("content", [b"\xff\xfe\x00", b"{\xed\xa0\x80}"])
def test_a_file_that_is_no_text_is_refused_in_a_line(call: Call, tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "scenario.json"
    file.write_bytes(content)
    assert_refused(call("evaluate", str(file)))


def test_migrate_twice(data_dir: Path, call: Call) -> None:
    first, second = run(data_dir, "migrate"), call("migrate")
    assert (first.returncode, second.returncode) == (0, 0), first.stderr + second.stderr
    head = first.stdout.decode().strip().removeprefix("schema empty → ")
    assert "→" not in head
    assert second.stdout.decode().strip() == f"schema {head} → {head}"
    with closing(sqlite3.connect(data_dir / "tokenroof.sqlite3")) as connection:
        assert connection.execute("SELECT count(*) FROM configurations").fetchone() == (0,)


def test_a_database_of_another_program_is_refused_in_a_line(data_dir: Path) -> None:
    data_dir.mkdir()
    with closing(sqlite3.connect(data_dir / "tokenroof.sqlite3")) as connection:
        connection.execute("CREATE TABLE theirs (x)")
    assert "is not a Tokenroof database" in assert_refused(run(data_dir, "migrate"))


def test_backup(data_dir: Path, call: Call, tmp_path: Path) -> None:
    assert call("migrate").returncode == 0
    beside = run(data_dir, "backup")
    assert beside.returncode == 0, beside.stderr
    copy = Path(beside.stdout.decode().strip())
    assert copy.parent == data_dir / "backups"
    elsewhere = call("backup", "--folder", str(tmp_path / "elsewhere"), "--keep", "1")
    copy = Path(elsewhere.stdout.decode().strip())
    assert copy.parent == tmp_path / "elsewhere"
    with closing(sqlite3.connect(copy)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)


def test_backup_of_nothing_is_refused_in_a_line(call: Call) -> None:
    assert_refused(call("backup"))


def test_serve_refuses_without_assets_in_a_sentence(data_dir: Path, tmp_path: Path) -> None:
    line = assert_refused(run(data_dir, "serve", TOKENROOF_ASSETS_DIR=str(tmp_path / "none")))
    assert "make assets" in line
    assert not data_dir.exists()


@pytest.mark.parametrize(
    ("verb", "environment"),
    [
        ("migrate", {"TOKENROOF_PORT": "ninety"}),
        ("backup", {"TOKENROOF_MAX_BODY_BYTES": "1"}),
        ("serve", {"TOKENROOF_WORKERS": "0"}),
    ],
)
def test_a_setting_that_is_not_right_is_named_without_a_trace(
    data_dir: Path, verb: str, environment: dict[str, str]
) -> None:
    done = run(data_dir, verb, **environment)
    assert done.returncode != 0
    assert next(iter(environment)).removeprefix("TOKENROOF_").lower() in done.stderr.decode().lower()
    assert b"Traceback" not in done.stderr


def test_serve_says_nothing_of_itself(server: str) -> None:
    address = server.removeprefix("http://").split(":")
    with closing(socket.create_connection((address[0], int(address[1])), timeout=10)) as connection:
        connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        answer = b"".join(iter(lambda: connection.recv(65_536), b""))
    head = answer.partition(b"\r\n\r\n")[0].lower()
    assert b"200 ok" in head
    assert b"\r\nserver:" not in head
    assert b"x-content-type-options: nosniff" in head


@pytest.mark.parametrize("arguments", [(), ("fly",), ("evaluate", "a", "b"), ("backup", "--keep", "many")])
def test_what_is_no_verb_is_refused_with_the_usage(call: Call, arguments: tuple[str, ...]) -> None:
    done = call(*arguments)
    assert done.returncode == 2
    assert b"usage: tokenroof" in done.stderr


@pytest.mark.skipif(shutil.which("npm") is None and not (ROOT / "node_modules").exists(), reason="needs npm")
def test_assets_that_are_built_are_not_built_again(data_dir: Path, assets_dir: Path) -> None:
    before = {file.name: file.stat().st_mtime_ns for file in assets_dir.iterdir()}
    done = run(data_dir, "assets", "--dev", TOKENROOF_ASSETS_DIR=str(assets_dir))
    assert (done.returncode, done.stdout) == (0, b""), done.stderr
    assert {file.name: file.stat().st_mtime_ns for file in assets_dir.iterdir()} == before


def test_the_default_settings_are_those_of_the_program() -> None:
    assert Settings.model_fields["host"].default == "127.0.0.1"
