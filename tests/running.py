"""A server in a process of its own, as `make serve` starts it."""

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx2

from app.settings import ROOT

START_TIMEOUT_S = 30


@dataclass(frozen=True)
class Running:
    """Where it answers, and its process."""

    address: str
    process: subprocess.Popen[bytes]


@contextmanager
def running(data_dir: Path, assets_dir: Path, **environment: str) -> Iterator[Running]:
    """A server once it answers; `environment` are settings without their prefix. It is stopped at the end."""
    with closing(socket.socket()) as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    given = {"PORT": str(port), "DATA_DIR": str(data_dir), "ASSETS_DIR": str(assets_dir)} | environment
    variables = os.environ | {f"TOKENROOF_{name}": value for name, value in given.items()}
    process = subprocess.Popen([sys.executable, "-m", "app.cli", "serve"], cwd=ROOT, env=variables)
    found = Running(f"http://127.0.0.1:{port}", process)
    try:
        _wait_for(found)
        yield found
    finally:
        process.terminate()
        process.wait(timeout=START_TIMEOUT_S)


def _wait_for(found: Running) -> None:
    deadline = time.monotonic() + START_TIMEOUT_S
    while time.monotonic() < deadline:
        if found.process.poll() is not None:
            raise RuntimeError(f"The server stopped with status {found.process.returncode}.")
        try:
            if httpx2.get(f"{found.address}/healthz").status_code == 200:
                return
        except httpx2.TransportError:
            time.sleep(0.1)
    raise TimeoutError("The server did not answer.")
