"""A running server under an even stream of requests: latencies against those of its health check in the same run."""

import asyncio
import json
from collections.abc import Mapping
from pathlib import Path

import httpx2

from benchmarks.server import RunningServer, running_server
from benchmarks.timing import percentile, table

API_RATE_PER_S, PAGE_RATE_PER_S = 100, 20
SECONDS = 10
SCENARIO = {"model": {"id": "llama-3.1-8b"}, "hardware": {"id": "h100-sxm-80gb"}}
FRAGMENT = {"HX-Request": "true", "HX-Request-Type": "partial"}
QUERY = "/?model=llama-3.1-8b&hw=h100-sxm-80gb&batch=64"


def run() -> None:
    """Start a server, load it, print the table and its memory."""
    with running_server() as server:
        asyncio.run(_measure(server))


async def _measure(server: RunningServer) -> None:
    limits = httpx2.Limits(max_connections=64)
    async with httpx2.AsyncClient(base_url=server.address, limits=limits) as client:
        body = json.dumps(SCENARIO).encode()
        kind = {"content-type": "application/json"}
        runs = {
            "GET /healthz": (API_RATE_PER_S, await _load(client, API_RATE_PER_S, "GET", "/healthz")),
            "POST /api/v1/evaluate": (
                API_RATE_PER_S,
                await _load(client, API_RATE_PER_S, "POST", "/api/v1/evaluate", kind, body),
            ),
            "GET / (results fragment)": (
                PAGE_RATE_PER_S,
                await _load(client, PAGE_RATE_PER_S, "GET", QUERY, FRAGMENT),
            ),
            "GET / (whole page)": (PAGE_RATE_PER_S, await _load(client, PAGE_RATE_PER_S, "GET", QUERY)),
        }
    base = percentile(runs["GET /healthz"][1], 0.5)
    rows = [
        (
            name,
            str(rate),
            *(f"{1e3 * percentile(times, q):.1f}" for q in (0.5, 0.95, 0.99)),
            f"{percentile(times, 0.5) / base:.1f}",
        )
        for name, (rate, times) in runs.items()
    ]
    columns = ("request", "a second", "p50 ms", "p95 ms", "p99 ms", "p50 of the health check's")
    table(f"An even stream of requests for {SECONDS} s each, client on the same machine", columns, rows)
    resident = f"{_resident_mb(server.pid):.0f} MB"
    print(f"  server: answered {server.start_s:.2f} s after its start; resident memory {resident} after the load")


async def _load(
    client: httpx2.AsyncClient,
    rate_per_s: int,
    method: str,
    path: str,
    headers: Mapping[str, str] | None = None,
    body: bytes | None = None,
) -> list[float]:
    """Latencies from the moment each request was due, so that a stall delays all that wait behind it."""
    loop, times = asyncio.get_running_loop(), []

    async def one(due: float) -> None:
        await asyncio.sleep(max(0.0, due - loop.time()))
        response = await client.request(method, path, headers=headers, content=body)
        response.raise_for_status()
        times.append(loop.time() - due)

    begin = loop.time() + 0.1
    await asyncio.gather(*(one(begin + i / rate_per_s) for i in range(rate_per_s * SECONDS)))
    return times


def _resident_mb(pid: int) -> float:
    for line in Path(f"/proc/{pid}/status").read_text(encoding="utf-8").splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024 / 1e6
    return float("nan")
