"""What was recorded in the last hours: a chart for each kind of figure, a line for each source."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from itertools import groupby
from typing import Any

from app.calc.notation import significant
from app.charts.figure import Chart, axis, layout, table_of
from app.charts.plain import plain
from app.recording.figures import Series

HEIGHT, ROW_HEIGHT = 300, 18
MOST_LINES = 8
_ROLES = ("plana", "planb", "planc", "pland")
_DASHES = ("solid", "dash")

# Figures that are read together share a chart: its id, title, the unit as it is drawn, and what a value is divided by.
_GROUPS: Mapping[str, tuple[str, str, str, float]] = {
    "output_tokens_per_s": ("tokens", "Tokens a second", "tokens/s", 1.0),
    "prompt_tokens_per_s": ("tokens", "Tokens a second", "tokens/s", 1.0),
    "ttft_p50_s": ("ttft", "First token", "ms", 1e-3),
    "ttft_p99_s": ("ttft", "First token", "ms", 1e-3),
    "itl_p50_s": ("itl", "Between tokens", "ms", 1e-3),
    "itl_p99_s": ("itl", "Between tokens", "ms", 1e-3),
    "running": ("requests", "Requests", "requests", 1.0),
    "waiting": ("requests", "Requests", "requests", 1.0),
    "kv_cache_usage": ("cache", "KV cache in use", "%", 1e-2),
    "dram_activity_percent": ("activity", "Activity of the cards", "%", 1.0),
    "tensor_activity_percent": ("activity", "Activity of the cards", "%", 1.0),
    "gpu_utilization_percent": ("kernels", "A kernel ran", "%", 1.0),
    "memory_used_bytes": ("memory", "Memory of the cards in use", "GiB", 2.0**30),
    "power_draw_w": ("power", "Power", "W", 1.0),
    "temperature_c": ("temperature", "Temperature", "°C", 1.0),
    "sm_clock_mhz": ("clock", "SM clock", "MHz", 1.0),
    "flops_per_s": ("flops", "Arithmetic, by the server’s own estimate", "TFLOP/s", 1e12),
    "bytes_per_s": ("bytes", "Bytes moved, by the server’s own estimate", "GB/s", 1e9),
    "cpu_percent": ("cpu", "Processors of the machine", "%", 1.0),
    "memory_available_bytes": ("host", "Memory of the machine available", "GiB", 2.0**30),
}
_WORDS: Mapping[str, str] = {
    "output_tokens_per_s": "output",
    "prompt_tokens_per_s": "prompts",
    "ttft_p50_s": "median",
    "ttft_p99_s": "99 of 100 within",
    "itl_p50_s": "median",
    "itl_p99_s": "99 of 100 within",
    "running": "running",
    "waiting": "waiting",
    "dram_activity_percent": "bandwidth",
    "tensor_activity_percent": "tensor pipes",
}
_PLACES = {group[0]: place for place, group in enumerate(_GROUPS.values())}


def recorded_charts(series: Sequence[Series]) -> list[Chart]:
    """A chart for each kind of figure that has values, in the order in which a server is looked at."""
    known = [line for line in series if line.figure in _GROUPS and any(value is not None for value in line.values)]
    known.sort(key=lambda line: _PLACES[_GROUPS[line.figure][0]])
    return [_chart(list(lines)) for _, lines in groupby(known, key=lambda line: _GROUPS[line.figure][0])]


def _chart(lines: Sequence[Series]) -> Chart:
    id_, title, unit, _ = _GROUPS[lines[0].figure]
    shown = lines[:MOST_LINES]
    figure = {
        "data": [_line(line, at) for at, line in enumerate(shown)],
        "layout": layout(
            HEIGHT + ROW_HEIGHT * max(0, len(shown) - 3),  # of the legend, which on a phone has a row for each line
            xaxis=axis("Time, UTC", type="date", nticks=5, tickangle=0),
            yaxis=axis(unit, rangemode="tozero", exponentformat="SI"),
        ),
    }
    rows = [(_name(line), *_statistics(line), unit, f"{_last(line):%Y-%m-%d %H:%M:%S}") for line in lines]
    left = f" {len(lines) - len(shown)} more lines are in the table." if len(lines) > len(shown) else ""
    return Chart(
        f"recorded-{id_}",
        title,
        f"How did it go over time, in {unit}?",
        f"{_summary(lines[0], unit)}{left}",
        figure,
        table_of(("line", "lowest", "mean", "highest", "last", "unit", "until (UTC)"), rows),
    )


def _line(line: Series, at: int) -> dict[str, Any]:
    _, _, unit, divisor = _GROUPS[line.figure]
    name = plain(_name(line))
    return {
        "type": "scatter",
        "mode": "lines",
        "name": name,
        "x": [moment.strftime("%Y-%m-%d %H:%M:%S.%f")[:-3] for moment in line.times],
        "y": [None if value is None else value / divisor for value in line.values],
        "line": {
            "color": f"@{_ROLES[at % len(_ROLES)]}",
            "width": 1.5,
            "dash": _DASHES[at // len(_ROLES) % len(_DASHES)],
        },
        "connectgaps": False,
        "hovertemplate": f"{name}: %{{y:.4s}} {unit}, %{{x|%H:%M:%S}}<extra></extra>",
    }


def _name(line: Series) -> str:
    words = _WORDS.get(line.figure, "")
    source = line.source.replace("nvidia/", "card ").replace("amd/", "card ").replace("-", " ")
    return f"{source}, {words}" if words else source


def _values(line: Series) -> Iterator[float]:
    divisor = _GROUPS[line.figure][3]
    return (value / divisor for value in line.values if value is not None)


def _statistics(line: Series) -> tuple[float, float, float, float]:
    """Lowest, mean, highest and last."""
    values = list(_values(line))
    return min(values), sum(values) / len(values), max(values), values[-1]


def _last(line: Series) -> datetime:
    return next(
        moment for moment, value in zip(reversed(line.times), reversed(line.values), strict=True) if value is not None
    )


def _summary(line: Series, unit: str) -> str:
    lowest, mean, highest, last = (significant(value, 3) for value in _statistics(line))
    if lowest == highest:
        return f"{_name(line)}: {last} {unit} all the time."
    return f"{_name(line)}: {lowest} to {highest} {unit}, {mean} in the mean, {last} at the end."
