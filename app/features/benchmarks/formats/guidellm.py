"""GuideLLM's `benchmarks.json`: one report with a list of benchmarks, each with its metrics as distributions.

Releases moved the strategy, the backend and the counts about; the metrics kept their names. What GuideLLM calls
`inter_token_latency_ms` is (last token − first token) ÷ (tokens − 1) of a request, the time per output token of
everybody else; its `time_per_output_token_ms` counts the first token too, and is not read.

GuideLLM's `benchmarks.csv`, brought into the form of its `benchmarks.json`, which then is read.

One row a run, under one row of headings in older releases and three in newer ones: group, figure with unit, statistic.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from app.checkpoint.text import StrictJsonError, loads
from app.features.benchmarks.formats.serving_results import NOTHING_COMPLETED
from app.features.benchmarks.points import (
    MILLI,
    MOST_POINTS,
    TOO_MANY,
    BenchError,
    BenchPoint,
    Fields,
    Spread,
    Tool,
    first,
    kind_name,
    model_name,
)

_SENT_AT_A_RATE = ("constant", "poisson", "async", "asynchronous")


def is_guidellm(values: dict[str, object]) -> bool:
    """Whether an object is a report of GuideLLM."""
    runs = values.get("benchmarks")
    return isinstance(runs, list) and all(isinstance(run, dict) and "metrics" in run for run in runs)


def guidellm_points(values: dict[str, object], where: str) -> list[BenchPoint]:
    """The runs of a report.

    Raises:
        BenchError: the report is empty, or a figure is no measurement.
    """
    runs = values["benchmarks"]
    if not isinstance(runs, list) or not runs:
        raise BenchError(f"{where}: the GuideLLM report has no benchmarks in it.")
    if len(runs) > MOST_POINTS:
        raise BenchError(TOO_MANY)
    report = Fields(values, where)
    return [_point(Fields(run, f"{where}, benchmark {number}"), report) for number, run in enumerate(runs, start=1)]


def _point(run: Fields, report: Fields) -> BenchPoint:
    metrics, strategy = run.part("metrics"), _strategy(run)
    completed = _count(run, metrics, "successful")
    kind = first(strategy.text(key) for key in ("type_", "kind", "type"))
    return BenchPoint(
        tool=Tool.GUIDELLM,
        model=model_name(_model(run, report)),
        backend=kind_name(
            first((run.part("config").part("backend").text("type_"), report.part("args").text("backend")))
        ),
        concurrency=closed_concurrency(kind, strategy),
        mean_concurrency=_mean(metrics, "request_concurrency"),
        request_rate_per_s=strategy.rate("rate") if kind in _SENT_AT_A_RATE else None,
        requests=completed,
        failed=_count(run, metrics, "errored"),
        requests_per_s=_mean(metrics, "requests_per_second"),
        duration_s=run.number("duration") or run.part("run_stats").number("total_time"),
        prompt_tokens=_mean(metrics, "prompt_token_count"),
        output_tokens=_mean(metrics, "output_token_count"),
        ttft=_spread(metrics, "time_to_first_token_ms", MILLI),
        tpot=_spread(metrics, "inter_token_latency_ms", MILLI),
        latency=_spread(metrics, "request_latency", 1.0),
        output_tokens_per_s=_mean(metrics, "output_tokens_per_second"),
        total_tokens_per_s=_mean(metrics, "tokens_per_second"),
        unusable=None if completed or _mean(metrics, "request_latency") else NOTHING_COMPLETED,
    )


def closed_concurrency(kind: object, strategy: Fields) -> int | None:
    """The requests that a strategy keeps running; None for one that sends at a rate, or all at once."""
    if kind == "synchronous":
        return 1
    return strategy.whole("streams") if kind == "concurrent" else None


def _strategy(run: Fields) -> Fields:
    """Where the release keeps it."""
    places = (run.part("config"), run.part("scheduler"), run.part("args"))
    return next((place.part("strategy") for place in places if place.part("strategy").values), places[0])


def _model(run: Fields, report: Fields) -> object:
    arguments = report.part("args")
    return first(
        (
            run.part("config").part("backend").text("model"),
            run.part("benchmarker").part("backend").text("model"),
            run.part("worker").text("backend_model"),
            arguments.text("model"),
            arguments.part("backend_kwargs").text("model"),
        )
    )


def _count(run: Fields, metrics: Fields, which: str) -> int | None:
    places: tuple[Fields, ...] = (
        metrics.part("request_totals"),
        run.part("request_totals"),
        run.part("scheduler_metrics").part("requests_made"),
        run.part("run_stats").part("requests_made"),
    )
    return next((found for place in places if (found := place.whole(which))), None)


def _successful(metrics: Fields, name: str) -> Fields:
    return metrics.part(name).part("successful")


def _mean(metrics: Fields, name: str) -> float | None:
    return _successful(metrics, name).number("mean")


def _spread(metrics: Fields, name: str, scale: float) -> Spread:
    found = _successful(metrics, name)
    tails: Mapping[str, object] = found.part("percentiles").values
    p99 = Fields({"p99": tails.get("p99", found.values.get("p99"))}, found.where).number("p99", scale)
    return Spread(found.number("mean", scale), found.number("median", scale), p99)


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
            "backend": {"model": _guidellm_csv_model(cells.get("Run Info / Backend"))},
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


def _guidellm_csv_model(backend: str | None) -> object:
    try:
        told = loads(backend or "null", constants_are_text=True)
    except StrictJsonError:
        return None
    return told.get("model") if isinstance(told, dict) else None
