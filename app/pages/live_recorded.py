"""The recorded readings of the last hours: charts, a file, and the switch of the recorder."""

from typing import Any

from fastapi import APIRouter, Request
from starlette.concurrency import run_in_threadpool
from starlette.responses import RedirectResponse, Response

from app.charts.figure import Chart
from app.charts.recorded_chart import recorded_charts
from app.pages.saving import SEE_OTHER, text_of
from app.recording.recorder import RecorderState
from app.refusal import Refusal
from app.web import urls
from app.web.links import store_problems
from app.web.operator import is_operator, require_operator
from app.web.problem import ProblemError, invalid
from app.web.recording import WINDOWS, hours_of, recorded_lines, recorder_of
from app.web.services import Services, services_of
from app.web.templating import templates_of

router = APIRouter(include_in_schema=False)


@router.get("/live/recorded")
async def recorded(request: Request) -> Response:
    """Charts of the window that is asked for."""
    return await _page(request, request.query_params.get("hours", ""))


@router.post("/live/recorded")
async def switch(request: Request) -> Response:
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
