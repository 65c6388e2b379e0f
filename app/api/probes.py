"""Readings of this machine and its servers, beside their prediction: once, and as a stream."""

from typing import Any

from fastapi import APIRouter, Request
from sse_starlette import EventSourceResponse, ServerSentEvent
from starlette.responses import Response

from app.api.problems import PROBLEMS, STREAM_PROBLEMS
from app.probes.sampler import Snapshots
from app.strict_json import dumps
from app.web.live import NOBODYS, event_stream, live_round, refuse_crowd
from app.web.live_boards import LiveBoards, asked_of
from app.web.problem import JsonResponse
from app.web.query import items_of, refuse_unknown
from app.web.services import Services, ServicesDep
from app.web.urls import Items

UNREADABLE: dict[int | str, dict[str, Any]] = {422: PROBLEMS[422]}
router = APIRouter(tags=["probes"])


@router.get("/probes", response_model=dict[str, Any], responses=UNREADABLE)
async def probes(request: Request, services: ServicesDep) -> Response:
    """Every probe's newest snapshot; each reading has a value, or the reason why there is none.

    `live` puts each server's figures beside the prediction of the scenario in the query (the names of /evaluate), under
    the load that the server has; without a query beside that of what was probed.
    """
    items = _question(request, services)
    return JsonResponse(_document(request, await live_round(services), items))


@router.get("/probes/stream", responses=UNREADABLE | STREAM_PROBLEMS, response_class=EventSourceResponse)
async def stream(request: Request, services: ServicesDep) -> Response:
    """The same as server-sent events of type `probes`, one each interval; the browser reconnects by itself."""
    items = _question(request, services)
    refuse_crowd(services)

    def written(latest: Snapshots) -> ServerSentEvent:
        return ServerSentEvent(data=dumps(_document(request, latest, items)).decode(), event="probes")

    return event_stream(services, NOBODYS, written)


def _question(request: Request, services: Services) -> Items:
    """The items of the query, once they are known to be a scenario or none.

    Raises:
        ScenarioError: they are neither.
    """
    items = items_of(request.query_params)
    refuse_unknown(items)
    asked_of(items, services.catalog)
    return items


def _document(request: Request, latest: Snapshots, items: Items) -> dict[str, Any]:
    boards: LiveBoards = request.app.state.live_boards
    return {"probes": [snapshot.document() for snapshot in latest], "live": boards.of(latest, items).document()}
