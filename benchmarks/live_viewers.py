"""Fifty viewers of one live stream: how much memory and processor time they take over ten minutes.

Each figure is told beside that of the same server with one viewer, in the same run: a ratio, not a promise.
"""

import argparse
import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass

import httpx2
import psutil

from benchmarks.server import running_server

VIEWERS = 50
SETTLE_S = 10.0
"""Seconds before the first measurement: pools and caches fill in the first rounds."""


@dataclass(frozen=True, slots=True)
class Watched:
    """What so many viewers cost: events each of them got a second, and memory at the start and the end, bytes."""

    viewers: int
    events_per_s: float
    first_bytes: int
    last_bytes: int
    cpu_share: float


async def _view(address: str, ends_at: float, counts: list[int], index: int) -> None:
    async with (
        httpx2.AsyncClient(timeout=httpx2.Timeout(30.0)) as client,
        client.stream("GET", f"{address}/live/stream") as answer,
    ):
        answer.raise_for_status()
        async for line in answer.aiter_lines():
            counts[index] += not line
            if time.monotonic() >= ends_at:
                return


async def watch(address: str, process: psutil.Process, viewers: int, seconds: float) -> Watched:
    """`viewers` look on for `seconds`; memory is that of the server's process."""
    counts = [0] * viewers
    ends_at = time.monotonic() + SETTLE_S + seconds
    tasks = [asyncio.create_task(_view(address, ends_at, counts, index)) for index in range(viewers)]
    await asyncio.sleep(SETTLE_S)
    first, before, begun = process.memory_info().rss, sum(counts), time.monotonic()
    process.cpu_percent()
    await asyncio.sleep(seconds)
    spent, last, took = process.cpu_percent(), process.memory_info().rss, time.monotonic() - begun
    seen = sum(counts) - before
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    return Watched(viewers, seen / viewers / took, first, last, spent / 100)


def run(seconds: float = 600.0) -> None:
    """Print what one viewer costs and what all of them do."""
    with running_server() as running:
        server = psutil.Process(running.pid)
        one = asyncio.run(watch(running.address, server, 1, min(60.0, seconds)))
        many = asyncio.run(watch(running.address, server, VIEWERS, seconds))
        for found in (one, many):
            grown = found.last_bytes / found.first_bytes
            print(
                f"{found.viewers:3d} viewers: {found.events_per_s:.2f} events/s each, memory "
                f"{found.last_bytes / 2**20:.0f} MiB ({grown:.3f} × the first), {found.cpu_share:.2f} of a core"
            )
        print(f"memory of {VIEWERS} ÷ of one: {many.last_bytes / one.last_bytes:.2f}")
        print(f"processor of {VIEWERS} ÷ of one: {many.cpu_share / max(one.cpu_share, 1e-3):.1f}")


def main(arguments: Sequence[str] | None = None) -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=600.0, help="how long the fifty look on")
    run(parser.parse_args(arguments).seconds)


if __name__ == "__main__":
    main()
