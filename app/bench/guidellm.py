"""GuideLLM's `benchmarks.json`: one report with a list of benchmarks, each with its metrics as distributions.

Releases moved the strategy, the backend and the counts about; the metrics kept their names. What GuideLLM calls
`inter_token_latency_ms` is (last token − first token) ÷ (tokens − 1) of a request, the time per output token of
everybody else; its `time_per_output_token_ms` counts the first token too, and is not read.
"""

from collections.abc import Mapping

from app.bench.fields import MILLI, Fields, first, kind_name, model_name
from app.bench.points import MOST_POINTS, TOO_MANY, BenchError, BenchPoint, Spread, Tool
from app.bench.serving_results import NOTHING_COMPLETED

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
