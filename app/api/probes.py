"""Readings of this machine: once, and as a stream."""

from collections.abc import AsyncIterator
from typing import Any

from fastapi import APIRouter
from sse_starlette import EventSourceResponse, ServerSentEvent
from starlette.responses import Response

from app.api.problems import STREAM_PROBLEMS
from app.strict_json import dumps
from app.web.json_route import JsonResponse
from app.web.live import refuse_crowd, snapshots
from app.web.services import ServicesDep

router = APIRouter(tags=["probes"])


@router.get("/probes", response_model=dict[str, Any])
async def probes(services: ServicesDep) -> Response:
    """Every probe's newest snapshot; each reading has a value, or the reason why there is none."""
    latest = await services.sampler.latest()
    return JsonResponse({"probes": [snapshot.document() for snapshot in latest]})


@router.get("/probes/stream", responses=STREAM_PROBLEMS, response_class=EventSourceResponse)
async def stream(services: ServicesDep) -> Response:
    """The same as server-sent events of type `probes`, one each interval; the browser reconnects by itself."""
    refuse_crowd(services)

    async def events() -> AsyncIterator[ServerSentEvent]:
        async for latest in snapshots(services):
            body = {"probes": [snapshot.document() for snapshot in latest]}
            yield ServerSentEvent(data=dumps(body).decode(), event="probes")

    return EventSourceResponse(events())
