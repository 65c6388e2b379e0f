"""This machine beside its prediction: a page, and its moving part as a stream."""

from typing import Any

from fastapi import APIRouter, Request
from sse_starlette import ServerSentEvent
from starlette.responses import Response

from app.default_scenario import default_scenario
from app.live.board import Board
from app.live.machine import told_items
from app.live_view.roofs import roofs_views
from app.pages.form import Form, form_of, refused_form
from app.pages.live_feed import LiveFeed
from app.pages.saving import saving_context
from app.refusal import ScenarioError
from app.scenario_query import BY_NAME, unknown_names
from app.web import urls
from app.web.live import event_stream, live_round, refuse_crowd, watching_of
from app.web.live_boards import LiveBoards, asked_of
from app.web.measuring import may_measure
from app.web.query import items_of
from app.web.services import services_of
from app.web.templating import templates_of

CHOSEN = ("model", "hw", "engine", "tp", "w")
"""What the page's own form asks for; the rest of a scenario travels along unseen."""
router = APIRouter(include_in_schema=False)


@router.get("/live")
async def live(request: Request) -> Response:
    """What this machine says now, beside what is predicted; the stream then keeps it fresh."""
    refused: ScenarioError | None = None
    items: urls.Items = ()
    try:
        items = items_of(request.query_params)
        asked_of(items, services_of(request).catalog)
    except ScenarioError as error:
        refused = error
    return await render(request, items, 422 if refused else 200, refused)


async def render(
    request: Request,
    items: urls.Items,
    status: int = 200,
    refused: ScenarioError | None = None,
    *,
    address: str = "",
    address_error: str = "",
) -> Response:
    """The page for the question that `items` are, with what was typed for a server and what is wrong with it."""
    services = services_of(request)
    watching = watching_of(request)
    latest = await live_round(services, watching)
    view = feed_of(request).view(latest, items)
    board = boards_of(request).of(latest, items)
    known = [(name, value) for name, value in items if name in BY_NAME] or told_items(board.machine)
    context: dict[str, Any] = {
        "view": view,
        "form": _form(items, refused, board),
        "lists": request.app.state.form_lists,
        "carried": [(name, value) for name, value in known if name not in CHOSEN],
        "is_asked": board.scenario is not None and not board.is_probed,
        "query": urls.query_string(items),
        "ignored": unknown_names((name for name, _ in items)),
        "stream": urls.live_stream(items),
        "interval_s": services.settings.probe_interval_s,
        "known": len(services.catalog.accelerators),
        "servers_are_set": bool(services.settings.servers),
        "typed": services.settings.typed_servers,
        "watching": watching.address,
        "address": address or watching.address or "",
        "address_error": address_error,
        "roofs": roofs_views(services.bench.roofs(), services.catalog),
        "may_measure": may_measure(request, services),
        "measuring": services.bench.state(),
        "twin": urls.probes_api(items),
        **saving_context(services.settings),
    }
    return templates_of(request).page("live", context, status, {"Cache-Control": "no-store"})


@router.get("/live/stream")
async def stream(request: Request) -> Response:
    """The moving part of the page as server-sent fragments, one each interval."""
    services, feed = services_of(request), feed_of(request)
    refuse_crowd(services)
    items = tuple(request.query_params.multi_items())
    return event_stream(services, watching_of(request), lambda latest: ServerSentEvent(data=feed.html(latest, items)))


def _form(items: urls.Items, refused: ScenarioError | None, board: Board) -> Form:
    """The form with what the prediction is of; with what is known of the machine, where that is too little for one."""
    if refused is not None:
        return refused_form(items, default_scenario(), refused)
    return Form(dict(told_items(board.machine)), {}, ()) if board.scenario is None else form_of(board.scenario)


def boards_of(request: Request) -> LiveBoards:
    """The boards of the app that answers `request`."""
    boards: LiveBoards = request.app.state.live_boards
    return boards


def feed_of(request: Request) -> LiveFeed:
    """The feed of the app that answers `request`."""
    feed: LiveFeed = request.app.state.live_feed
    return feed
