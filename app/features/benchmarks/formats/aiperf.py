"""Results of AIPerf and of GenAI-Perf: `profile_export_aiperf.json`, `profile_export_genai_perf.json`, and their CSV.

One file a run; each metric with its unit. Their inter-token latency is (latency − TTFT) ÷ (tokens − 1) of a request:
the time per output token of everybody else.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from app.features.benchmarks.formats.serving_results import NOTHING_COMPLETED
from app.features.benchmarks.points import BenchError, BenchPoint, Fields, Spread, Tool, first, kind_name, model_name

CSV_HEADINGS = "Metric,"
_SCALES: Mapping[str, float] = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "sec": 1.0, "seconds": 1.0}
_NAME_AND_UNIT = re.compile(r"([A-Za-z0-9 %_-]+?)\s*(?:\(([^()]{1,40})\))?")
_OF_SINGLE_CARDS = ("GPU", "Endpoint")
_OLDER_NAMES = {"num_output_token": "output_sequence_length", "num_input_token": "input_sequence_length"}


def is_aiperf(values: dict[str, object]) -> bool:
    """Whether an object is a summary of AIPerf or GenAI-Perf."""
    metrics = _metrics(values)
    return isinstance(metrics.get("request_latency"), dict) and isinstance(metrics.get("request_throughput"), dict)


def aiperf_point(values: dict[str, object], where: str, tool: Tool | None = None) -> BenchPoint:
    """The run that a summary tells of.

    Raises:
        BenchError: a figure is no measurement, or a time is in no unit of time.
    """
    metrics, asked = Fields(_metrics(values), where), Fields(values, where).part("input_config")
    by_aiperf = any(key in values for key in ("aiperf_version", "schema_version")) or "records" in values
    requests, failed = _average(metrics, "request_count"), _average(metrics, "error_request_count")
    return BenchPoint(
        tool=tool or (Tool.AIPERF if by_aiperf else Tool.GENAI_PERF),
        model=model_name(_model(asked)),
        backend=kind_name(first((asked.part("endpoint").text("type"), asked.text("endpoint_type")))),
        concurrency=_asked(asked, "concurrency").whole("concurrency"),
        request_rate_per_s=_asked(asked, "request_rate").rate("request_rate"),
        requests=int(requests) if requests else None,
        failed=int(failed) if failed else None,
        requests_per_s=_average(metrics, "request_throughput"),
        duration_s=_time(metrics, "benchmark_duration", "sec").mean_s,
        prompt_tokens=_average(metrics, "input_sequence_length"),
        output_tokens=_average(metrics, "output_sequence_length"),
        ttft=_time(metrics, "time_to_first_token"),
        tpot=_time(metrics, "inter_token_latency"),
        latency=_time(metrics, "request_latency"),
        output_tokens_per_s=_average(metrics, "output_token_throughput"),
        total_tokens_per_s=_average(metrics, "total_token_throughput"),
        unusable=None if _average(metrics, "request_throughput") else NOTHING_COMPLETED,
    )


def csv_point(rows: Sequence[Sequence[str]], where: str) -> BenchPoint:
    """The run that a table of metrics tells of: which model and how many at a time it does not say.

    Raises:
        BenchError: as above.
    """
    values: dict[str, Any] = {}
    columns: Sequence[str] = ()
    for row in rows:
        if row[0] in _OF_SINGLE_CARDS or row[1:2] == ["GPU"]:
            break  # telemetry of the machine that ran the tool
        if row[0] == "Metric":
            columns = ["avg" if name == "Value" else name for name in row[1:]]
            continue
        named = _NAME_AND_UNIT.fullmatch(row[0].strip())
        if named is None:
            continue
        key = re.sub(r"[ _-]+", "_", named[1].strip().lower())
        values[_OLDER_NAMES.get(key, key)] = dict(zip(columns, row[1:], strict=False)) | {"unit": named[2]}
    if not is_aiperf(values):
        raise BenchError(f"{where}: a table of metrics without request latency and request throughput.")
    newer = "sum" in columns or any("std" in row for row in rows if row[0] == "Metric")
    return aiperf_point(values, where, Tool.AIPERF if newer else Tool.GENAI_PERF)


def _metrics(values: dict[str, object]) -> dict[str, object]:
    """The metrics by name; early releases keep them one level down."""
    records = values.get("records")
    return records if isinstance(records, dict) else values


def _average(metrics: Fields, name: str) -> float | None:
    return metrics.part(name).number("avg")


def _time(metrics: Fields, name: str, usual: str = "ms") -> Spread:
    found = metrics.part(name)
    unit = found.text("unit") or usual
    if unit not in _SCALES:
        raise BenchError(f"{found.where} is in no unit of time that is read here: ns, us, ms or sec.")
    scale = _SCALES[unit]
    return Spread(found.number("avg", scale), found.number("p50", scale), found.number("p99", scale))


def _model(asked: Fields) -> object:
    listed = (asked.part("endpoint").values.get("model_names"), asked.values.get("model_names"))
    named = next((names[0] for names in listed if isinstance(names, list) and names), None)
    return first((named, asked.values.get("model"), asked.values.get("formatted_model_name")))


def _asked(asked: Fields, name: str) -> Fields:
    """Where the release keeps what was asked for; a list of one is that one."""
    phases = asked.values.get("phases")
    phase = (
        next((one for one in phases if isinstance(one, dict) and name in one), {}) if isinstance(phases, list) else {}
    )
    stimulus = asked.part("perf_analyzer").part("stimulus")
    for place in (asked.part("loadgen").values, phase, stimulus.values, asked.values):
        value = place.get(name)
        value = value[0] if isinstance(value, list) and len(value) == 1 else value
        if value is not None and not isinstance(value, (list, dict)):
            return Fields({name: value}, asked.where)
    return Fields({}, asked.where)
