"""Which npm is taken, and when it need not be started."""

import json
from pathlib import Path

import pytest

from app.web import asset_build as npm


def executable(path: Path, text: str = "#!/bin/sh\n") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return path


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A project with one library and one tool for the tests, both installed."""
    packages = {
        "": {"name": "project"},
        "node_modules/library": {"version": "1.0.0", "integrity": "sha512-a"},
        "node_modules/tool": {"version": "2.0.0", "integrity": "sha512-b", "dev": True},
    }
    (tmp_path / "package-lock.json").write_text(json.dumps({"packages": packages}))
    for path in list(packages)[1:]:
        (tmp_path / path).mkdir(parents=True)
        (tmp_path / path / "package.json").write_text("{}")
    (tmp_path / "node_modules/.package-lock.json").write_text(json.dumps({"packages": packages}))
    return tmp_path


def edit_installed(root: Path, path: str, **entry: object) -> None:
    lock = root / "node_modules/.package-lock.json"
    stored = json.loads(lock.read_text())
    stored["packages"].pop(path) if not entry else stored["packages"][path].update(entry)
    lock.write_text(json.dumps(stored))


def test_the_machines_npm_comes_before_the_wheels(tmp_path: Path) -> None:
    machine, wheel = executable(tmp_path / "bin/npm"), executable(tmp_path / "venv/bin/npm")
    interpreter = wheel.with_name("python")
    assert npm.find_npm(str(machine.parent), interpreter) == machine
    assert npm.find_npm(str(tmp_path), interpreter) == wheel
    with pytest.raises(npm.NpmMissingError, match="run `make setup`, or install Node"):
        npm.find_npm(str(tmp_path), tmp_path / "python")


def test_what_the_lock_names_is_not_fetched_again(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    assert npm.install(root, dev=True) == root / "node_modules"


def test_the_tools_of_the_tests_are_needed_by_tests_only(root: Path) -> None:
    edit_installed(root, "node_modules/tool")
    assert npm.is_installed(root, dev=False)
    assert not npm.is_installed(root, dev=True)


@pytest.mark.parametrize("change", [{"version": "1.0.1"}, {"integrity": "sha512-z"}, {}])
def test_another_version_or_content_is_not_what_is_wanted(root: Path, change: dict[str, object]) -> None:
    edit_installed(root, "node_modules/library", **change)
    assert not npm.is_installed(root, dev=False)


def test_a_package_that_was_deleted_is_missed(root: Path) -> None:
    (root / "node_modules/library/package.json").unlink()
    assert not npm.is_installed(root, dev=False)


def test_npm_runs_in_the_project_and_finds_its_own_node(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    edit_installed(root, "node_modules/library")
    script = '#!/bin/sh\nprintf "%s|%s|%s" "$*" "$PWD" "$PATH" > called\n'
    folder = executable(root / "tools/npm", script).parent
    monkeypatch.setenv("PATH", str(folder))
    npm.install(root)
    assert (root / "called").read_text().split("|") == ["ci --omit=dev", str(root), f"{folder}:{folder}"]
    npm.install(root, dev=True)
    assert (root / "called").read_text().startswith("ci --include=dev|")


def test_a_failure_of_npm_is_told_with_its_last_words(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    edit_installed(root, "node_modules/library")
    folder = executable(root / "tools/npm", "#!/bin/sh\necho lost the network >&2\nexit 7\n").parent
    monkeypatch.setenv("PATH", str(folder))
    with pytest.raises(npm.NpmFailedError, match=r"status 7:\nlost the network"):
        npm.install(root)
