"""This machine's cards: a page, and the same part of it as a stream."""

from collections.abc import AsyncIterator
from typing import Any

from fastapi import APIRouter, Request
from sse_starlette import EventSourceResponse, ServerSentEvent
from starlette.responses import Response

from app.pages.live_view import source_views
from app.probes.card import ProbeSnapshot
from app.web.live import refuse_crowd, snapshots
from app.web.services import Services, services_of
from app.web.templating import Templates
from app.web.urls import API

router = APIRouter(include_in_schema=False)


@router.get("/live")
async def live(request: Request) -> Response:
    """What the cards of this machine say now; the stream then keeps it fresh."""
    services = services_of(request)
    context = _context(services, await services.sampler.latest())
    templates: Templates = request.app.state.templates
    return templates.page("live", context | {"twin": f"{API}/probes"}, headers={"Cache-Control": "no-store"})


@router.get("/live/stream")
async def stream(request: Request) -> Response:
    """The readings of the page as server-sent fragments, one each interval."""
    services, templates = services_of(request), request.app.state.templates
    refuse_crowd(services)

    async def events() -> AsyncIterator[ServerSentEvent]:
        async for latest in snapshots(services):
            yield ServerSentEvent(data=templates.partial_html("cards", _context(services, latest)))

    return EventSourceResponse(events())


def _context(services: Services, latest: tuple[ProbeSnapshot, ...]) -> dict[str, Any]:
    return {"sources": source_views(latest, services.catalog), "known": len(services.catalog.accelerators)}
