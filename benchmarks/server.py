"""A server of one's own for a benchmark: a free port, a database of its own, gone at the end."""

import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass

import httpx2

from app.settings import ROOT


@dataclass(frozen=True, slots=True)
class RunningServer:
    """Where it answers, which process it is, and how long it took from the start of that process to an answer."""

    address: str
    pid: int
    start_s: float


@contextmanager
def running_server() -> Iterator[RunningServer]:
    """A server as `make serve` starts it, once it answers."""
    with closing(socket.socket()) as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with tempfile.TemporaryDirectory() as folder:
        environment = os.environ | {"TOKENROOF_PORT": str(port), "TOKENROOF_DATA_DIR": folder}
        command = [sys.executable, "-m", "app.cli", "serve"]
        started = time.perf_counter()
        process = subprocess.Popen(command, cwd=ROOT, env=environment, stderr=subprocess.DEVNULL)
        try:
            _wait_for(f"http://127.0.0.1:{port}", process)
            yield RunningServer(f"http://127.0.0.1:{port}", process.pid, time.perf_counter() - started)
        finally:
            process.terminate()
            process.wait()


def _wait_for(address: str, process: subprocess.Popen[bytes]) -> None:
    while process.poll() is None:
        try:
            httpx2.get(f"{address}/healthz")
            return
        except httpx2.TransportError:
            time.sleep(0.05)
    raise RuntimeError(f"The server stopped with status {process.returncode}.")
