"""The recorded readings: as lines, as a file, and the switch of the recorder."""

from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query, Request
from pydantic import Field
from starlette.concurrency import iterate_in_threadpool, run_in_threadpool
from starlette.responses import Response, StreamingResponse

from app.api.problems import EDIT_PROBLEMS, PROBLEMS, STORE_PROBLEMS
from app.recording.figures import csv_pieces
from app.recording.recorder import RecorderState
from app.scenario_parts import Part, Real
from app.web.links import store_problems
from app.web.operator import require_operator
from app.web.problem import JsonResponse, StrictRoute
from app.web.recording import MOST_HOURS, WINDOWS, recorded_lines, recorder_of
from app.web.services import Services, ServicesDep

router = APIRouter(tags=["probes"], route_class=StrictRoute)
Hours = Annotated[float, Query(gt=0, le=MOST_HOURS, allow_inf_nan=False, description="Hours back from now.")]
UNREADABLE: dict[int | str, dict[str, Any]] = {422: PROBLEMS[422]}


class RecordingSwitch(Part):
    """What the recorder is to do."""

    switch: Literal["start", "stop"]
    hours: Real = Field(WINDOWS[0], gt=0, le=MOST_HOURS, description="For how long; no longer than readings are kept.")


@router.get("/recording", response_model=dict[str, Any], responses=UNREADABLE | STORE_PROBLEMS)
async def recording(services: ServicesDep, hours: Hours = WINDOWS[0]) -> Response:
    """Whether readings are recorded, and the lines of those of the last hours, thinned to some hundreds of points."""
    with store_problems():
        state = await recorder_of(services).state()
        series = await run_in_threadpool(_series, services, hours)
    return JsonResponse({"recorder": _document(state), "hours": hours, "series": series})


@router.get("/recording.csv", responses=UNREADABLE | STORE_PROBLEMS, response_class=StreamingResponse)
async def download(services: ServicesDep, hours: Hours = WINDOWS[0]) -> Response:
    """Every recorded reading of the last hours as CSV: a line for each figure of each source."""
    end = datetime.now(UTC)
    with store_problems():
        recorder_of(services)
        pieces = await run_in_threadpool(csv_pieces, services.samples, end - timedelta(hours=hours), end)
    headers = {"Content-Disposition": 'attachment; filename="tokenroof-recorded.csv"', "Cache-Control": "no-store"}
    return StreamingResponse(iterate_in_threadpool(pieces), media_type="text/csv; charset=utf-8", headers=headers)


@router.post("/recording", response_model=dict[str, Any], responses=PROBLEMS | EDIT_PROBLEMS | STORE_PROBLEMS)
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
