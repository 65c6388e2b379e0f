"""How many links a second the store takes from many writers, how long each waits, and whether any is lost.

    python -m benchmarks.store_writers --writers 16 --seconds 60

The writers are threads of two processes on one file, through the repository as the server uses it, each commit with
its fsync. Ends with status 1 if a write failed or an acknowledged link cannot be found again.
"""

import argparse
import multiprocessing
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from app.store.database import connect, create_store_engine
from app.store.errors import StoreError
from app.store.links import Contents, Links, Saved
from app.store.schema import migrate

PROCESSES = 2
CONTENTS = Contents(
    title="Benchmark",
    document={
        "scenario": {"schema_version": 1, "model": {"id": "llama-3.1-8b"}, "filling": "x" * 1_500},
        "notes": "",
        "headline": {"decode_step_s": 0.0048},
    },
    formula_version="1",
    catalog_version="1",
    expires_at=None,
)


@dataclass
class Tally:
    """What one process did: links acknowledged, seconds each took, and failures by name."""

    slugs: list[str] = field(default_factory=list)
    waits_s: list[float] = field(default_factory=list)
    errors: Counter[str] = field(default_factory=Counter)

    def add(self, other: "Tally") -> None:
        """Counts another process's work in."""
        self.slugs += other.slugs
        self.waits_s += other.waits_s
        self.errors += other.errors


def save_for(path: Path, seconds: float, threads: int) -> Tally:
    """What this process's threads saved in the given time."""
    engine = create_store_engine(path)
    configurations, tally = Links(engine, "configuration"), Tally()
    deadline_s = time.monotonic() + seconds

    def save() -> None:
        while (start_s := time.monotonic()) < deadline_s:
            try:
                slug = configurations.create(CONTENTS).slug
            except StoreError as error:
                tally.errors[type(error).__name__] += 1
            else:
                tally.slugs.append(slug)
                tally.waits_s.append(time.monotonic() - start_s)

    workers = [threading.Thread(target=save) for _ in range(threads)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    engine.dispose()
    return tally


def count_found(path: Path, slugs: list[str]) -> int:
    """How many of the acknowledged links the store still shows."""
    engine = create_store_engine(path)
    configurations = Links(engine, "configuration")
    found = sum(isinstance(configurations.get(slug), Saved) for slug in slugs)
    engine.dispose()
    return found


def integrity(path: Path) -> str:
    """SQLite's own verdict on the file: "ok", or its first complaint."""
    with closing(connect(path)) as connection:
        return str(connection.execute("PRAGMA integrity_check(1)").fetchone()[0])


def measure(path: Path, writers: int, seconds: float) -> bool:
    """Whether nothing failed and nothing was lost; prints the figures."""
    migrate(path)
    shares = [writers // PROCESSES + (number < writers % PROCESSES) for number in range(PROCESSES)]
    total = Tally()
    # Spawned, not forked: connections to SQLite must not be carried into a child.
    with multiprocessing.get_context("spawn").Pool(PROCESSES) as pool:
        for tally in pool.starmap(save_for, [(path, seconds, share) for share in shares]):
            total.add(tally)
    found, verdict = count_found(path, total.slugs), integrity(path)
    p50_ms, p99_ms, max_ms = (np.percentile(total.waits_s or [0.0], (50, 99, 100)) * 1e3).tolist()
    print(f"writers       {writers} in {PROCESSES} processes, {seconds:g} s")
    print(f"acknowledged  {len(total.slugs)} ({len(total.slugs) / seconds:.0f} a second)")
    print(f"found         {found}")
    print(f"errors        {total.errors.total()} {dict(total.errors) or ''}")
    print(f"wait          p50 {p50_ms:.1f} ms, p99 {p99_ms:.1f} ms, longest {max_ms:.0f} ms")
    print(f"integrity     {verdict}")
    return found == len(total.slugs) > 0 and not total.errors and verdict == "ok"


def main(arguments: Sequence[str] | None = None) -> int:
    """The exit status: 0 if nothing failed and nothing was lost."""
    parser = argparse.ArgumentParser(description="Many writers on one SQLite file.")
    parser.add_argument("--writers", type=int, default=16)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--folder", type=Path, help="where to put the file; a temporary folder if left out")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        return 0 if measure(Path(folder) / "benchmark.sqlite3", options.writers, options.seconds) else 1


if __name__ == "__main__":
    sys.exit(main())
