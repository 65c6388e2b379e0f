"""GuideLLM's `benchmarks.csv`, brought into the form of its `benchmarks.json`, which then is read.

One row a run, under one row of headings in older releases and three in newer ones: group, figure with unit, statistic.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from app.bench.points import BenchError
from app.strict_json import StrictJsonError, loads

OLD, NEW = "Type,Run Id,Id,Name", "Run Info,"
_TAIL = 9
"""Where the 99th percentile stands in a cell that lists [min, 0.1, 1, 5, 10, 25, 75, 90, 95, 99, max]."""
_TAILS = "[min, 0.1, 1, 5, 10, 25, 75, 90, 95, 99, max]"
_NAMED_STRATEGY = re.compile(r"([a-z]+)(?:@([0-9.]{1,20}))?")
_COLUMNS: Mapping[str, tuple[str, str]] = {
    "time_to_first_token_ms": ("Time to First Token", "ms"),
    "inter_token_latency_ms": ("Inter Token Latency", "ms"),
    "request_latency": ("Request Latency", "Sec"),
    "prompt_token_count": ("Token Metrics", "Input Tokens"),
    "output_token_count": ("Token Metrics", "Output Tokens"),
    "requests_per_second": ("Server Throughput", "Requests/Sec"),
    "request_concurrency": ("Server Throughput", "Concurrency"),
    "output_tokens_per_second": ("Token Throughput", "Output Tokens/Sec"),
    "tokens_per_second": ("Token Throughput", "Total Tokens/Sec"),
}
"""The metrics of the JSON, and under which group and figure the newer table has them."""
MOST_HEADINGS = 3


def old_report(rows: Sequence[Sequence[str]]) -> dict[str, Any]:
    """The report that a table with one row of headings stands for.

    Raises:
        BenchError: a row does not fit its headings.
    """
    return {"benchmarks": [_old(_paired(rows[0], row, number)) for number, row in enumerate(rows[1:], start=1)]}


def new_report(rows: Sequence[Sequence[str]]) -> dict[str, Any]:
    """The report that a table with three rows of headings stands for.

    Raises:
        BenchError: as above.
    """
    columns = zip(*rows[:MOST_HEADINGS], strict=False)
    headings = [" / ".join(part for part in column if part) for column in columns]
    below = enumerate(rows[MOST_HEADINGS:], start=1)
    return {"benchmarks": [_new(_paired(headings, row, number)) for number, row in below]}


def _old(cells: Mapping[str, str]) -> dict[str, Any]:
    named = _NAMED_STRATEGY.match(cells.get("Name", ""))
    kind, at = (named[1], named[2]) if named else ("", None)
    metrics = {}
    for name in _COLUMNS:
        column = f"Successful {name.replace('_', ' ').capitalize()}"
        mean, median = cells.get(f"{column} mean"), cells.get(f"{column} median")
        metrics[name] = _distribution(mean, median, cells.get(f"{column} {_TAILS}"))
    return {
        "metrics": metrics | {"request_totals": {"successful": cells.get("Successful Requests")}},
        "config": {"strategy": {"type_": kind, "streams": at, "rate": at}},
        "duration": cells.get("Duration"),
    }


def _new(cells: Mapping[str, str]) -> dict[str, Any]:
    metrics = {}
    for name, (group, figure) in _COLUMNS.items():
        column = f"{group} / Successful {figure}"
        mean, median = cells.get(f"{column} / Mean"), cells.get(f"{column} / Median")
        metrics[name] = _distribution(mean, median, cells.get(f"{column} / Percentiles"))
    return {
        "metrics": metrics | {"request_totals": {"successful": cells.get("Request Counts / Successful")}},
        "config": {
            "strategy": {"type_": cells.get("Benchmark / Strategy")},  # without its streams or its rate
            "backend": {"model": _model(cells.get("Run Info / Backend"))},
        },
        "duration": cells.get("Timings / Duration / Sec"),
    }


def _distribution(mean: str | None, median: str | None, tails: str | None) -> dict[str, Any]:
    listed = (tails or "").strip("[] ").split(",")
    p99 = listed[_TAIL].strip() if len(listed) > _TAIL else None
    return {"successful": {"mean": mean, "median": median, "percentiles": {"p99": p99}}}


def _paired(headings: Sequence[str], row: Sequence[str], number: int) -> dict[str, str]:
    """Cells by heading. Columns are left out where a run had no errors: such a row cannot be told apart."""
    if len(row) != len(headings):
        raise BenchError(
            f"row {number} has {len(row):,} cells under {len(headings):,} headings, as GuideLLM writes where runs "
            "differ in their errors: bring its benchmarks.json instead."
        )
    return dict(zip(headings, row, strict=True))


def _model(backend: str | None) -> object:
    try:
        told = loads(backend or "null", constants_are_text=True)
    except StrictJsonError:
        return None
    return told.get("model") if isinstance(told, dict) else None
