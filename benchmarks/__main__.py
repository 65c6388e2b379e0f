"""Run every benchmark: `python -m benchmarks`, or some by name."""

import sys
from collections.abc import Callable

from benchmarks import calculators, first_chart, kinds, live_viewers, serving, store_writers

BENCHMARKS: dict[str, Callable[[], object]] = {
    "calculators": calculators.run,
    "kinds": kinds.run,
    "serving": serving.run,
    "first_chart": first_chart.run,
    "live_viewers": lambda: live_viewers.run(30),
    "store_writers": lambda: store_writers.main(["--seconds", "10"]),
}

for name in sys.argv[1:] or BENCHMARKS:
    BENCHMARKS[name]()
