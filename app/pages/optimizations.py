"""The page of the optimizations: each as a what-if on one scenario."""

from typing import Any

from fastapi import APIRouter, Request
from starlette.concurrency import run_in_threadpool
from starlette.responses import RedirectResponse, Response

from app.answer import answer
from app.catalog.catalog import Catalog
from app.default_scenario import default_scenario
from app.pages.answer_view import BINARY
from app.pages.optimizations_view import OptimizationsView, optimizations_view
from app.refusal import Refusal, ScenarioError
from app.scenario_query import BY_NAME, unknown_names
from app.web import urls
from app.web.query import answer_from, items_of
from app.web.services import CatalogDep
from app.web.templating import Templates

VIEW_NAMES = ("units", "undo")
router = APIRouter(include_in_schema=False)


@router.get("/doors")
async def renamed(request: Request) -> Response:
    """The old address of the page; the query stays."""
    query = request.url.query
    return RedirectResponse(f"/optimizations?{query}" if query else "/optimizations", 308)


@router.get("/optimizations")
async def optimizations(request: Request, catalog: CatalogDep) -> Response:
    """The optimizations of the query's scenario; with nothing asked, of the default one."""
    templates: Templates = request.app.state.templates
    items = items_of(request.query_params)
    binary = request.query_params.get("units") == BINARY
    refusals: list[Refusal] = []
    view: OptimizationsView | None = None
    try:
        view = await run_in_threadpool(_view, items, catalog, binary)
    except ScenarioError as error:
        refusals = list(error.refusals)
    context: dict[str, Any] = {
        "view": view,
        "refusals": refusals,
        "ignored": unknown_names((name for name, _ in items), VIEW_NAMES),
        "units_href": lambda units: urls.optimizations(_in_units(view, units)),
        "back": urls.workbench(view.items if view else items),
        "twin": urls.optimizations_api(view.items) if view else None,
    }
    return templates.page("optimizations", context, 200 if view else 422)


def _view(items: urls.Items, catalog: Catalog, binary: bool) -> OptimizationsView:
    asked = any(name in BY_NAME for name, _ in items)
    answered = answer_from(items, catalog) if asked else answer(default_scenario(), catalog)
    return optimizations_view(answered, binary=binary)


def _in_units(view: OptimizationsView | None, units: str) -> list[tuple[str, str]]:
    if view is None:
        return []
    kept = [item for item in view.items if item[0] != "units"]
    return [*kept, *([("units", units)] if units == BINARY else [])]
