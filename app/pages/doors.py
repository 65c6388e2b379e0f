"""The doors in the memory wall: each optimization as a what-if on one scenario."""

from typing import Any

from fastapi import APIRouter, Request
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from app.answer import answer
from app.catalog.catalog import Catalog
from app.default_scenario import default_scenario
from app.pages.answer_view import BINARY
from app.pages.doors_view import DoorsView, doors_view
from app.refusal import Refusal, ScenarioError
from app.scenario_query import BY_NAME, unknown_names
from app.web import urls
from app.web.query import answer_from, items_of
from app.web.services import CatalogDep
from app.web.templating import Templates

VIEW_NAMES = ("units", "undo")
router = APIRouter(include_in_schema=False)


@router.get("/doors")
async def doors(request: Request, catalog: CatalogDep) -> Response:
    """The doors of the query's scenario; with nothing asked, of the default one."""
    templates: Templates = request.app.state.templates
    items = items_of(request.query_params)
    binary = request.query_params.get("units") == BINARY
    refusals: list[Refusal] = []
    view: DoorsView | None = None
    try:
        view = await run_in_threadpool(_view, items, catalog, binary)
    except ScenarioError as error:
        refusals = list(error.refusals)
    context: dict[str, Any] = {
        "view": view,
        "refusals": refusals,
        "ignored": unknown_names((name for name, _ in items), VIEW_NAMES),
        "units_href": lambda units: urls.doors(_in_units(view, units)),
        "back": urls.workbench(view.items if view else items),
        "twin": urls.doors_api(view.items) if view else None,
    }
    return templates.page("doors", context, 200 if view else 422)


def _view(items: urls.Items, catalog: Catalog, binary: bool) -> DoorsView:
    asked = any(name in BY_NAME for name, _ in items)
    answered = answer_from(items, catalog) if asked else answer(default_scenario(), catalog)
    return doors_view(answered, binary=binary)


def _in_units(view: DoorsView | None, units: str) -> list[tuple[str, str]]:
    if view is None:
        return []
    kept = [item for item in view.items if item[0] != "units"]
    return [*kept, *([("units", units)] if units == BINARY else [])]
