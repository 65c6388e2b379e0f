"""The live page's moving part as text: made once for each round and question, however many viewers ask.

This machine beside its prediction: a page, and its moving part as a stream.

The server that a person names on the live page: checked, then kept in a cookie of that browser and nowhere else.

The button that measures this machine's roofs; for the operator.
"""

import time
from collections.abc import Sequence
from typing import Any, Final
from urllib.parse import quote

from fastapi import APIRouter, Request
from sse_starlette import ServerSentEvent
from starlette.responses import RedirectResponse, Response

from app.features.links.saving import SEE_OTHER, query_of, saving_context, text_of
from app.features.live.accelerators import roofs_of, roofs_views
from app.features.live.measuring import begin_measuring, may_measure
from app.features.live.stream import (
    COOKIE,
    LONGEST_ADDRESS,
    LiveBoards,
    Newest,
    asked_of,
    event_stream,
    live_round,
    refuse_crowd,
    watching_of,
)
from app.features.live.view import LiveView, live_view
from app.features.services import Services, services_of
from app.features.workbench.form import Form, form_of, refused_form
from app.machine.live.board import Board
from app.machine.live.machine import told_items
from app.machine.peaks.result import MeasuredRoofs
from app.machine.probes.sampler import Snapshots
from app.scenario.query import BY_NAME, unknown_names
from app.scenario.refusal import ScenarioError
from app.scenario.scenario import default_scenario
from app.web import urls
from app.web.problem import ProblemError
from app.web.query import items_of
from app.web.templating import Templates, templates_of
from app.web.urls import Items

ROOFS_KEPT_S = 10.0
"""Seconds for which the file of measured roofs is not read again."""


class LiveFeed:
    """Views and their text by question. Belongs to one event loop."""

    def __init__(self, boards: LiveBoards, services: Services, templates: Templates) -> None:
        self._boards, self._services, self._templates = boards, services, templates
        self._views = Newest(self._view)
        self._texts = Newest(self._text)
        self._roofs: Sequence[MeasuredRoofs] = ()
        self._roofs_due = float("-inf")

    def view(self, latest: Snapshots, items: Items) -> LiveView:
        """The moving part for `latest`, beside the prediction that `items` ask for."""
        return self._views.of(latest, items)

    def html(self, latest: Snapshots, items: Items) -> str:
        return self._texts.of(latest, items)

    def roofs(self) -> Sequence[MeasuredRoofs]:
        """What was measured on this machine, as it was some seconds ago at most."""
        if time.monotonic() >= self._roofs_due:
            self._roofs, self._roofs_due = self._services.bench.roofs(), time.monotonic() + ROOFS_KEPT_S
        return self._roofs

    def _view(self, latest: Snapshots, items: Items) -> LiveView:
        board, catalog = self._boards.of(latest, items), self._services.catalog
        return live_view(board, catalog, roofs_of(board, self.roofs(), catalog))

    def _text(self, latest: Snapshots, items: Items) -> str:
        return self._templates.partial_html("live", {"view": self.view(latest, items)})


CHOSEN = ("model", "hw", "engine", "tp", "w")
"""What the page's own form asks for; the rest of a scenario travels along unseen."""
pages = APIRouter(include_in_schema=False)


@pages.get("/live")
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


@pages.get("/live/stream")
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


KEPT_S: Final = 86_400
COOKIE_PATH: Final = "/live"


@pages.post("/live/server")
async def name_server(request: Request) -> Response:
    """Keep the address in a cookie, or forget it; then the live page again. What is refused is told at the field."""
    services = services_of(request)
    async with request.form() as form:
        address, forget = text_of(form, "address").strip(), text_of(form, "forget")
        items = query_of(form)
    if forget:
        response = RedirectResponse(urls.live(items), SEE_OTHER)
        response.delete_cookie(COOKIE, path=COOKIE_PATH)
        return response
    try:
        kept = services.typed.validate(address[: LONGEST_ADDRESS + 1])
    except ProblemError as refused:
        told = refused.errors[0].message if refused.errors else refused.detail
        return await render(request, items, refused.status, address=address, address_error=told)
    response = RedirectResponse(f"{urls.live(items)}#live", SEE_OTHER)
    response.set_cookie(
        COOKIE,
        quote(kept, safe=""),
        max_age=KEPT_S,
        path=COOKIE_PATH,
        httponly=True,
        samesite="strict",
        secure=request.url.scheme == "https",
    )
    return response


@pages.post("/live/roofs")
async def measure(request: Request) -> Response:
    """Begin to measure the first card; then the live page, which tells how far it is."""
    await begin_measuring(request, services_of(request))
    return RedirectResponse(f"{urls.live()}#roofs", SEE_OTHER)
