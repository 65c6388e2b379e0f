"""How the benchmarks measure and print."""

import statistics
import time
from collections.abc import Callable, Sequence


def best_of(run: Callable[[], object], repeats: int = 7) -> float:
    """Seconds of the fastest of several runs: the one that was disturbed least."""
    times = []
    for _ in range(repeats):
        started = time.perf_counter()
        run()
        times.append(time.perf_counter() - started)
    return min(times)


def percentile(values: Sequence[float], share: float) -> float:
    """The value below which `share` of the values lie."""
    return statistics.quantiles(values, n=1000, method="inclusive")[round(share * 1000) - 1]


def table(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print rows under their columns."""
    widths = [max(len(str(cell)) for cell in column) for column in zip(columns, *rows, strict=True)]
    print(f"\n{title}")
    for row in (columns, *rows):
        print("  " + "  ".join(str(cell).ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
