"""What was recorded in the last hours: a chart for each kind of figure, a line for each source.

Recorded readings at the edge: the window that is asked for, and the recorder where there is a database.

The recorded readings of the last hours: charts, a file, and the switch of the recorder.

The recorded readings: as lines, as a file, and the switch of the recorder.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from itertools import groupby
from typing import Annotated, Any, Final, Literal

from fastapi import APIRouter, Query, Request
from pydantic import Field
from starlette.concurrency import iterate_in_threadpool, run_in_threadpool
from starlette.responses import RedirectResponse, Response, StreamingResponse

from app.calc.quantity import significant
from app.features.links.links import store_problems
from app.features.links.saving import SEE_OTHER, text_of
from app.features.live.operator import is_operator, require_operator
from app.features.services import Services, ServicesDep, services_of
from app.machine.recording.figures import LONGEST_WINDOW, Series, csv_pieces, recorded_series
from app.machine.recording.recorder import Recorder, RecorderState
from app.scenario.parts import Part, Real
from app.scenario.refusal import Refusal
from app.settings import Settings
from app.web import urls
from app.web.figure import Chart, axis, layout, plain, table_of
from app.web.openapi import EDIT_PROBLEMS, PROBLEMS, STORE_PROBLEMS
from app.web.problem import JsonResponse, ProblemError, StrictRoute, invalid
from app.web.templating import templates_of

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


WINDOWS: Final = (1.0, 6.0, 24.0, 168.0)
"""Hours that are offered; the first is what is shown when none are asked for."""
MOST_HOURS: Final = LONGEST_WINDOW.total_seconds() / 3600
_HOURS = re.compile(r"[0-9]{1,6}(\.[0-9]{1,6})?")


def hours_of(text: str, settings: Settings) -> float:
    """The hours that a person typed; the first window where nothing was.

    Raises:
        ProblemError: 422, no number, none at all, or more than a download covers.
    """
    typed = text.strip()
    if not typed:
        return min(WINDOWS[0], settings.record_keep_hours)
    hours = float(typed) if _HOURS.fullmatch(typed) else 0.0
    if not 0 < hours <= MOST_HOURS:
        raise invalid([Refusal("hours", f"Must be a number of hours, more than 0 and at most {MOST_HOURS:g}.")])
    return hours


def recorded_lines(services: Services, hours: float) -> tuple[Series, ...]:
    """What was recorded in the last hours, as lines.

    Raises:
        StoreError: as in `Samples`.
    """
    end, settings = datetime.now(UTC), services.settings
    apart_s = max(settings.record_every_s, settings.server_interval_s)  # A server is read less often than a card.
    return recorded_series(services.samples, end - timedelta(hours=hours), end, apart_s)


def recorder_of(services: Services) -> Recorder:
    """The recorder.

    Raises:
        ProblemError: 503, there is no sound database to record to.
    """
    if services.recorder is None:
        raise ProblemError(503, "Nothing can be recorded: the database needs its operator.")
    return services.recorder


pages = APIRouter(include_in_schema=False)


@pages.get("/live/recorded")
async def recorded(request: Request) -> Response:
    """Charts of the window that is asked for."""
    return await _page(request, request.query_params.get("hours", ""))


@pages.post("/live/recorded")
async def switch_page(request: Request) -> Response:
    """Start or stop recording; for the operator. Hours that are none are told at their field."""
    services = services_of(request)
    async with request.form() as form:
        wanted, typed = text_of(form, "switch"), text_of(form, "hours")
    require_operator(request, services.settings)
    recorder = recorder_of(services)
    if wanted not in ("start", "stop"):
        raise invalid([Refusal("switch", "Must be start or stop.")])
    hours, error = _hours(typed, services)
    if error and wanted == "start":
        return await _page(request, typed)
    with store_problems():
        await (recorder.start(hours) if wanted == "start" else recorder.stop())
    return RedirectResponse(urls.recorded(), SEE_OTHER)


async def _page(request: Request, typed: str) -> Response:
    """The page for the hours that were typed; for those of the first window, with a message, where they are none."""
    services = services_of(request)
    hours, error = _hours(typed, services)
    state: RecorderState | None = None
    charts: list[Chart] = []
    if services.recorder is not None:
        with store_problems():
            state = await services.recorder.state()
            charts = await run_in_threadpool(_charts, services, hours)
    context: dict[str, Any] = {
        "state": state,
        "charts": charts,
        "chart_data": [
            {"id": chart.id, "title": chart.title, "caption": f"recorded, last {hours:g} h", "figure": chart.figure}
            for chart in charts
        ],
        "hours": hours,
        "typed": typed or f"{hours:g}",
        "error": error,
        "windows": [(f"{window:g}", urls.recorded(f"{window:g}"), window == hours) for window in WINDOWS],
        "may_switch": is_operator(request, services.settings),
        "every_s": services.settings.record_every_s,
        "keep_hours": services.settings.record_keep_hours,
        "csv": urls.recorded_csv(f"{hours:g}"),
        "twin": urls.recording_api(f"{hours:g}"),
    }
    headers = {"Cache-Control": "no-store"}
    return templates_of(request).page("live_recorded", context, 422 if error else 200, headers)


def _hours(typed: str, services: Services) -> tuple[float, str]:
    """The hours that were typed, or the first window and what is wrong with them."""
    try:
        return hours_of(typed, services.settings), ""
    except ProblemError as refused:
        return WINDOWS[0], refused.errors[0].message


def _charts(services: Services, hours: float) -> list[Chart]:
    return recorded_charts(recorded_lines(services, hours))


api = APIRouter(tags=["probes"], route_class=StrictRoute)
Hours = Annotated[float, Query(gt=0, le=MOST_HOURS, allow_inf_nan=False, description="Hours back from now.")]
UNREADABLE: dict[int | str, dict[str, Any]] = {422: PROBLEMS[422]}


class RecordingSwitch(Part):
    """What the recorder is to do."""

    switch: Literal["start", "stop"]
    hours: Real = Field(WINDOWS[0], gt=0, le=MOST_HOURS, description="For how long; no longer than readings are kept.")


@api.get("/recording", response_model=dict[str, Any], responses=UNREADABLE | STORE_PROBLEMS)
async def recording(services: ServicesDep, hours: Hours = WINDOWS[0]) -> Response:
    """Whether readings are recorded, and the lines of those of the last hours, thinned to some hundreds of points."""
    with store_problems():
        state = await recorder_of(services).state()
        series = await run_in_threadpool(_series, services, hours)
    return JsonResponse({"recorder": _document(state), "hours": hours, "series": series})


@api.get("/recording.csv", responses=UNREADABLE | STORE_PROBLEMS, response_class=StreamingResponse)
async def download(services: ServicesDep, hours: Hours = WINDOWS[0]) -> Response:
    """Every recorded reading of the last hours as CSV: a line for each figure of each source."""
    end = datetime.now(UTC)
    with store_problems():
        recorder_of(services)
        pieces = await run_in_threadpool(csv_pieces, services.samples, end - timedelta(hours=hours), end)
    headers = {"Content-Disposition": 'attachment; filename="tokenroof-recorded.csv"', "Cache-Control": "no-store"}
    return StreamingResponse(iterate_in_threadpool(pieces), media_type="text/csv; charset=utf-8", headers=headers)


@api.post("/recording", response_model=dict[str, Any], responses=PROBLEMS | EDIT_PROBLEMS | STORE_PROBLEMS)
async def switch(body: RecordingSwitch, request: Request, services: ServicesDep) -> Response:
    """Start or stop recording. For the operator: at a loopback address of this machine, or with the token."""
    require_operator(request, services.settings)
    recorder = recorder_of(services)
    with store_problems():
        state = await (recorder.start(body.hours) if body.switch == "start" else recorder.stop())
    return JsonResponse({"recorder": _document(state)})


def _series(services: Services, hours: float) -> list[dict[str, Any]]:
    return [
        {
            "source": line.source,
            "figure": line.figure,
            "unit": line.unit,
            "times": [moment.isoformat(timespec="milliseconds") for moment in line.times],
            "values": list(line.values),
        }
        for line in recorded_lines(services, hours)
    ]


def _document(state: RecorderState) -> dict[str, Any]:
    return {
        "is_on": state.is_on,
        "by_setting": state.by_setting,
        "since": None if state.since is None else state.since.isoformat(timespec="seconds"),
        "until": None if state.until is None else state.until.isoformat(timespec="seconds"),
    }
